//! A handler with a given speed, for measurements of receive buffers.
//!
//! Processing a message takes its length divided by the rate. The handler uses the CPU for a part
//! of this time, and waits for the rest, like a handler that waits for a disk. It also pauses. If
//! it gets less CPU time than it needs, for example because of a control group's quota, it becomes
//! slower.

use crate::packet::{Code, DIGEST, Id};
use crate::serve::{Handler, thread_cpu};
use crate::server::Message;
use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Pause, Pauses};
use sojourn_units::{MICROSECOND, Nanos, SECOND};
use std::time::{Duration, Instant};

/// Maximum delay in nanoseconds, caused by timers or other processes, that the handler compensates
/// by finishing later messages earlier.
const CATCH_UP: Nanos = 500 * MICROSECOND;

/// Parameters of the handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Processing rate in bytes/s outside pauses.
    pub rate: u64,
    /// Share of the processing time in which the handler uses the CPU, 0 to 1.
    #[serde(default)]
    pub cpu: f64,
    /// Parameters of the pauses.
    #[serde(default)]
    pub pauses: Vec<Pause>,
}

impl Params {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If a parameter is not allowed: the reason.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.rate == 0 {
            return Err("the handler's rate must be above 0");
        }
        if !(0.0..=1.0).contains(&self.cpu) {
            return Err("the handler's share of the CPU must be between 0 and 1");
        }
        for pause in &self.pauses {
            pause.check()?;
            if pause.every > 3600 * SECOND {
                return Err("the time between the starts of two pauses must be at most one hour");
            }
        }
        Ok(())
    }
}

/// A handler that discards messages after their processing time.
pub struct Work {
    params: Params,
    sources: Vec<Pauses>,
    /// Arrival time of the handler's first message; `None` before the first message.
    begin: Option<Instant>,
    /// Time at which the handler has finished all messages so far, in nanoseconds since `begin`.
    free: Nanos,
    /// Result of the CPU work, which prevents the compiler from removing the work.
    sum: u64,
}

impl Work {
    /// Returns a handler with these parameters. `seed` determines the random draws of its pauses.
    pub fn new(params: &Params, seed: u64) -> Self {
        let key = Key::new(seed, "handler");
        let source =
            |(i, pause): (usize, &Pause)| Pauses::new(*pause, key.child(i as u64).stream("pauses"));
        Self {
            sources: params.pauses.iter().enumerate().map(source).collect(),
            params: params.clone(),
            begin: None,
            free: 0,
            sum: 0,
        }
    }

    fn burn(&mut self, data: &[u8], span: Nanos) {
        let until = thread_cpu() + span;
        while thread_cpu() < until {
            // Work for about 10 µs between two readings of the clock, each of which takes about 0.1
            // µs.
            for &byte in data.iter().cycle().take(10_000) {
                self.sum = (self.sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            if data.is_empty() {
                std::hint::spin_loop();
            }
        }
    }
}

impl Handler for Work {
    fn message(&mut self, message: &Message) -> Result<(), Code> {
        let begin = *self.begin.get_or_insert_with(Instant::now);
        let clock = || begin.elapsed().as_nanos() as Nanos;
        let sleep = |until: Nanos| {
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(clock())));
        };
        let now = clock();
        if let Some(end) = self.sources.iter_mut().filter_map(|s| s.ends(now)).max() {
            sleep(end);
        }
        let length = message.data.len() as u128;
        let span = (length * u128::from(SECOND) / u128::from(self.params.rate)) as Nanos;
        self.free = self.free.max(clock().saturating_sub(CATCH_UP)) + span;
        if self.params.cpu > 0.0 {
            self.burn(&message.data, (span as f64 * self.params.cpu) as Nanos);
        }
        sleep(self.free);
        Ok(())
    }

    fn finish(&mut self, _: Id) -> (Code, [u8; DIGEST]) {
        let mut digest = [0; DIGEST];
        digest[..8].copy_from_slice(&self.sum.to_be_bytes());
        (Code::Done, digest)
    }

    fn gone(&mut self, _: Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(pauses: Vec<Pause>) -> Work {
        let params = Params { rate: 10_000_000, cpu: 0.2, pauses };
        params.check().unwrap();
        Work::new(&params, 1)
    }

    /// The handler must not be faster than its parameters state. It may be slower on a busy
    /// machine.
    #[test]
    fn it_takes_its_time_and_its_cpu() {
        let mut work = work(vec![]);
        let message = Message { connection: 1, number: 0, data: vec![3; 100_000] };
        let (begin, before) = (Instant::now(), thread_cpu());
        for _ in 0..10 {
            work.message(&message).unwrap();
        }
        assert!(begin.elapsed() >= Duration::from_millis(90), "{:?}", begin.elapsed());
        assert!(thread_cpu() - before >= 18_000_000);
    }

    #[test]
    fn invalid_handlers_are_refused() {
        let params = Params { rate: 1, cpu: 0.0, pauses: vec![] };
        assert!(params.check().is_ok());
        assert!(Params { rate: 0, ..params.clone() }.check().is_err());
        assert!(Params { cpu: f64::NAN, ..params.clone() }.check().is_err());
        let pause = Pause { every: 1, length: 1, jitter: 0.0 };
        assert!(Params { pauses: vec![pause], ..params }.check().is_err());
    }
}
