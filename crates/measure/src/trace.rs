//! A 128-bit hash of all packet events. Each place (link or host) has a hash of its events in order
//! of time, and these hashes are combined.
//!
//! Two runs with equal hashes had the same events. Events at different places have no order among
//! each other, so the order in which a program processes different places does not matter. The
//! mixing function is this project's own. It uses only wrapping 64-bit arithmetic, and so gives the
//! same result on every platform. Each step is a bijection of the state, so the hashes of different
//! traces stay different, except by a chance collision.

/// Kind of a packet event. The numbers enter the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A host passed the packet to the network.
    Sent = 1,
    /// The packet arrived at a queue. If it came over a previous link, it left that link at the
    /// same time.
    Offered = 2,
    /// The transmission of the packet began.
    Departed = 3,
    /// A queue dropped the packet; `verdict` in [`TraceHash::add`] is the reason.
    Dropped = 4,
    /// A queue, or a line instead of a loss, set CE on the packet. The verdict is the reason.
    Marked = 5,
    /// An impairment of the link lost the packet.
    Lost = 6,
    /// An impairment of the link duplicated the packet.
    Duplicated = 7,
    /// An impairment of the link inverted a bit of the packet.
    Corrupted = 8,
    /// The destination host received the packet.
    Received = 9,
    /// The destination host discarded the packet, because it was damaged.
    Discarded = 10,
    /// A transmitter abandoned the packet, because the shared medium was busy at every attempt.
    Abandoned = 11,
}

/// The hash of the packet events at one place, or the combined hash of several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash {
    a: u64,
    b: u64,
    events: u64,
}

// Odd multipliers with well-distributed bits, from the fractions of the golden ratio and of the
// square root of 3.
const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xbb67_ae85_84ca_a73b;

impl Default for TraceHash {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceHash {
    /// Returns the hash of an empty trace.
    pub fn new() -> Self {
        Self { a: K0, b: K1, events: 0 }
    }

    /// Adds one event. `time` is in nanoseconds, `place` is the number of the link or host,
    /// `packet` the number of the packet, `size` its length in bytes, and `verdict` the reason or
    /// 0.
    #[inline]
    pub fn add(&mut self, time: u64, place: u32, kind: Kind, packet: u64, size: u32, verdict: u8) {
        // The simulator's frames are shorter than 2^24 bytes.
        let what = u64::from(place) << 32
            | u64::from(size & 0x00ff_ffff) << 8
            | u64::from((kind as u8) << 4 | (verdict & 0x0f));
        self.mix(time, what, packet);
        self.events += 1;
    }

    #[inline]
    fn mix(&mut self, time: u64, what: u64, packet: u64) {
        let a = (self.a ^ time).wrapping_mul(K0);
        let b = (self.b ^ what).wrapping_mul(K1);
        let a = a ^ (a >> 32);
        let b = (b ^ (b >> 29)).wrapping_add(packet.wrapping_mul(K0));
        self.a = a.wrapping_add(b.rotate_left(23));
        self.b = b ^ self.a;
    }

    /// Returns the combined hash of several places, which must be given in a fixed order.
    pub fn of_places(places: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::new();
        for (number, place) in (0..).zip(places) {
            let value = place.value();
            all.mix((value >> 64) as u64, number, value as u64);
            all.events += place.events;
        }
        all
    }

    /// Returns the number of events that were added.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the hash of the events so far.
    pub fn value(&self) -> u128 {
        let (mut a, mut b) = (self.a ^ self.events, self.b);
        for _ in 0..4 {
            a = (a ^ (b >> 31)).wrapping_mul(K1);
            b = (b ^ (a >> 33)).wrapping_mul(K0);
        }
        u128::from(a ^ (b >> 32)) << 64 | u128::from(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> TraceHash {
        let mut hash = TraceHash::new();
        for i in 0..1000u64 {
            hash.add(i * 1_000_003, (i % 7) as u32, Kind::Offered, i / 2, 1514, (i % 3) as u8);
        }
        hash
    }

    #[test]
    fn golden() {
        assert_eq!(format!("{:032x}", TraceHash::new().value()), GOLDEN_EMPTY);
        assert_eq!(format!("{:032x}", sample().value()), GOLDEN_SAMPLE);
    }
    const GOLDEN_EMPTY: &str = "ea793f01dde5ff792304bcf02ad51c3f";
    const GOLDEN_SAMPLE: &str = "420aa35fc71fc34bb560fc967c741f1b";

    #[test]
    fn order_counts() {
        let (mut x, mut y) = (TraceHash::new(), TraceHash::new());
        x.add(1, 0, Kind::Offered, 1, 100, 0);
        x.add(1, 0, Kind::Offered, 2, 100, 0);
        y.add(1, 0, Kind::Offered, 2, 100, 0);
        y.add(1, 0, Kind::Offered, 1, 100, 0);
        assert_ne!(x.value(), y.value());
    }

    #[test]
    fn every_place_and_its_order_count() {
        let empty = TraceHash::new();
        let value = |places: &[TraceHash]| TraceHash::of_places(places.iter().copied()).value();
        let places = [value(&[sample()]), value(&[sample(), empty]), value(&[empty, sample()])];
        assert!(places[0] != places[1] && places[1] != places[2] && places[0] != places[2]);
        assert_eq!(TraceHash::of_places([sample(), sample()]).events(), 2000);
    }

    proptest! {
        #[test]
        fn every_field_counts(time: u64, place: u32, packet: u64, size in 0u32..1 << 24, bit in 0u32..64) {
            let one = |t, p, k, n, s, v| {
                let mut hash = sample();
                hash.add(t, p, k, n, s, v);
                hash.value()
            };
            let base = one(time, place, Kind::Dropped, packet, size, 1);
            prop_assert_ne!(base, one(time ^ (1 << bit), place, Kind::Dropped, packet, size, 1));
            prop_assert_ne!(base, one(time, place ^ (1 << (bit % 32)), Kind::Dropped, packet, size, 1));
            prop_assert_ne!(base, one(time, place, Kind::Lost, packet, size, 1));
            prop_assert_ne!(base, one(time, place, Kind::Dropped, packet ^ (1 << bit), size, 1));
            prop_assert_ne!(base, one(time, place, Kind::Dropped, packet, size ^ (1 << (bit % 24)), 1));
            prop_assert_ne!(base, one(time, place, Kind::Dropped, packet, size, 2));
        }
    }
}
