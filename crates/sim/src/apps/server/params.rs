//! Parameters of the simulated server, and their checks.

use super::handler;
use serde::{Deserialize, Serialize};
use sojourn_units::{Bytes, Nanos, SECOND};

/// When a message is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledged {
    /// When the message enters the buffer.
    Enqueued,
    /// When the handler has processed the message.
    Processed,
}

/// How clients send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Load {
    /// Clients send at given rates, regardless of acknowledgements.
    Open {
        /// Pairs of a time and each client's rate from this time on, in bytes per second. The times
        /// ascend from 0.
        rates: Vec<(Nanos, u64)>,
        /// Number of messages that a client sends together.
        burst: u32,
        /// Whether the time between bursts is exponentially distributed; otherwise it is constant.
        random: bool,
    },
    /// Clients send when acknowledgements arrive.
    Closed {
        /// Number of unacknowledged messages of each client.
        window: u32,
        /// When the server acknowledges a message.
        acknowledged: Acknowledged,
        /// Round-trip time without queueing and transmission.
        rtt: Nanos,
        /// Initial and minimum retransmission timeout. Above it the timeout follows RFC 6298.
        rto: Nanos,
        /// Random extension of each timeout: uniform from 0 to this part of the timeout, so that
        /// clients do not repeat messages in synchrony.
        jitter: f64,
        /// Rate of each client's own link in bits per second.
        link: u64,
    },
}

/// Parameters of the simulated server, its clients and its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Simulated time.
    pub duration: Nanos,
    /// Time from the start that is not measured, except for the peaks.
    pub warmup: Nanos,
    /// The policy of every buffer, as one line of text.
    pub policy: String,
    /// Time between the decisions of the policy; 0 for a decision before each message.
    pub ask: Nanos,
    /// Number of sockets, each with a buffer and a handler.
    pub sockets: u32,
    /// Number of clients of each socket.
    pub clients: u32,
    /// Length of each message.
    pub message: Bytes,
    /// How the clients send.
    pub load: Load,
    /// How each socket's messages are processed.
    pub handler: handler::Params,
    /// Rate of the server's port in bits per second; 0 for no limit.
    pub port: u64,
    /// Total memory of the server; 0 if the policy does not know it.
    pub memory: Bytes,
    /// Memory that other programs use.
    pub used: Bytes,
    /// Time between samples; 0 for no samples.
    pub samples: Nanos,
}

/// Maximum number of slots; a client has one, with the load `closed` as many as its window.
const MOST_SLOTS: u128 = 1 << 20;
/// Maximum number of messages in a run with the load `open`.
const MOST_EVENTS: u128 = 2_000_000_000;

impl Params {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If a parameter is out of range; the text says why.
    pub fn check(&self) -> Result<(), String> {
        self.handler.check()?;
        let need = |good: bool, what: &str| if good { Ok(()) } else { Err(what.to_owned()) };
        need(
            self.duration > 0 && self.duration <= 86_400 * SECOND,
            "`duration` must be above 0 and at most 1d",
        )?;
        need(self.warmup < self.duration, "`warmup` must be shorter than `duration`")?;
        need((1..=1 << 24).contains(&self.message), "`message` must be 1 byte to 16 MiB")?;
        need(self.sockets > 0 && self.clients > 0, "`sockets` and `clients` must be above 0")?;
        need(self.samples == 0 || self.duration / self.samples <= 1 << 20, "too many samples")?;
        let window = match &self.load {
            Load::Open { rates, burst, .. } => {
                need(*burst > 0, "`burst` must be at least 1")?;
                need(rates.first().is_some_and(|r| r.0 == 0), "`rates` must begin at 0")?;
                need(rates.windows(2).all(|w| w[0].0 < w[1].0), "`rates` must ascend in time")?;
                let most = rates.iter().map(|r| r.1).max().unwrap_or(0);
                let each = u128::from(most) * u128::from(self.duration / SECOND + 1)
                    / u128::from(self.message);
                let all = each * u128::from(self.sockets) * u128::from(self.clients);
                need(all <= MOST_EVENTS, "too many messages")?;
                1
            }
            Load::Closed { window, rto, jitter, link, .. } => {
                need(*window > 0 && *link > 0 && *rto > 0, "window, link and rto must be above 0")?;
                need((0.0..=1.0).contains(jitter), "`jitter` must be between 0 and 1")?;
                *window
            }
        };
        let slots = u128::from(self.sockets) * u128::from(self.clients) * u128::from(window);
        need(slots <= MOST_SLOTS, "too many clients")
    }
}
