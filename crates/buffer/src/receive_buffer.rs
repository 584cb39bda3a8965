//! The buffer: packets in order of arrival, within the size that a policy sets.
//!
//! Invariants: the occupied size is the sum of the stored packets and never above the size; arrived
//! = accepted + discarded and accepted = processed + stored + reserved + abandoned, in packets and
//! in bytes.

use crate::family::{Params, Policy};
use crate::observation::{Memory, Observation, Reason};
use sojourn_measure::Count;
use sojourn_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// Counters of a buffer since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Offered.
    pub arrived: Count,
    /// Put in.
    pub accepted: Count,
    /// Discarded for lack of room.
    pub discarded: Count,
    /// Taken out.
    pub processed: Count,
    /// Reservations for data that never arrived in full.
    pub abandoned: Count,
}

/// A packet taken from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// The packet.
    pub item: T,
    /// Charged bytes.
    pub bytes: Bytes,
    /// Time at which it was stored.
    pub arrived: Nanos,
}

/// A receive buffer.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer<T> {
    params: Params,
    policy: Policy,
    /// Whether the policy decides before each packet, not only in [`ReceiveBuffer::tick`].
    each: bool,
    size: Bytes,
    reason: Reason,
    memory: Option<Memory>,
    occupied: Bytes,
    /// Occupied bytes that are reserved for incomplete data.
    reserved: Bytes,
    items: VecDeque<Taken<T>>,
    counters: Counters,
    /// Greatest size and occupancy so far.
    peaks: (Bytes, Bytes),
}

impl<T> ReceiveBuffer<T> {
    /// Returns an empty buffer. With `each` the policy decides before each packet.
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

    /// Replaces the policy; stored packets remain.
    pub fn set_policy(&mut self, now: Nanos, params: Params) {
        self.policy = Policy::new(&params);
        self.params = params;
        self.ask(now, 0);
    }

    /// Sets the known state of memory.
    pub fn set_memory(&mut self, memory: Option<Memory>) {
        self.memory = memory;
    }

    /// Lets the policy decide as from outside, without a packet about to be stored.
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

    /// Stores a packet, or returns it if it does not fit.
    ///
    /// # Errors
    /// The packet, which counts as discarded.
    #[inline]
    pub fn offer(&mut self, now: Nanos, bytes: Bytes, item: T) -> Result<(), T> {
        if self.reserve(now, bytes) {
            self.complete(now, bytes, item);
            Ok(())
        } else {
            Err(item)
        }
    }

    /// Reserves room for data that arrive in parts. Returns false if there is no room; the data
    /// count as discarded.
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

    /// Stores data for which room was reserved.
    #[inline]
    pub fn complete(&mut self, now: Nanos, bytes: Bytes, item: T) {
        self.reserved -= bytes;
        self.items.push_back(Taken { item, bytes, arrived: now });
    }

    /// Releases a reservation.
    pub fn release(&mut self, bytes: Bytes) {
        self.occupied -= bytes;
        self.reserved -= bytes;
        self.counters.abandoned.count(bytes);
    }

    /// Returns the bytes that the buffer could hold at once if needed. Senders may rely on it.
    pub fn potential(&self) -> Bytes {
        self.params.potential(self.size, self.reason)
    }

    /// Returns the packet that is next in order.
    pub fn first(&self) -> Option<&Taken<T>> {
        self.items.front()
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn take(&mut self) -> Option<Taken<T>> {
        let taken = self.items.pop_front()?;
        self.occupied -= taken.bytes;
        self.counters.processed.count(taken.bytes);
        // Memory of a burst is returned to the machine when the size shrinks.
        if self.items.is_empty() && self.items.capacity() > 4096 {
            self.items = VecDeque::new();
        }
        Some(taken)
    }

    /// Returns the policy's parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Size now.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Returns the reason of the present size.
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

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the greatest size so far, in bytes.
    pub fn peak_size(&self) -> Bytes {
        self.peaks.0
    }

    /// Returns the greatest occupancy so far, in bytes.
    pub fn peak_occupied(&self) -> Bytes {
        self.peaks.1
    }

    /// Returns the counters.
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
            let mut store = ReceiveBuffer::new(Params::parse(texts[policies[0]]).unwrap(), each);
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
