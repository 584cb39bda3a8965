//! A number of clients in one process, one thread each, that send for a given time.

use crate::send::Client;
use crate::sender::{Counters, End, Mode, Settings};
use crate::server::Limits;
use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Stream};
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::io;
use std::net::SocketAddr;

/// Maximum number of clients.
const MOST: u32 = 1000;
/// Maximum wait of a client between two checks of the time, in nanoseconds.
const NAP: Nanos = 20 * MILLISECOND;

/// Pattern in which a client sends messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Load {
    /// One message at a time: the next one follows the acknowledgement of the previous one.
    Closed {
        /// Whether the client waits until the handler has processed the message. If false, it waits
        /// only until the message is in the buffer.
        processed: bool,
    },
    /// Messages at exponentially distributed intervals, independent of acknowledgements.
    Open {
        /// Rate of each client: each pair is a time in nanoseconds and the rate in bytes/s from
        /// then on. The times ascend.
        rates: Vec<(Nanos, u64)>,
    },
}

/// Workload of the clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Address of the server.
    pub to: SocketAddr,
    /// Number of clients.
    pub clients: u32,
    /// Length of a message in bytes.
    pub message: u32,
    /// Time for which the clients send, in nanoseconds.
    pub duration: Nanos,
    /// Pattern in which each client sends messages.
    pub load: Load,
    /// Maximum rate of each client in bytes/s; `None` for no limit.
    pub rate: Option<u64>,
    /// Minimum retransmission timeout in nanoseconds.
    pub timeout: Nanos,
    /// Maximum random increase of each client's timeout, relative to `timeout`, 0 to 1. It prevents
    /// synchronisation of the clients.
    pub jitter: f64,
    /// Seed of all random draws.
    pub seed: u64,
}

impl Params {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If a parameter is not allowed: the reason.
    pub fn check(&self) -> Result<(), &'static str> {
        let need = |good: bool, why| if good { Ok(()) } else { Err(why) };
        need((1..=MOST).contains(&self.clients), "the number of clients must be 1 to 1000")?;
        let most = Limits::default().message;
        need(
            (1..=most).contains(&self.message),
            "the length of a message must be 1 byte to 4 MiB",
        )?;
        need(self.duration <= 3600 * SECOND, "the duration must be at most one hour")?;
        need(self.rate != Some(0), "the rate must be above 0")?;
        need(
            (1..=60 * SECOND).contains(&self.timeout),
            "the timeout must be above 0 and at most one minute",
        )?;
        need((0.0..=1.0).contains(&self.jitter), "the jitter must be between 0 and 1")?;
        if let Load::Open { rates } = &self.load {
            need(rates.first().is_some_and(|r| r.0 == 0), "the first rate must begin at time 0")?;
            need(
                rates.windows(2).all(|w| w[0].0 < w[1].0),
                "the rates must be in ascending order of time",
            )?;
        }
        Ok(())
    }
}

/// Sums of all clients' counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of retransmitted fragments.
    pub repeated: u64,
    /// Number of timeouts.
    pub timeouts: u64,
    /// Bytes of acknowledged messages.
    pub acknowledged: u64,
    /// Number of messages that were omitted because the client's queue was full (open load only).
    pub held_back: u64,
    /// Number of clients whose connection ended early: refused, failed, or without an answer.
    pub failed: u32,
}

/// Runs all clients, and waits until they have ended.
///
/// # Errors
/// If a socket or thread cannot be created, or fails.
pub fn run(params: &Params) -> io::Result<Outcome> {
    let key = Key::new(params.seed, "clients");
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for i in 0..params.clients {
            let draws = key.child(u64::from(i)).stream("client");
            let name = format!("client-{i}");
            let thread = std::thread::Builder::new().name(name);
            threads.push(thread.spawn_scoped(scope, move || one(params, draws))?);
        }
        let mut all = Outcome::default();
        for thread in threads {
            let (counters, held_back, failed) =
                thread.join().map_err(|_| io::Error::other("a client panicked"))??;
            all.sent += counters.sent;
            all.repeated += counters.repeated;
            all.timeouts += counters.timeouts;
            all.acknowledged += counters.acknowledged;
            all.held_back += held_back;
            all.failed += u32::from(failed);
        }
        Ok(all)
    })
}

fn one(params: &Params, mut draws: Stream) -> io::Result<(Counters, u64, bool)> {
    let length = params.message as usize;
    let wait = params.timeout as f64 * (1.0 + params.jitter * draws.uniform());
    let settings = Settings {
        mode: match params.load {
            Load::Closed { processed } => Mode::StopAndWait { processed },
            Load::Open { .. } => Mode::Windowed,
        },
        rate: params.rate,
        timeout: wait as Nanos,
        queue: 4 * u64::from(params.message),
        ..Settings::default()
    };
    // Clients begin at random times within 10 ms.
    std::thread::sleep(std::time::Duration::from_nanos(draws.below(10 * MILLISECOND)));
    let mut client = Client::new(params.to, settings)?;
    let begin = client.now();
    let (mut due, mut held_back) = (0, 0);
    loop {
        let now = client.now();
        let at = now - begin;
        if at >= params.duration {
            client.sender.abandon();
        }
        if let Some(end) = client.sender.end() {
            // Sends a message that ends the connection, so the server need not wait for a timeout.
            client.step(now, 0)?;
            return Ok((client.sender.counters(), held_back, end != End::Abandoned));
        }
        let mut next = params.duration;
        match &params.load {
            Load::Closed { .. } => {
                while client.sender.has_room(length) {
                    put(&mut client, length);
                }
            }
            Load::Open { rates } => {
                while due <= at {
                    let rate = rates.iter().rev().find(|r| r.0 <= due).map_or(0, |r| r.1);
                    if rate == 0 {
                        due = rates.iter().find(|r| r.0 > due).map_or(params.duration, |r| r.0);
                        continue;
                    }
                    if client.sender.has_room(length) {
                        put(&mut client, length);
                    } else {
                        held_back += 1;
                    }
                    let mean = length as f64 * SECOND as f64 / rate as f64;
                    due += (-mean * (1.0 - draws.uniform()).ln()) as Nanos + 1;
                }
                next = due;
            }
        }
        let most = next.min(params.duration).saturating_sub(at);
        client.step(now, most.min(NAP))?;
    }
}

/// Gives the client a message to send. Its content does not matter.
fn put(client: &mut Client, length: usize) {
    let mut message = client.sender.spare();
    message.resize(length, 7);
    let given = client.sender.push(message);
    debug_assert!(
        given.is_ok(),
        "the sender must accept a message after `has_room` has returned true"
    );
}
