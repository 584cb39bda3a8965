//! The state of a request: acknowledged, failed, timed out or pending.
//!
//! Source: Cassandra's `AbstractWriteResponseHandler` and `ReadCallback`. If the replicas known to
//! be up cannot satisfy a request, it is refused immediately (*unavailable*) and changes nothing.
//! If so many replicas fail that the remaining ones cannot satisfy the request, it ends with an
//! *error*. If too few replicas answer in time, the request has *timed out*, and its effect is
//! unknown.

use super::{Need, NodeId};

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Enough replicas for the consistency level have answered.
    Acknowledged,
    /// Too few replicas were known to be up, so the request was not sent.
    Unavailable,
    /// Too many replicas failed, or no node could coordinate the request.
    Error,
    /// Too few replicas answered in time; the effect is unknown.
    TimedOut,
}

/// A coordinator's count of the answers to a request.
#[derive(Clone, Debug)]
pub struct Tally {
    need: Need,
    /// Replicas that have been asked and have not answered, with their data centres.
    waiting: Vec<(NodeId, u32)>,
    /// Number of answers: for [`Need::Each`] by data centre, otherwise the total at index 0.
    counted: Vec<u32>,
    over: bool,
}

impl Tally {
    /// Returns the tally of a request to the replicas `asked`, which are given with their data
    /// centres.
    ///
    /// # Errors
    /// [`Outcome::Unavailable`] if these replicas cannot satisfy the need.
    pub fn new(need: Need, asked: &[(NodeId, u32)]) -> Result<Self, Outcome> {
        if !need.met_by(asked.iter().map(|&(_, dc)| dc)) {
            return Err(Outcome::Unavailable);
        }
        let slots = match &need {
            Need::Each { counts } => counts.len(),
            _ => 1,
        };
        Ok(Self { need, waiting: asked.to_vec(), counted: vec![0; slots], over: false })
    }

    /// Adds a replica that is asked later, for example by a speculative retry.
    pub fn ask(&mut self, node: NodeId, data_centre: u32) {
        self.waiting.push((node, data_centre));
    }

    /// Records a replica's answer. Returns the outcome if this answer decides it. An answer of a
    /// replica that was not asked or has already answered is ignored.
    pub fn answer(&mut self, node: NodeId) -> Option<Outcome> {
        let data_centre = self.take(node)?;
        match &self.need {
            Need::Any { .. } => self.counted[0] += 1,
            Need::Local { data_centre: local, .. } => {
                self.counted[0] += u32::from(*local == data_centre);
            }
            Need::Each { .. } => {
                if let Some(count) = self.counted.get_mut(data_centre as usize) {
                    *count += 1;
                }
            }
        }
        let met = match &self.need {
            Need::Any { count } | Need::Local { count, .. } => self.counted[0] >= *count,
            Need::Each { counts } => {
                self.counted.iter().zip(counts).all(|(have, want)| have >= want)
            }
        };
        self.end(met, Outcome::Acknowledged)
    }

    /// Records a replica's failure. Returns the outcome if the remaining replicas cannot satisfy
    /// the need.
    pub fn fail(&mut self, node: NodeId) -> Option<Outcome> {
        self.take(node)?;
        let hopeless = match &self.need {
            Need::Any { count } => self.counted[0] as usize + self.waiting.len() < *count as usize,
            Need::Local { data_centre, count } => {
                let left = self.waiting.iter().filter(|w| w.1 == *data_centre).count();
                self.counted[0] as usize + left < *count as usize
            }
            Need::Each { counts } => counts.iter().enumerate().any(|(dc, &want)| {
                let left = self.waiting.iter().filter(|w| w.1 as usize == dc).count();
                self.counted[dc] as usize + left < want as usize
            }),
        };
        self.end(hopeless, Outcome::Error)
    }

    /// Ends the request at its timeout. Returns the outcome unless it was decided earlier.
    pub fn expire(&mut self) -> Option<Outcome> {
        self.end(true, Outcome::TimedOut)
    }

    /// Returns whether the request has an outcome.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the replicas that have been asked and have not answered.
    pub fn waiting(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.waiting.iter().map(|&(node, _)| node)
    }

    fn take(&mut self, node: NodeId) -> Option<u32> {
        let at = self.waiting.iter().position(|w| w.0 == node)?;
        Some(self.waiting.swap_remove(at).1)
    }

