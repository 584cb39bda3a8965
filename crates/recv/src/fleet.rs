//! Many clients in one process, one thread each, for a given time.

use crate::send::Client;
use crate::sender::{Counters, End, Mode, Settings};
use crate::server::Limits;
use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Stream};
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::io;
use std::net::SocketAddr;

/// Largest number of clients.
const MOST: u32 = 1000;
/// Longest wait without a check of the time.
const NAP: Nanos = 20 * MILLISECOND;

/// Pattern of sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Load {
    /// One message at a time; the next follows the acknowledgement.
    Closed {
        /// Whether the acknowledgement means that the handler has processed the message, not only
        /// that it is buffered.
        processed: bool,
    },
    /// Messages at exponential intervals.
    Open {
        /// Rate of each client in bytes/s from a time (in ns) on, in order of time.
        rates: Vec<(Nanos, u64)>,
    },
}

/// Workload of the clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The server.
    pub to: SocketAddr,
    /// Number of clients.
    pub clients: u32,
    /// Bytes of a message.
    pub message: u32,
    /// Duration of sending in nanoseconds.
    pub duration: Nanos,
    /// Pattern of sending.
    pub load: Load,
    /// Largest rate of each client in bytes/s.
    pub rate: Option<u64>,
    /// Least retransmission timeout in nanoseconds.
    pub timeout: Nanos,
    /// Random addition to each client's timeout, as a part of it, so that clients do not
    /// synchronise.
    pub jitter: f64,
    /// Seed of all draws.
    pub seed: u64,
}

impl Params {
    /// Checks the workload.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), &'static str> {
        let need = |good: bool, why| if good { Ok(()) } else { Err(why) };
        need((1..=MOST).contains(&self.clients), "there are 1 to 1000 clients")?;
        let most = Limits::default().message;
        need((1..=most).contains(&self.message), "a message has 1 byte to 4 MiB")?;
        need(self.duration <= 3600 * SECOND, "they send for up to an hour")?;
        need(self.rate != Some(0), "a rate is above 0")?;
        need((1..=60 * SECOND).contains(&self.timeout), "a timeout is above 0, up to a minute")?;
        need((0.0..=1.0).contains(&self.jitter), "the jitter must be between 0 and 1")?;
        if let Load::Open { rates } = &self.load {
            need(rates.first().is_some_and(|r| r.0 == 0), "rates begin at 0")?;
            need(rates.windows(2).all(|w| w[0].0 < w[1].0), "rates are in order of time")?;
        }
        Ok(())
    }
}

/// Sums of the clients' counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Datagrams sent.
    pub sent: u64,
    /// Retransmitted fragments.
    pub repeated: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Bytes of messages acknowledged.
    pub acknowledged: u64,
    /// Messages that could not be sent in time (open load only).
    pub held_back: u64,
    /// Clients that the server refused or did not answer.
    pub failed: u32,
}

/// Runs all clients and waits for their end.
///
/// # Errors
/// A socket or a thread that cannot be created, or fails.
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
    // Clients begin within 10 ms.
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
            // The server need not wait for more.
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

/// Gives the client a message; its content is irrelevant.
fn put(client: &mut Client, length: usize) {
    let mut message = client.sender.spare();
    message.resize(length, 7);
    let given = client.sender.push(message);
    debug_assert!(given.is_ok(), "there was room");
}
