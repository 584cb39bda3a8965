//! A rate as in the kernel's token buckets (`psched_ratecfg`): transmission times of packets.

use sojourn_units::{Nanos, SECOND, data};

/// The kernel's unit of scheduling times (`PSCHED_SHIFT`), in nanoseconds.
pub const TICK: Nanos = 64;

/// The framing that determines a packet's size on the line.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// The packet's own bytes.
    #[default]
    Ethernet,
    /// ATM cells of 53 bytes, each with 48 bytes of the packet.
    Atm,
}

/// A rate, and the bytes that the line adds to each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Rate in bytes per second.
    pub bytes: u64,
    /// Nanoseconds per byte, times 2^`shift`; `shift` is as large as 32 bits allow.
    pub mult: u32,
    /// Exponent of the factor in `mult`.
    pub shift: u8,
    /// Bytes that the line adds to each packet.
    pub overhead: u16,
    /// Smallest size of a packet on the line in bytes, overhead included; a shorter packet counts
    /// as this size.
    pub mpu: u16,
    /// Framing of the line.
    pub layer: LinkLayer,
}

impl Speed {
    /// Returns a rate of `bytes` per second, which must be above 0.
    pub fn new(bytes: u64, overhead: u16, mpu: u16, layer: LinkLayer) -> Self {
        let (mut factor, mut shift) = (SECOND, 0);
        let mult = loop {
            // The kernel keeps only the low 32 bits.
            let mult = (factor / bytes) as u32;
            if mult >= 1 << 31 || factor >= 1 << 63 {
                break mult;
            }
            factor <<= 1;
            shift += 1;
        };
        Self { bytes, mult, shift, overhead, mpu, layer }
    }

    /// Returns the transmission time of a packet of `length` bytes, including the bytes that the
    /// line adds.
    #[inline]
    pub fn time(&self, length: u32) -> Nanos {
        let length = length.wrapping_add(self.overhead.into()).max(self.mpu.into());
        let length = match self.layer {
            LinkLayer::Ethernet => u64::from(length),
            LinkLayer::Atm => u64::from(length).div_ceil(48) * 53,
        };
        length.wrapping_mul(self.mult.into()) >> self.shift
    }

    /// Returns the transmission time of `bytes` as `tc` passes it to the kernel: rounded down to
    /// ticks, without the bytes that the line adds.
    pub fn depth(&self, bytes: u32) -> Nanos {
        // `tc` converts to microseconds and then to ticks, and rounds down each time.
        let micros = (f64::from(bytes) / self.bytes as f64 * 1e6) as u32;
        (f64::from(micros) * 15.625) as u64 * TICK
    }

    /// Returns the approximate length of the longest packet with at most this transmission time, in
    /// bytes.
    pub fn length(&self, time: Nanos) -> u64 {
        let length = time.wrapping_mul(self.bytes) / SECOND;
        let length = match self.layer {
            LinkLayer::Ethernet => length,
            LinkLayer::Atm => length / 53 * 48,
        };
        length.saturating_sub(self.overhead.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn speed(bytes: u64) -> Speed {
        Speed::new(bytes, 0, 0, LinkLayer::Ethernet)
    }

    /// Values from recordings of the kernel.
    #[test]
    fn rates_are_the_kernels() {
        for (bytes, mult, shift) in [
            (1_250_000, 3_355_443_200, 22),
            (750_000, 2_796_202_666, 21),
            (2000, 4_096_000_000, 13),
            (5_000_000_000, 3_435_973_836, 34),
        ] {
            assert_eq!((speed(bytes).mult, speed(bytes).shift), (mult, shift), "{bytes}");
        }
        assert_eq!(speed(1_250_000).time(10_240), 8_192_000);
        let line = |overhead, mpu, layer| Speed::new(250_000, overhead, mpu, layer);
        assert_eq!(line(10, 0, LinkLayer::Atm).time(8192), 171 * 53 * 4000);
        assert_eq!(line(24, 84, LinkLayer::Ethernet).time(40), 84 * 4000);
        assert_eq!(line(24, 84, LinkLayer::Ethernet).time(100), 124 * 4000);
        assert_eq!(line(10, 0, LinkLayer::Atm).length(53 * 4000 * 2), 86);
        assert_eq!(line(10, 0, LinkLayer::Ethernet).length(4000), 0);
    }

    proptest! {
        /// Lengths stay below 2^24 bytes, so that length times multiplier fits in 64 bits.
        #[test]
        fn time_is_the_length_over_the_rate(bytes in 1u64..1 << 40, length in 0u32..1 << 24) {
            let actual = speed(bytes).time(length);
            let exact = u128::from(length) * u128::from(SECOND) / u128::from(bytes);
            // The multiplier has at least 31 significant bits.
            let off = exact.abs_diff(actual.into());
            prop_assert!(off <= 1 + exact / (1 << 30), "{actual} {exact}");
        }

        #[test]
        fn rates_without_end_are_rates(bytes in 1u64.., length: u32) {
            let fast = speed(bytes);
            prop_assert!(fast.shift <= 34);
            prop_assert!(fast.time(length) <= fast.time(u32::MAX));
        }
    }
}
