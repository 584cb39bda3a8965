//! `transfer`: one transfer of data, or several in sequence with think times.

use crate::application::AppParams;
use crate::kinds::{positive, repeat, size, time};
use sojourn_random::{Distribution, Key, Stream};
use sojourn_units::{Bytes, Nanos, params};
use std::convert::Infallible;

params! {
    "transfer": "transfers of a given size, each on its own connection";

    /// Parameters of `transfer`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Application bytes of a transfer: a size, or a distribution such as pareto2(30kb,1.5).
        size: Distribution = size("1mb").check(positive),
        /// Number of transfers; `None` for transfers without end.
        repeat: Option<u32> = repeat().docs(&[
            ("repeat", "Number of transfers, one after the other."),
            ("forever", "Transfers without end."),
        ]),
        /// Time from the end of a transfer to the start of the next: a time or a distribution.
        think: Distribution = time("0"),
    }
}

impl AppParams for Params {
    type Source = Infallible;

    fn distributions(&self) -> Vec<Distribution> {
        vec![self.size, self.think]
    }

    fn ends(&self) -> bool {
        self.repeat.is_some()
    }
}

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Start time.
    pub at: Nanos,
    /// Bytes to send.
    pub bytes: Bytes,
}

/// The transfers of one flow.
#[derive(Clone, Debug)]
pub struct Transfers {
    params: Params,
    sizes: Stream,
    thoughts: Stream,
    done: u32,
}

impl Transfers {
    /// Returns the transfers of the flow with this `key`.
    pub fn new(params: &Params, key: Key) -> Self {
        Self { params: *params, sizes: key.stream("size"), thoughts: key.stream("think"), done: 0 }
    }

    /// Returns the next transfer; `None` after the last. `time` is the start of the flow in the
    /// first call, and the end of the previous transfer in later calls.
    pub fn after(&mut self, time: Nanos) -> Option<Job> {
        if self.params.repeat.is_some_and(|repeat| self.done >= repeat) {
            return None;
        }
        let think =
            if self.done == 0 { 0 } else { self.params.think.sample_nanos(&mut self.thoughts) };
        self.done = self.done.saturating_add(1);
        Some(Job { at: time + think, bytes: self.params.size.sample_count(&mut self.sizes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::SECOND;

    fn params(text: &str) -> Params {
        match App::parse(text).unwrap() {
            App::Transfer(params) => params,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_transfer_by_default() {
        let mut one = Transfers::new(&params("transfer size 300kb"), Key::new(1, "t"));
        assert_eq!(one.after(5), Some(Job { at: 5, bytes: 300 << 10 }));
        assert_eq!(one.after(9), None);
    }

    #[test]
    fn repeats_think_between_but_not_before() {
        let mut three =
            Transfers::new(&params("transfer size 10kb repeat 3 think 2s"), Key::new(1, "t"));
        assert_eq!(three.after(SECOND).map(|job| job.at), Some(SECOND));
        assert_eq!(three.after(4 * SECOND).map(|job| job.at), Some(6 * SECOND));
        assert_eq!(three.after(7 * SECOND).map(|job| job.at), Some(9 * SECOND));
        assert_eq!(three.after(10 * SECOND), None);
    }

    #[test]
    fn sizes_do_not_depend_on_when_transfers_end() {
        let words = params("transfer size pareto2(30kb,1.5) forever think exp(1s)");
        let sizes = |pace: Nanos| -> Vec<Bytes> {
            let mut source = Transfers::new(&words, Key::new(3, "t"));
            let mut now = SECOND;
            (0..500)
                .map(|_| {
                    let job = source.after(now).unwrap();
                    now = job.at + pace;
                    job.bytes
                })
                .collect()
        };
        assert_eq!(sizes(1), sizes(SECOND));
        assert_eq!(sizes(1)[..4], [5114, 31_434, 7923, 2649]);
    }
}
