//! Changes of links during a run: their description and their times.
//!
//! The driver of a link, with a virtual or a real clock, asks the link's [`Schedule`] for the time
//! of the next change and passes the new parameters to the link. Nothing is random here.

use serde::{Deserialize, Serialize};
use sojourn_link::{Impairments, Params};
use sojourn_units::{Nanos, Rate};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A change of one direction of a link. A value that is `None` stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// First time, from the start of the run.
    pub at: Nanos,
    /// Period of repetition; only once if 0.
    #[serde(default)]
    pub every: Nanos,
    /// The new rate.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// The new delay and impairments.
    #[serde(default)]
    pub wire: Option<Wire>,
}

/// Effects of a wire on packets, in netem's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wire {
    /// Propagation delay.
    pub delay: Nanos,
    /// The rest.
    pub impairments: Impairments,
}

impl Change {
    /// Returns how often the change happens before `end`.
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

/// The changes of one direction of a link in the order of time. Changes at one time are merged; the
/// last one in the plan takes precedence.
#[derive(Clone, Debug)]
pub struct Schedule {
    changes: Vec<Change>,
    /// Next time of each change, sorted by time and then by number.
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    params: Params,
}

impl Schedule {
    /// Returns the changes of a link that begins with `params`.
    pub fn new(params: &Params, changes: &[Change]) -> Self {
        let due = changes.iter().enumerate().map(|(i, change)| Reverse((change.at, i))).collect();
        Self { changes: changes.to_vec(), due, params: params.clone() }
    }

    /// Returns the time of the next change from the start of the run, or `None` after the last.
    pub fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next change: returns its time and the new parameters. Their queue is the link's
    /// initial one.
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
