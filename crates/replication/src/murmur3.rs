//! Cassandra's hash of partition keys: `Murmur3Partitioner`.
//!
//! Source: `org.apache.cassandra.utils.MurmurHash.hash3_x64_128` and `dht.Murmur3Partitioner` of
//! Cassandra 5.0. The hash is `MurmurHash3_x64_128` with seed 0; its first half is the token.
//! Cassandra's version differs from the original algorithm: the bytes after the last block of 16
//! are sign-extended before they are mixed in, since Java's bytes are signed. This difference is
//! reproduced, since tokens must equal Cassandra's.

/// A position on the ring, from -2^63 to 2^63 - 1.
pub type Token = i64;

/// Token of the empty key. No other key has this token.
pub const MINIMUM: Token = Token::MIN;

const C1: u64 = 0x87C3_7B91_1142_53D5;
const C2: u64 = 0x4CF5_AD43_2745_937F;

/// Returns the token of a partition key.
pub fn token(key: &[u8]) -> Token {
    if key.is_empty() {
        return MINIMUM;
    }
    match hash(key) as i64 {
        // This token is reserved for the empty key.
        Token::MIN => Token::MAX,
        token => token,
    }
}

/// Returns the first 64 bits of the hash.
fn hash(key: &[u8]) -> u64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let half = |at: usize| {
            u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes of sixteen"))
        };
        h1 = (h1 ^ mix1(half(0))).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52DC_E729);
        h2 = (h2 ^ mix2(half(8))).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5AB5);
    }
    let gather = |bytes: &[u8]| {
        bytes.iter().enumerate().fold(0u64, |k, (i, &byte)| {
            // Bytes are sign-extended, as in Java.
            k ^ (i64::from(byte as i8) << (8 * i)) as u64
        })
    };
    let (low, high) = tail.split_at(tail.len().min(8));
    h2 ^= mix2(gather(high));
    h1 ^= mix1(gather(low));
    let length = key.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    finish(h1).wrapping_add(finish(h2))
}

fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    k = (k ^ (k >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_signed() {
        // If no byte of the tail is above 127, the hash equals the original MurmurHash3. The
        // reference value of smhasher for "hello" begins with these eight bytes.
        assert_eq!(hash(b"hello"), 0xCBD8_A7B3_41BD_9B02);
        assert_ne!(token(&[0x80]), token(&[0x80, 0]));
        assert_eq!(token(b""), MINIMUM);
    }
}
