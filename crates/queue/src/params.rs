//! What a user writes of a queue, resolved to numbers.

use crate::device::Device;
use crate::discipline::Sink;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::tc::{NoKernelEquivalent, Text};
use crate::{
    blue, cake, choke, cobalt, codel, daqm, dualpi2, fifo, fq_cobalt, fq_codel, fq_pie, pi2, pie,
    red, sfb,
};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Given, Table, WordError};
use std::fmt;

/// A queue and its parameters, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Params {
    /// `pfifo`, `bfifo`.
    Fifo(fifo::Params),
    /// `red`.
    Red(red::Params),
    /// `choke`.
    Choke(choke::Params),
    /// `blue`.
    Blue(blue::Params),
    /// `sfb`.
    Sfb(sfb::Params),
    /// `codel`.
    Codel(codel::Params),
    /// `fq_codel`.
    FqCodel(fq_codel::Params),
    /// `pie`.
    Pie(pie::Params),
    /// `fq_pie`.
    FqPie(fq_pie::Params),
    /// `cobalt`.
    Cobalt(cobalt::Params),
    /// `fq_cobalt`.
    FqCobalt(fq_cobalt::Params),
    /// `daqm`.
    Daqm(daqm::Params),
    /// `cake`.
    Cake(cake::Params),
    /// `pi2`.
    Pi2(pi2::Params),
    /// `dualpi2`.
    #[serde(rename = "dualpi2")]
    DualPi2(dualpi2::Params),
}

const TABLES: &[&Table] = &[
    &fifo::PFIFO,
    &fifo::BFIFO,
    &red::TABLE,
    &choke::TABLE,
    &blue::TABLE,
    &sfb::TABLE,
    &codel::TABLE,
    &fq_codel::TABLE,
    &pie::TABLE,
    &fq_pie::TABLE,
    &cobalt::TABLE,
    &fq_cobalt::TABLE,
    &daqm::TABLE,
    &cake::TABLE,
    &pi2::TABLE,
    &dualpi2::TABLE,
];

/// The words of every discipline.
pub fn tables() -> &'static [&'static Table] {
    TABLES
}

