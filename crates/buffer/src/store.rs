//! The buffer itself: packets in order of arrival, within the size that a policy decides on.
//!
//! Invariants: what is occupied is the sum of what is stored and never above the size; arrived =
//! accepted + discarded and accepted = processed + stored + set aside + abandoned, in packets and in
//! bytes.

use crate::family::{Params, Policy};
use crate::observation::{Memory, Observation, Reason};
use sojourn_measure::Count;
use sojourn_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// What came to a buffer since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Offered.
    pub arrived: Count,
    /// Put in.
    pub accepted: Count,
    /// Refused for lack of room.
    pub discarded: Count,
    /// Taken out.
    pub processed: Count,
    /// Room set aside for what never came in full.
    pub abandoned: Count,
}

/// A packet taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// The packet.
    pub item: T,
    /// Bytes it was charged with.
    pub bytes: Bytes,
    /// When it was put in.
    pub arrived: Nanos,
}

/// A receive buffer.
#[derive(Clone, Debug)]
pub struct Store<T> {
    params: Params,
    policy: Policy,
    /// Whether the policy is asked before each packet, not only by [`Store::tick`].
    each: bool,
    size: Bytes,
    reason: Reason,
    memory: Option<Memory>,
    occupied: Bytes,
    /// Of this, set aside for what has not come in full.
    reserved: Bytes,
    items: VecDeque<Taken<T>>,
    counters: Counters,
    /// Greatest size and occupancy so far.
    peaks: (Bytes, Bytes),
}

impl<T> Store<T> {
    /// An empty buffer. With `each` the policy is asked before each packet.
    pub fn new(params: Params, each: bool) -> Self {
        let size = params.initial();
        Self {
            policy: Policy::new(&params),
            params,
            each,
            size,
            reason: Reason::Hold,
            memory: None,
            occupied: 0,
            reserved: 0,
            items: VecDeque::new(),
            counters: Counters::default(),
            peaks: (size, 0),
        }
    }

    /// Another policy from now on; what is stored stays.
    pub fn set_policy(&mut self, now: Nanos, params: Params) {
        self.policy = Policy::new(&params);
        self.params = params;
        self.ask(now, 0);
    }

    /// What is known of the memory.
    pub fn set_memory(&mut self, memory: Option<Memory>) {
        self.memory = memory;
    }

    /// Asks the policy, as from outside: nothing is about to be put in.
    pub fn tick(&mut self, now: Nanos) {
        self.ask(now, 0);
    }

    #[inline]
    fn ask(&mut self, now: Nanos, needed: Bytes) {
        let decision = self.policy.observe(&Observation {
            now,
            size: self.size,
            occupied: self.occupied,
            reserved: self.reserved,
            needed,
            discarded: self.counters.discarded.bytes,
            processed: Some(self.counters.processed.bytes),
            memory: self.memory,
        });
        (self.size, self.reason) = (decision.size, decision.reason);
        self.peaks.0 = self.peaks.0.max(self.size);
    }

    /// Puts a packet in, or gives it back if it does not fit.
    ///
    /// # Errors
    /// The packet, discarded and counted.
    #[inline]
    pub fn offer(&mut self, now: Nanos, bytes: Bytes, item: T) -> Result<(), T> {
        if self.reserve(now, bytes) {
            self.complete(now, bytes, item);
            Ok(())
        } else {
            Err(item)
        }
    }

    /// Sets room aside for what comes in parts. False if there is none: discarded and counted.
    #[inline]
    pub fn reserve(&mut self, now: Nanos, bytes: Bytes) -> bool {
        if self.each {
            self.ask(now, bytes);
        }
        self.counters.arrived.count(bytes);
        if self.occupied.saturating_add(bytes) > self.size {
            self.counters.discarded.count(bytes);
            return false;
        }
        self.counters.accepted.count(bytes);
        self.occupied += bytes;
        self.reserved += bytes;
        self.peaks.1 = self.peaks.1.max(self.occupied);
        true
    }

    /// Puts in what room was set aside for.
    #[inline]
    pub fn complete(&mut self, now: Nanos, bytes: Bytes, item: T) {
        self.reserved -= bytes;
        self.items.push_back(Taken { item, bytes, arrived: now });
    }

    /// Gives up room that was set aside.
    pub fn release(&mut self, bytes: Bytes) {
        self.occupied -= bytes;
        self.reserved -= bytes;
        self.counters.abandoned.count(bytes);
    }

    /// What the buffer could hold at once if it were asked for: what a sender may be told.
    pub fn potential(&self) -> Bytes {
        self.params.potential(self.size, self.reason)
    }

    /// The packet that is to be taken next.
    pub fn first(&self) -> Option<&Taken<T>> {
        self.items.front()
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn take(&mut self) -> Option<Taken<T>> {
        let taken = self.items.pop_front()?;
        self.occupied -= taken.bytes;
        self.counters.processed.count(taken.bytes);
        // A burst's room is given back to the machine with the size, not kept for ever.
        if self.items.is_empty() && self.items.capacity() > 4096 {
            self.items = VecDeque::new();
        }
        Some(taken)
    }

    /// The policy's settings.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Size now.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Why it is as it is.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Bytes stored.
    pub fn occupied(&self) -> Bytes {
        self.occupied
    }

    /// Packets stored.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Greatest size so far.
    pub fn peak_size(&self) -> Bytes {
        self.peaks.0
    }

    /// Greatest occupancy so far.
    pub fn peak_occupied(&self) -> Bytes {
        self.peaks.1
    }

    /// What came so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_conserves(
            each in any::<bool>(),
            policies in proptest::collection::vec(0..4usize, 1..4),
            steps in proptest::collection::vec((0..4u8, 0..200_000u64), 1..300),
        ) {
            let texts = ["static size 100kb", "on-demand", "rrda", "elastic patience 1ms"];
            let mut store = Store::new(Params::parse(texts[policies[0]]).unwrap(), each);
            let mut model = VecDeque::new();
            for (i, (what, value)) in steps.into_iter().enumerate() {
                let now = i as u64 * 1_000_000;
                match what {
                    0 => store.tick(now),
                    1 => prop_assert_eq!(store.take().map(|t| (t.item, t.bytes)), model.pop_front()),
                    2 if value < 10_000 => {
                        let text = texts[policies[i % policies.len()]];
                        store.set_policy(now, Params::parse(text).unwrap());
                    }
                    _ => match store.offer(now, value, i) {
                        Ok(()) => model.push_back((i, value)),
                        Err(item) => prop_assert_eq!(item, i),
                    },
                }
                let stored: Bytes = model.iter().map(|(_, bytes)| bytes).sum();
                let c = *store.counters();
                prop_assert_eq!((store.len(), store.occupied()), (model.len(), stored));
                prop_assert!(stored <= store.size() && store.size() <= store.peak_size());
                prop_assert_eq!(c.arrived.bytes, c.accepted.bytes + c.discarded.bytes);
                prop_assert_eq!(c.arrived.packets, c.accepted.packets + c.discarded.packets);
                prop_assert_eq!(c.accepted.bytes, c.processed.bytes + stored);
            }
        }
    }
}
