//! Links that change on the way: what is written, and when it happens.
//!
//! What drives a link, be it a virtual clock or a real one, asks its [`Schedule`] when the next change
//! is due and hands what it gives to the link. Nothing is random here.

use serde::{Deserialize, Serialize};
use sojourn_link::{Impairments, Params};
use sojourn_units::{Nanos, Rate};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What one direction of a link becomes at a time. What is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, from the start of the run.
    pub at: Nanos,
    /// Again so much later each time; only once if 0.
    #[serde(default)]
    pub every: Nanos,
    /// The rate from then on.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Delay and impairments from then on.
    #[serde(default)]
    pub wire: Option<Wire>,
}

/// What a wire does to packets, as netem says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wire {
    /// Propagation delay.
    pub delay: Nanos,
    /// The rest.
    pub impairments: Impairments,
}

impl Change {
    /// How often it happens before `end`.
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

/// The changes of one direction of a link in the order of time. Those of one time are one, and among
/// them the last that is written has the last word.
#[derive(Clone, Debug)]
pub struct Schedule {
    changes: Vec<Change>,
    /// When each happens next, by time and then by number.
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    params: Params,
}

impl Schedule {
    /// The changes of a link that begins with `params`.
    pub fn new(params: &Params, changes: &[Change]) -> Self {
        let due = changes.iter().enumerate().map(|(i, change)| Reverse((change.at, i))).collect();
        Self { changes: changes.to_vec(), due, params: params.clone() }
    }

    /// When the next change is, from the start of the run; none if there is none any more.
    pub fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next change: when it is, and the parameters from then on. Their queue is the link's at
    /// its beginning.
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