    fn end(&mut self, now: bool, outcome: Outcome) -> Option<Outcome> {
        if !now || self.over {
            return None;
        }
        self.over = true;
        Some(outcome)
    }
}

/// Number of requests by outcome. A request without an outcome is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Number of all requests.
    pub offered: u64,
    /// Number of acknowledged requests.
    pub acknowledged: u64,
    /// Number of requests refused because too few replicas were known to be up.
    pub unavailable: u64,
    /// Number of requests that ended with an error.
    pub errors: u64,
    /// Number of requests that timed out.
    pub timed_out: u64,
}

impl Ledger {
    /// Counts one outcome.
    pub fn book(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Acknowledged => self.acknowledged += 1,
            Outcome::Unavailable => self.unavailable += 1,
            Outcome::Error => self.errors += 1,
            Outcome::TimedOut => self.timed_out += 1,
        }
    }

    /// Returns the number of requests that have an outcome.
    pub fn ended(&self) -> u64 {
        self.acknowledged + self.unavailable + self.errors + self.timed_out
    }

    /// Returns the number of pending requests; `None` if there are more outcomes than requests,
    /// which is a bug.
    pub fn pending(&self) -> Option<u64> {
        self.offered.checked_sub(self.ended())
    }

    /// Adds the counts of another ledger.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.acknowledged += other.acknowledged;
        self.unavailable += other.unavailable;
        self.errors += other.errors;
        self.timed_out += other.timed_out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, Placement};
    use proptest::prelude::*;
    use sojourn_units::declare::Choices;

    const THREE: [(NodeId, u32); 3] = [(0, 0), (1, 0), (2, 0)];

    fn quorum_of_three() -> Tally {
        let placement = Placement::Simple { factor: 3 };
        Tally::new(Level::Quorum.need(&placement, 0), &THREE).unwrap()
    }

    #[test]
    fn the_second_of_three_decides() {
        let mut tally = quorum_of_three();
        assert_eq!(tally.answer(2), None);
        assert_eq!(tally.answer(2), None, "a second answer of a replica is ignored");
        assert_eq!(tally.answer(0), Some(Outcome::Acknowledged));
        assert_eq!((tally.answer(1), tally.expire()), (None, None));
    }

    #[test]
    fn failures_decide_when_the_rest_cannot() {
        let mut tally = quorum_of_three();
        assert_eq!(tally.fail(0), None);
        assert_eq!(tally.fail(1), Some(Outcome::Error));
        let mut slow = quorum_of_three();
        slow.answer(0);
        assert_eq!(slow.expire(), Some(Outcome::TimedOut));
        assert_eq!(slow.answer(1), None);
    }

    #[test]
    fn each_quorum_waits_for_every_data_centre() {
        let placement = Placement::NetworkTopology { factors: vec![3, 1] };
        let need = Level::EachQuorum.need(&placement, 0);
        let asked = [(0, 0), (1, 0), (2, 0), (3, 1)];
        let mut tally = Tally::new(need.clone(), &asked).unwrap();
        assert_eq!([0, 1, 2].map(|n| tally.answer(n)), [None; 3]);
        assert_eq!(tally.answer(3), Some(Outcome::Acknowledged));
        assert_eq!(Tally::new(need, &asked[..3]).unwrap_err(), Outcome::Unavailable);
    }

    proptest! {
        #[test]
        fn there_is_one_outcome_and_the_books_balance(
            steps in proptest::collection::vec((0u32..5, 0u8..3), 0..40),
            level in 0usize..8,
        ) {
            let placement = Placement::NetworkTopology { factors: vec![3, 2] };
            let asked = [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1)];
            let mut ledger = Ledger { offered: 1, ..Ledger::default() };
            let need = Level::ALL[level].need(&placement, 0);
            let mut tally = Tally::new(need, &asked).unwrap();
            for (node, step) in steps {
                let outcome = match step {
                    0 => tally.answer(node),
                    1 => tally.fail(node),
                    _ => if node == 0 { tally.expire() } else { None },
                };
                if let Some(outcome) = outcome {
                    ledger.book(outcome);
                }
                prop_assert_eq!(ledger.ended(), u64::from(tally.is_over()));
                prop_assert_eq!(ledger.pending(), Some(u64::from(!tally.is_over())));
            }
        }
    }
}
