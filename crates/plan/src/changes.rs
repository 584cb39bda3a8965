//! Changes of links during a run: their description, and their order in time.
//!
//! The driver of a link, with a virtual or a real clock, reads the time of the next change from the
//! link's [`Schedule`] and passes the new parameters to the link. Changes are not random.

use sojourn_link::{Impairments, Params};
use sojourn_units::{Nanos, Rate, data};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A change of one direction of a link. Values that are `None` stay unchanged.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// First time of the change, in nanoseconds after the start of the run.
    pub at: Nanos,
    /// Period of repetition in nanoseconds; 0 for a single change.
    #[serde(default)]
    pub every: Nanos,
    /// New rate.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// New delay and impairments.
    #[serde(default)]
    pub wire: Option<Wire>,
}

/// Delay and impairments of a link, as in netem.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Wire {
    /// Propagation delay in nanoseconds.
    pub delay: Nanos,
    /// Jitter, loss and other impairments.
    pub impairments: Impairments,
}

impl Change {
    /// Returns how often the change occurs in a run of length `end`.
    pub fn times(&self, end: Nanos) -> u64 {
        match end.checked_sub(self.at) {
            None | Some(0) => 0,
            Some(_) if self.every == 0 => 1,
            Some(span) => (span - 1) / self.every + 1,
        }
    }

    fn apply(&self, params: &mut Params) {
        if let Some(rate) = self.rate {
            params.rate = Some(rate);
        }
        if let Some(wire) = self.wire {
            params.delay = wire.delay;
            params.impairments = wire.impairments;
        }
    }
}

/// The changes of one direction of a link in order of time. If several changes have the same time,
/// they are merged, and the last one in the plan takes precedence.
#[derive(Clone, Debug)]
pub struct Schedule {
    changes: Vec<Change>,
    /// Next time of each change, with the change's index; ordered by time, then by index.
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    params: Params,
}

impl Schedule {
    /// Returns the schedule of a link with the initial parameters `params`.
    pub fn new(params: &Params, changes: &[Change]) -> Self {
        let due = changes.iter().enumerate().map(|(i, change)| Reverse((change.at, i))).collect();
        Self { changes: changes.to_vec(), due, params: params.clone() }
    }

    /// Returns the time of the next change in nanoseconds after the start of the run; `None` after
    /// the last change.
    pub fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes the next change. Returns its time and the link's new parameters, in which the queue
    /// is always the initial one. Returns `None` after the last change.
    pub fn take_next(&mut self) -> Option<(Nanos, &Params)> {
        let at = self.next_at()?;
        while let Some(mut next) = self.due.peek_mut().filter(|next| next.0.0 == at) {
            let (_, i) = next.0;
            let change = &self.changes[i];
            change.apply(&mut self.params);
            match at.checked_add(change.every).filter(|later| *later > at) {
                Some(later) => *next = Reverse((later, i)),
                None => drop(std::collections::binary_heap::PeekMut::pop(next)),
            }
        }
        Some((at, &self.params))
    }
}
