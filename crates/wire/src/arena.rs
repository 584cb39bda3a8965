//! The bytes of the packets in the network: a place for each slot of the slab.

/// Fixed places of one size, in blocks that are made when they are first needed.
#[derive(Debug)]
pub struct Arena {
    blocks: Vec<Box<[u8]>>,
    stride: usize,
    most: usize,
}

/// Places in a block.
const BLOCK: usize = 1 << 10;

impl Arena {
    /// At most `most` places of `stride` bytes.
    pub fn new(stride: usize, most: usize) -> Self {
        Self { blocks: Vec::new(), stride, most: most.next_multiple_of(BLOCK) }
    }

    /// The place of a slot, made if need be; `None` beyond the last that may be.
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

    /// The place of a slot in use.
    #[inline]
    pub fn get(&self, slot: u32) -> &[u8] {
        let (block, at) = (slot as usize / BLOCK, slot as usize % BLOCK * self.stride);
        &self.blocks[block][at..at + self.stride]
    }

    /// The place of a slot in use, to be written.
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
