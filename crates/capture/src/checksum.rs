//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// Returns the ones' complement sum of `bytes` as big-endian 16-bit words, not folded to 16 bits.
/// An odd last byte is padded with zero.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    // The ones' complement sum does not depend on the word size, as long as each byte keeps its
    // place in a 16-bit word. Therefore 64 bits are added at a time, as two 32-bit words.
    let mut total = 0u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_be_bytes(chunk.try_into().expect("eight bytes"));
        total += (word >> 32) + (word & 0xffff_ffff);
    }
    let mut last = [0; 8];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    let word = u64::from_be_bytes(last);
    total + (word >> 32) + (word & 0xffff_ffff)
}

/// Folds a sum to 16 bits. The Internet checksum is its complement.
#[inline]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Returns the checksum after one of the 16-bit words that it covers has changed from `old` to
/// `new` (RFC 1624, equation 3).
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the folded sum by RFC 1071's definition, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for pair in bytes.chunks(2) {
            total += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
            if total > 0xffff {
                total -= 0xffff;
            }
        }
        total as u16
    }

    #[test]
    fn rfc_1071_example() {
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    #[test]
    fn rfc_1624_example() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn wide_words_sum_as_narrow_ones(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(fold(sum(&bytes)), plain(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_sum(mut bytes in prop::collection::vec(any::<u8>(), 20), new: u16) {
            // RFC 1624's equation needs at least one word that is not zero. An IP header has one.
            bytes[0] = 0x45;
            let before = !fold(sum(&bytes));
            let old = u16::from_be_bytes([bytes[8], bytes[9]]);
            bytes[8..10].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), !fold(sum(&bytes)));
        }
    }
}
