//! What a user writes of a queue, resolved to numbers.

use crate::discipline::Sink;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::{codel, fifo};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{self, Given, Table, WordError};
use sojourn_units::{MICROSECOND, Nanos, Rate};
use std::fmt;

/// The device that a queue is on: where defaults come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The largest frame with its Ethernet header.
    pub psched_mtu: u32,
    /// Ticks a second of the coarse clock by which periodic tasks run.
    pub hz: u32,
    /// The rate at which it sends, if known.
    pub rate: Option<Rate>,
}

impl Default for Device {
    fn default() -> Self {
        Self { psched_mtu: 1514, hz: 1000, rate: None }
    }
}

/// What a limit or threshold counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// Why a queue cannot be had from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKernelEquivalent {
    /// The discipline.
    pub discipline: &'static str,
    /// What the kernel lacks.
    pub reason: String,
}

impl fmt::Display for NoKernelEquivalent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kernel equivalent of this `{}`: {}", self.discipline, self.reason)
    }
}

impl std::error::Error for NoKernelEquivalent {}

/// A queue and its parameters, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Params {
    /// `pfifo`, `bfifo`.
    Fifo(fifo::Params),
    /// `codel`.
    Codel(codel::Params),
}

const TABLES: &[&Table] = &[&fifo::PFIFO, &fifo::BFIFO, &codel::TABLE];

/// The words of every discipline.
pub fn tables() -> &'static [&'static Table] {
    TABLES
}

impl Params {
    /// The defaults of the discipline called `name`.
    fn defaults(name: &str, device: &Device) -> Option<Self> {
        Some(match name {
            "pfifo" => Self::Fifo(fifo::Params::new(Unit::Packets, device)),
            "bfifo" => Self::Fifo(fifo::Params::new(Unit::Bytes, device)),
            "codel" => Self::Codel(codel::Params::new(device)),
            _ => return None,
        })
    }

    /// Reads a description such as `codel limit 300p ecn`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str, device: &Device) -> Result<Self, WordError> {
        let (table, given) = words::describe("queue", TABLES, text)?;
        let mut params = Self::defaults(table.name, device).expect("every table has its defaults");
        params.set(&given)?;
        Ok(params)
    }

    /// Reads what `tc qdisc change` would be given, such as `codel limit 300p`: what is not named
    /// keeps its value.
    ///
    /// # Errors
    /// What is wrong with it, and where; another discipline than this; what cannot be changed.
    pub fn change(&self, text: &str, _device: &Device) -> Result<Self, WordError> {
        let (_, given) = words::describe("queue", &[self.table()], text)?;
        let mut params = self.clone();
        params.set(&given)?;
        Ok(params)
    }

    fn set(&mut self, given: &Given) -> Result<(), WordError> {
        match self {
            Self::Fifo(params) => params.set(given),
            Self::Codel(params) => params.set(given),
        }
    }

    /// The words of this discipline.
    pub fn table(&self) -> &'static Table {
        match self {
            Self::Fifo(params) => params.table(),
            Self::Codel(_) => &codel::TABLE,
        }
    }

    /// The name of this discipline.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// An empty queue, created at `now`.
    pub fn build<P: Packet>(&self, _now: Nanos) -> Queue<P> {
        match self {
            Self::Fifo(params) => Queue::Fifo(fifo::Fifo::new(*params)),
            Self::Codel(params) => Queue::Codel(codel::Codel::new(*params)),
        }
    }

    /// The words by which the kernel gives the same queue.
    ///
    /// # Errors
    /// Where the kernel has none.
    pub fn to_tc(&self) -> Result<String, NoKernelEquivalent> {
        match self {
            Self::Fifo(params) => Ok(params.to_tc()),
            Self::Codel(params) => Ok(params.to_tc()),
        }
    }
}

/// A change that names another discipline than the queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherDiscipline {
    /// What the queue is.
    pub queue: &'static str,
    /// What was asked for.
    pub asked: &'static str,
}

impl fmt::Display for OtherDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a `{}` cannot be changed into a `{}`", self.queue, self.asked)
    }
}

impl std::error::Error for OtherDiscipline {}

impl<P: Packet> Queue<P> {
    /// Replaces the parameters, as `tc qdisc change` does. Packets that no longer fit are dropped
    /// where the kernel drops them.
    ///
    /// # Errors
    /// If `params` are another discipline's; nothing has changed then.
    pub fn change(
        &mut self,
        params: &Params,
        _now: Nanos,
        sink: &mut impl Sink<P>,
    ) -> Result<(), OtherDiscipline> {
        match (self, params) {
            (Self::Fifo(queue), Params::Fifo(params)) if queue.params().unit == params.unit => {
                queue.change(*params);
            }
            (Self::Codel(queue), Params::Codel(params)) => queue.change(*params, sink),
            (queue, params) => {
                return Err(OtherDiscipline { queue: queue.name(), asked: params.name() });
            }
        }
        Ok(())
    }
}

/// The value of `word`, if it fits the kernel's 32 bits.
fn narrow(given: &Given, word: &str, value: Option<u64>) -> Result<Option<u32>, WordError> {
    value
        .map(u32::try_from)
        .transpose()
        .map_err(|_| given.error(word, format!("`{word}` is too large: it has 32 bits")))
}

pub(crate) fn packets(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    narrow(given, word, given.integer(word))
}

pub(crate) fn size(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    narrow(given, word, given.integer(word))
}

/// A time in whole microseconds, rounded down as `tc` does.
pub(crate) fn micros(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    narrow(given, word, given.time(word).map(|t| t / MICROSECOND))
}

/// Refuses 0, which `tc` takes for "not given".
pub(crate) fn above_zero(
    given: &Given,
    word: &str,
    value: Option<u32>,
) -> Result<Option<u32>, WordError> {
    if value == Some(0) {
        return Err(given.error(word, format!("`{word}` must be above 0")));
    }
    Ok(value)
}

/// Microseconds as `tc` reads them exactly.
pub(crate) fn time_text(micros: u32) -> String {
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}
