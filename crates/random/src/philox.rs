//! The generator Philox4x32-10. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011.
//!
//! A bijection of 128-bit counters, selected by a 64-bit key: ten rounds, each with two
//! multiplications of 32-bit numbers to 64 bits. The counter is the only state, so each draw of a
//! stream can be computed directly.

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Increments of the key after each round: the golden ratio and the square root of 3, both minus 1,
/// as 32-bit fractions.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// Returns the block of four words to which the bijection with the key `key` maps `counter`.
#[inline]
pub fn block(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    let mut k = key;
    for _ in 0..ROUNDS {
        let left = u64::from(MULTIPLIER[0]) * u64::from(c[0]);
        let right = u64::from(MULTIPLIER[1]) * u64::from(c[2]);
        c = [
            (right >> 32) as u32 ^ c[1] ^ k[0],
            right as u32,
            (left >> 32) as u32 ^ c[3] ^ k[1],
            left as u32,
        ];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers that Random123 publishes (`kat_vectors`, philox4x32 10).
    #[test]
    fn known_answers() {
        assert_eq!(block([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            block([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            block([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
