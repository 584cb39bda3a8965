//! Memory of processed messages, kept for reuse.

use crate::packet::CHARGE;
use sojourn_units::Bytes;

/// A stack of memory blocks. Callers state how much memory may be kept.
#[derive(Default)]
pub(crate) struct Spare {
    kept: Vec<Vec<u8>>,
    bytes: Bytes,
}

impl Spare {
    fn pop(&mut self) -> Option<Vec<u8>> {
        let data = self.kept.pop()?;
        self.bytes -= data.capacity() as Bytes;
        Some(data)
    }

    fn shrink(&mut self, room: Bytes) {
        while self.bytes > room {
            self.pop();
        }
    }

    /// Returns empty memory for a message of `length` bytes. Kept memory is then reduced to at most
    /// `room` bytes. A block that exceeds the message by more than [`CHARGE`] is freed instead of
    /// reused.
    pub(crate) fn get(&mut self, length: usize, room: Bytes) -> Vec<u8> {
        let fits = |kept: &Vec<u8>| (length..=length + CHARGE as usize).contains(&kept.capacity());
        let found = self.pop().filter(fits);
        self.shrink(room);
        found.map_or_else(
            || Vec::with_capacity(length),
            |mut data| {
                data.clear();
                data
            },
        )
    }

    /// Keeps a block of at least 4096 bytes if the kept memory then does not exceed `room` bytes.
    pub(crate) fn put(&mut self, data: Vec<u8>, room: Bytes) {
        let capacity = data.capacity() as Bytes;
        // Small blocks are not kept, since the allocator handles them efficiently.
        if capacity >= 4096 && self.bytes + capacity <= room {
            self.bytes += capacity;
            self.kept.push(data);
        }
        self.shrink(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_stays_within_its_room(
            steps in proptest::collection::vec((any::<bool>(), 0..20_000usize, 0..100_000u64), 1..99)
        ) {
            let mut spare = Spare::default();
            let mut out = Vec::new();
            for (get, length, room) in steps {
                if get {
                    let data = spare.get(length, room);
                    prop_assert!(data.is_empty() && data.capacity() >= length);
                    prop_assert!(data.capacity() <= length + CHARGE as usize);
                    out.push(data);
                } else if let Some(data) = out.pop() {
                    spare.put(data, room);
                } else {
                    continue;
                }
                let held: usize = spare.kept.iter().map(Vec::capacity).sum();
                prop_assert_eq!(held as u64, spare.bytes);
                prop_assert!(spare.bytes <= room);
            }
        }
    }
}
