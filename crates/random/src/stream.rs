//! Streams of random draws, one for each purpose of each component.

use crate::philox;

/// Key of a component's streams: a run's seed and a hash of the component's path.
///
/// Streams with the same seed but different paths or purposes are disjoint parts of one Philox
/// sequence. Therefore adding, removing or changing a component does not change the draws of other
/// components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    seed: u64,
    path: u64,
}

impl Key {
    /// Returns the key of the component `name` in a run with this `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Self { seed, path: fnv1a(FNV_BASIS, name.as_bytes()) }
    }

    /// Returns the key of this component's part with the number `index`, such as one flow of a
    /// group.
    #[must_use]
    pub fn child(self, index: u64) -> Self {
        // The bytes 0xFE and 0xFF do not occur in UTF-8. Therefore a path with an index never
        // equals the name of another component.
        let path = fnv1a(fnv1a(self.path, &[0xFE]), &index.to_le_bytes());
        Self { path, ..self }
    }

    /// Returns the component's stream for `purpose`, such as "loss".
    pub fn stream(self, purpose: &str) -> Stream {
        let path = fnv1a(fnv1a(self.path, &[0xFF]), purpose.as_bytes());
        Stream::at(self.seed, mix(path))
    }
}

const FNV_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |h, &b| (h ^ u64::from(b)).wrapping_mul(FNV_PRIME))
}

/// Distributes a path's hash over all bits with the finaliser of `SplitMix64`, which is a
/// bijection.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A stream of random draws. It is the output of Philox4x32-10 with the seed as key. The upper half
/// of the counter is the stream's number, and the lower half the block's number.
///
/// A 16-bit or 32-bit draw uses one word of the output; a 64-bit or real draw uses two.
#[derive(Clone, Debug)]
pub struct Stream {
    words: [u32; 4],
    used: u32,
    key: [u32; 2],
    number: [u32; 2],
    block: u64,
}

impl Stream {
    /// Returns the stream for `purpose` of the component with the name `component`.
    pub fn new(seed: u64, component: &str, purpose: &str) -> Self {
        Key::new(seed, component).stream(purpose)
    }

    fn at(seed: u64, number: u64) -> Self {
        Self {
            words: [0; 4],
            used: 4,
            key: [seed as u32, (seed >> 32) as u32],
            number: [number as u32, (number >> 32) as u32],
            block: 0,
        }
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        let counter =
            [self.block as u32, (self.block >> 32) as u32, self.number[0], self.number[1]];
        self.words = philox::block(counter, self.key);
        self.block += 1;
        self.used = 0;
    }

    /// Returns 32 uniformly distributed bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.refill();
        }
        let word = self.words[(self.used & 3) as usize];
        self.used += 1;
        word
    }

    /// Returns 16 uniformly distributed bits.
    pub fn next_u16(&mut self) -> u16 {
        self.next_u32() as u16
    }

    /// Returns 64 uniformly distributed bits. The first word is the low half.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        u64::from(low) | u64::from(self.next_u32()) << 32
    }

    /// Returns a uniformly distributed integer below `n`, without bias (Lemire's method).
    ///
    /// # Panics
    /// If `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "the limit `n` must be above 0");
        let mut product = u128::from(n) * u128::from(self.next_u64());
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(n) * u128::from(self.next_u64());
            }
        }
        (product >> 64) as u64
    }

    /// Returns a uniformly distributed real number between 0 and 1, one of 2^52 values. Never
    /// returns 0 or 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        // The sum of 52 bits and 0.5 is exact in 53 bits, so rounding never gives 0 or 1.
        ((self.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_draws() {
        let mut s = Stream::new(1, "uplink", "loss");
        let first: Vec<u32> = (0..6).map(|_| s.next_u32()).collect();
        // An independent program computed these values from the definition.
        assert_eq!(
            first,
            [
                2_332_273_199,
                2_323_419_262,
                1_714_615_910,
                3_782_744_040,
                2_547_152_639,
                3_967_825_626
            ]
        );
    }

    #[test]
    fn streams_differ_by_seed_name_index_and_purpose() {
        let draw = |mut s: Stream| (s.next_u64(), s.next_u64());
        let all = [
            draw(Stream::new(1, "a", "x")),
            draw(Stream::new(2, "a", "x")),
            draw(Stream::new(1, "b", "x")),
            draw(Stream::new(1, "a", "y")),
            draw(Stream::new(1, "ax", "")),
            draw(Key::new(1, "a").child(0).stream("x")),
            draw(Key::new(1, "a").child(1).stream("x")),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(draw(Stream::new(1, "a", "x")), all[0]);
    }

    #[test]
    fn below_reaches_every_number_equally() {
        let mut s = Stream::new(7, "below", "");
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[s.below(6) as usize] += 1;
        }
        // Chi-square with 5 degrees of freedom is below 20.5 with a probability of 99.9 %.
        let chi: f64 =
            counts.iter().map(|&c| (f64::from(c) - 1e4) * (f64::from(c) - 1e4) / 1e4).sum();
        assert!(chi < 20.5, "{counts:?}");
        assert!((0..100).all(|_| s.below(1) == 0));
        assert!((0..100).all(|_| s.below(u64::MAX) < u64::MAX));
    }

    #[test]
    fn uniform_never_reaches_its_ends() {
        let ends = |bits: u64| ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64);
        assert!(ends(0) > 0.0);
        assert!(ends(u64::MAX) < 1.0);
    }
}
