//! A receive buffer: packets in the order of arrival, in a buffer whose size a policy decides.
//!
//! Invariants: the occupied bytes are the sum over the stored and reserved packets, and never above
//! the size. In packets and in bytes, arrived = accepted + discarded, and accepted = processed +
//! stored + reserved + abandoned.

use crate::family::{Params, Policy};
use crate::observation::{Memory, Observation, Reason};
use sojourn_measure::Count;
use sojourn_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// Counters of a buffer since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were offered to the buffer.
    pub arrived: Count,
    /// Packets that were stored, or for which space was reserved.
    pub accepted: Count,
    /// Packets discarded because they did not fit.
    pub discarded: Count,
    /// Packets that were taken from the buffer.
    pub processed: Count,
    /// Reservations that were released because the data did not arrive completely.
    pub abandoned: Count,
}

/// A packet taken from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// The packet.
    pub item: T,
    /// Bytes that the packet occupied.
    pub bytes: Bytes,
    /// Time at which the packet was stored.
    pub arrived: Nanos,
}

/// A receive buffer.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer<T> {
    params: Params,
    policy: Policy,
    /// Whether the policy decides before each packet in addition to [`ReceiveBuffer::tick`].
    each: bool,
    size: Bytes,
    reason: Reason,
    memory: Option<Memory>,
    occupied: Bytes,
    /// Occupied bytes that are reserved for incomplete data.
    reserved: Bytes,
    items: VecDeque<Taken<T>>,
    counters: Counters,
    /// Greatest size and greatest number of occupied bytes so far.
    peaks: (Bytes, Bytes),
}

impl<T> ReceiveBuffer<T> {
    /// Returns an empty buffer. With `each`, the policy also decides before each packet.
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

    /// Replaces the policy; stored packets remain in the buffer.
    pub fn set_policy(&mut self, now: Nanos, params: Params) {
        self.policy = Policy::new(&params);
        self.params = params;
        self.ask(now, 0);
    }

    /// Sets the memory that the policy is shown; `None` if unknown.
    pub fn set_memory(&mut self, memory: Option<Memory>) {
        self.memory = memory;
    }

    /// Calls the policy without a packet that is about to be stored.
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

    /// Stores a packet if it fits.
    ///
    /// # Errors
    /// If the packet does not fit: the packet itself. It counts as discarded.
    #[inline]
    pub fn offer(&mut self, now: Nanos, bytes: Bytes, item: T) -> Result<(), T> {
        if self.reserve(now, bytes) {
            self.complete(now, bytes, item);
            Ok(())
        } else {
            Err(item)
        }
    }

    /// Reserves space for data that arrive in parts. Returns false if they do not fit; then they
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

    /// Stores data for which space was reserved.
    #[inline]
    pub fn complete(&mut self, now: Nanos, bytes: Bytes, item: T) {
        self.reserved -= bytes;
        self.items.push_back(Taken { item, bytes, arrived: now });
    }

    /// Releases a reservation whose data will not arrive completely.
    pub fn release(&mut self, bytes: Bytes) {
        self.occupied -= bytes;
        self.reserved -= bytes;
        self.counters.abandoned.count(bytes);
    }

    /// Returns the size in bytes that the buffer could have immediately. Senders may rely on it.
    pub fn potential(&self) -> Bytes {
        self.params.potential(self.size, self.reason)
    }

    /// Returns the oldest packet without removing it; `None` if the buffer is empty.
    pub fn first(&self) -> Option<&Taken<T>> {
        self.items.front()
    }

    /// Removes and returns the oldest packet; `None` if the buffer is empty.
    #[inline]
    pub fn take(&mut self) -> Option<Taken<T>> {
        let taken = self.items.pop_front()?;
        self.occupied -= taken.bytes;
        self.counters.processed.count(taken.bytes);
        // Releases the memory that a burst of packets has used.
        if self.items.is_empty() && self.items.capacity() > 4096 {
            self.items = VecDeque::new();
        }
        Some(taken)
    }

    /// Returns the policy's parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Current size in bytes.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Returns the reason for the current size.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Occupied bytes, including reserved ones.
    pub fn occupied(&self) -> Bytes {
        self.occupied
    }

    /// Number of stored packets.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether no packet is stored.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the greatest size so far, in bytes.
    pub fn peak_size(&self) -> Bytes {
        self.peaks.0
    }

    /// Returns the greatest number of occupied bytes so far.
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