impl Params {
    /// Reads a description such as `codel limit 300p ecn`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str, device: &Device) -> Result<Self, WordError> {
        cake::refuse(text)?;
        let (table, given) = words::describe("queue", TABLES, text)?;
        let mut params = match table.name {
            "pfifo" => Self::Fifo(fifo::Params::new(Unit::Packets, device)),
            "bfifo" => Self::Fifo(fifo::Params::new(Unit::Bytes, device)),
            "red" => return red::Params::parse(&given, device).map(Self::Red),
            "choke" => return choke::Params::parse(&given).map(Self::Choke),
            "blue" => Self::Blue(blue::Params::new(device)),
            "sfb" => return sfb::Params::parse(&given, device).map(Self::Sfb),
            "codel" => Self::Codel(codel::Params::new(device)),
            "fq_codel" => Self::FqCodel(fq_codel::Params::new(device)),
            "pie" => Self::Pie(pie::Params::new(device)),
            "fq_pie" => Self::FqPie(fq_pie::Params::new(device)),
            "cobalt" => Self::Cobalt(cobalt::Params::new(device)),
            "fq_cobalt" => Self::FqCobalt(fq_cobalt::Params::new(device)),
            "daqm" => Self::Daqm(daqm::Params::default()),
            "cake" => Self::Cake(cake::Params::new(device)),
            "pi2" => Self::Pi2(pi2::Params::new(device)),
            "dualpi2" => Self::DualPi2(dualpi2::Params::new(device)),
            name => unreachable!("no defaults for {name}"),
        };
        params.set(&given)?;
        Ok(params)
    }

    /// What is worth saying of a description that [`Params::parse`] reads: assumptions made for the
    /// user, and values that `tc` warns of.
    pub fn warnings(text: &str, device: &Device) -> Vec<String> {
        match (Self::parse(text, device), words::describe("queue", TABLES, text)) {
            (Ok(Self::Red(params)), Ok((_, given))) => params.warnings(&given),
            (Ok(Self::Daqm(params)), Ok((_, given))) => params.warnings(&given),
            (Ok(Self::Choke(params)), Ok((_, given))) => params.warnings(&given),
            (Ok(Self::Sfb(params)), Ok(_)) => params.warnings(),
            (Ok(Self::DualPi2(_)), Ok((_, given))) => dualpi2::Params::warnings(&given),
            _ => Vec::new(),
        }
    }

    /// Reads what `tc qdisc change` would be given, such as `codel limit 300p`: what is not named
    /// keeps its value, unless `tc` states it anew (`red` and `choke` with `limit`, `sfb`).
    ///
    /// # Errors
    /// What is wrong with it, and where; another discipline than this; what cannot be changed.
    pub fn change(&self, text: &str, device: &Device) -> Result<Self, WordError> {
        cake::refuse(text)?;
        let (_, given) = words::describe("queue", &[self.table()], text)?;
        match self {
            Self::Red(params) => return params.changed(&given, device).map(Self::Red),
            Self::Choke(params) => return params.changed(&given).map(Self::Choke),
            Self::Sfb(_) => return sfb::Params::parse(&given, device).map(Self::Sfb),
            _ => {}
        }
        if given.has("flows") {
            return Err(given.error("flows", "`flows` cannot be changed"));
        }
        let mut params = self.clone();
        params.set(&given)?;
        Ok(params)
    }

    fn set(&mut self, given: &Given) -> Result<(), WordError> {
        match self {
            Self::Fifo(params) => params.set(given),
            // Words that depend on each other are read by the discipline itself.
            Self::Red(_) | Self::Choke(_) | Self::Sfb(_) => Ok(()),
            Self::Blue(params) => params.set(given),
            Self::Codel(params) => params.set(given),
            Self::FqCodel(params) => params.set(given),
            Self::Pie(params) => params.set(given),
            Self::FqPie(params) => params.set(given),
            Self::Cobalt(params) => params.set(given),
            Self::FqCobalt(params) => params.set(given),
            Self::Daqm(params) => params.set(given),
            Self::Cake(params) => params.set(given),
            Self::Pi2(params) => params.set(given),
            Self::DualPi2(params) => params.set(given),
        }
    }

    /// The words of this discipline.
    pub fn table(&self) -> &'static Table {
        match self {
            Self::Fifo(params) => params.table(),
            Self::Red(_) => &red::TABLE,
            Self::Choke(_) => &choke::TABLE,
            Self::Blue(_) => &blue::TABLE,
            Self::Sfb(_) => &sfb::TABLE,
            Self::Codel(_) => &codel::TABLE,
            Self::FqCodel(_) => &fq_codel::TABLE,
            Self::Pie(_) => &pie::TABLE,
            Self::FqPie(_) => &fq_pie::TABLE,
            Self::Cobalt(_) => &cobalt::TABLE,
            Self::FqCobalt(_) => &fq_cobalt::TABLE,
            Self::Daqm(_) => &daqm::TABLE,
            Self::Cake(_) => &cake::TABLE,
            Self::Pi2(_) => &pi2::TABLE,
            Self::DualPi2(_) => &dualpi2::TABLE,
        }
    }

    /// The name of this discipline.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// What its limit counts, and how much fits; none where the limit is one of memory only.
    pub fn limit(&self) -> Option<(Unit, u32)> {
        let packets = |limit| Some((Unit::Packets, limit));
        match self {
            Self::Fifo(params) => Some((params.unit, params.limit)),
            Self::Red(params) => Some((params.unit, params.limit)),
            Self::Choke(params) => packets(params.limit),
            Self::Blue(params) => packets(params.limit),
            Self::Sfb(params) => packets(params.limit),
            Self::Codel(params) => packets(params.limit),
            Self::FqCodel(params) => packets(params.limit),
            Self::Pie(params) => packets(params.limit),
            Self::FqPie(params) => packets(params.pie.limit),
            Self::FqCobalt(params) => packets(params.limit),
            Self::Daqm(params) => packets(params.limit),
            Self::Pi2(params) => packets(params.limit),
            Self::DualPi2(params) => packets(params.limit),
            Self::Cobalt(_) | Self::Cake(_) => None,
        }
    }

    /// An empty queue, created at `now`.
    ///
    /// # Panics
    /// On parameters of RED or CHOKe that [`Params::parse`] would refuse.
    pub fn build<P: Packet>(&self, now: Nanos) -> Queue<P> {
        match self {
            Self::Fifo(params) => Queue::Fifo(fifo::Fifo::new(*params)),
            Self::Red(params) => Queue::Red(red::Red::new(*params, now)),
            Self::Choke(params) => Queue::Choke(choke::Choke::new(*params)),
            Self::Blue(params) => Queue::Blue(blue::Blue::new(*params)),
            Self::Sfb(params) => Queue::Sfb(sfb::Sfb::new(*params, now)),
            Self::Codel(params) => Queue::Codel(codel::Codel::new(*params)),
            Self::FqCodel(params) => Queue::FqCodel(fq_codel::FqCodel::new(*params)),
            Self::Pie(params) => Queue::Pie(pie::Pie::new(*params, now)),
            Self::FqPie(params) => Queue::FqPie(fq_pie::FqPie::new(*params, now)),
            Self::Cobalt(params) => Queue::Cobalt(cobalt::Cobalt::new(*params)),
            Self::FqCobalt(params) => Queue::FqCobalt(fq_cobalt::FqCobalt::new(*params)),
            Self::Daqm(params) => Queue::Daqm(Box::new(daqm::Daqm::new(*params, now))),
            Self::Cake(params) => Queue::Cake(Box::new(cake::Cake::new(*params))),
            Self::Pi2(params) => Queue::Pi2(pi2::Pi2::new(*params, now)),
            Self::DualPi2(params) => Queue::DualPi2(dualpi2::DualPi2::new(*params, now)),
        }
    }

    /// The words by which the kernel gives the same queue.
    ///
    /// # Errors
    /// Where the kernel has none.
    pub fn to_tc(&self) -> Result<String, NoKernelEquivalent> {
        match self {
            Self::Fifo(params) => Ok(params.to_tc()),
            Self::Red(params) => params.to_tc(),
            Self::Choke(params) => params.to_tc(),
            Self::Blue(_) => Err(NoKernelEquivalent {
                discipline: "blue",
                reason: "Linux has only its stochastic fair variant, sfb".to_owned(),
            }),
            Self::Sfb(params) => Ok(params.to_tc()),
            Self::Codel(params) => Ok(params.write(Text::new("codel")).done()),
            Self::FqCodel(params) => Ok(params.write(Text::new("fq_codel")).done()),
            Self::Pie(params) => Ok(params.to_tc()),
            Self::FqPie(params) => Ok(params.to_tc()),
            Self::Cobalt(params) => params.to_tc(),
            Self::FqCobalt(_) => Err(NoKernelEquivalent {
                discipline: "fq_cobalt",
                reason: "Linux has flow queues under COBALT only as `cake`".to_owned(),
            }),
            Self::Daqm(_) => Err(NoKernelEquivalent {
                discipline: "daqm",
                reason: "Linux has no discipline that drops by derivatives".to_owned(),
            }),
            Self::Cake(params) => Ok(params.to_tc()),
            Self::Pi2(_) => Err(NoKernelEquivalent {
                discipline: "pi2",
                reason: "Linux has only the coupled pair of queues, dualpi2".to_owned(),
            }),
            Self::DualPi2(params) => Ok(params.to_tc()),
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
        now: Nanos,
        sink: &mut impl Sink<P>,
    ) -> Result<(), OtherDiscipline> {
        match (self, params) {
            (Self::Fifo(queue), Params::Fifo(params)) if queue.params().unit == params.unit => {
                queue.change(*params);
            }
            (Self::Red(queue), Params::Red(params)) => queue.change(*params, now, sink),
            (Self::Choke(queue), Params::Choke(params)) => queue.change(*params, sink),
            (Self::Blue(queue), Params::Blue(params)) => queue.change(*params, sink),
            (Self::Sfb(queue), Params::Sfb(params)) => queue.change(*params, now, sink),
            (Self::Codel(queue), Params::Codel(params)) => queue.change(*params, sink),
            (Self::FqCodel(queue), Params::FqCodel(params)) => queue.change(*params, now, sink),
            (Self::Pie(queue), Params::Pie(params)) => queue.change(*params, sink),
            (Self::FqPie(queue), Params::FqPie(params)) => queue.change(*params, now, sink),
            (Self::Cobalt(queue), Params::Cobalt(params)) => queue.change(*params),
            (Self::FqCobalt(queue), Params::FqCobalt(params)) => queue.change(*params, now, sink),
            (Self::Daqm(queue), Params::Daqm(params)) => queue.change(*params, now, sink),
            (Self::Cake(queue), Params::Cake(params)) => queue.change(*params, sink),
            (Self::Pi2(queue), Params::Pi2(params)) => queue.change(*params, sink),
            (Self::DualPi2(queue), Params::DualPi2(params)) => queue.change(*params, sink),
            (queue, params) => {
                return Err(OtherDiscipline { queue: queue.name(), asked: params.name() });
            }
        }
        Ok(())
    }
}
