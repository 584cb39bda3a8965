//! Storage of the bytes of all packets in the network. Each slot of the slab has one buffer.

/// Buffers of one size for packets. They are allocated in blocks of [`BLOCK`] when first used.
#[derive(Debug)]
pub struct Arena {
    blocks: Vec<Box<[u8]>>,
    stride: usize,
    most: usize,
}

/// Number of packet buffers in a block.
const BLOCK: usize = 1 << 10;

impl Arena {
    /// Returns an empty arena for at most `most` buffers (rounded up to whole blocks) of `stride`
    /// bytes.
    pub fn new(stride: usize, most: usize) -> Self {
        Self { blocks: Vec::new(), stride, most: most.next_multiple_of(BLOCK) }
    }

    /// Returns the buffer of a slot, and allocates its block if necessary; `None` if the slot
    /// exceeds the arena's limit.
    #[inline]
    pub fn make(&mut self, slot: u32) -> Option<&mut [u8]> {
        let (block, at) = (slot as usize / BLOCK, slot as usize % BLOCK * self.stride);
        if block >= self.blocks.len() {
            self.grow(block)?;
        }
        Some(&mut self.blocks[block][at..at + self.stride])
    }

    #[cold]
    fn grow(&mut self, block: usize) -> Option<()> {
        if block * BLOCK >= self.most {
            return None;
        }
        while self.blocks.len() <= block {
            self.blocks.push(vec![0; BLOCK * self.stride].into_boxed_slice());
        }
        Some(())
    }

    /// Returns the buffer of a slot in use.
    #[inline]
    pub fn get(&self, slot: u32) -> &[u8] {
        let (block, at) = (slot as usize / BLOCK, slot as usize % BLOCK * self.stride);
        &self.blocks[block][at..at + self.stride]
    }

    /// Returns the buffer of a slot in use, for writing.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut [u8] {
        let (block, at) = (slot as usize / BLOCK, slot as usize % BLOCK * self.stride);
        &mut self.blocks[block][at..at + self.stride]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_their_bytes_when_others_are_made() {
        let mut arena = Arena::new(4, 2 * BLOCK);
        arena.make(3).unwrap().copy_from_slice(&[1, 2, 3, 4]);
        arena.make(BLOCK as u32).unwrap()[0] = 9;
        assert_eq!(arena.get(3), [1, 2, 3, 4]);
        assert_eq!(arena.get_mut(BLOCK as u32)[0], 9);
        assert!(arena.make(2 * BLOCK as u32).is_none());
    }
}
