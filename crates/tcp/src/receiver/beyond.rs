//! Data that arrived beyond a hole or twice, and the SACK blocks that report it (RFC 2018, RFC
//! 2883).

use crate::ranges::Ranges;
use crate::segment::MAX_BLOCKS;

/// Number of newest SACK blocks that segments may extend while an acknowledgement waits
/// (`TCP_SACK_BLOCKS_EXPECTED`). A segment that begins or extends another block ends the wait: an
/// acknowledgement for the earlier segments leaves at once.
const BLOCKS: usize = 2;

/// Data that arrived beyond a hole or twice.
#[derive(Clone, Debug, Default)]
pub(super) struct Beyond {
    pub(super) held: Ranges,
    /// End of the data in each frame that has space for more, and this space in bytes.
    spaces: Vec<(u64, u64)>,
    /// SACK blocks, the one with the newest segment first (RFC 2018, section 4).
    recent: [(u64, u64); MAX_BLOCKS],
    pub(super) recent_count: u8,
    pub(super) duplicate: Option<(u64, u64)>,
}

impl Beyond {
    pub(super) fn blocks(&self) -> &[(u64, u64)] {
        &self.recent[..usize::from(self.recent_count)]
    }

    /// Returns whether the segment `start..end` begins or extends a block other than the [`BLOCKS`]
    /// newest.
    pub(super) fn forgets(&self, start: u64, end: u64) -> bool {
        let blocks = self.blocks();
        let touches = |block: &(u64, u64)| start <= block.1 && end >= block.0;
        blocks.iter().position(touches).unwrap_or(blocks.len()) >= BLOCKS
    }

    /// Returns the bytes of payload for which the frames that contain held data have space.
    pub(super) fn space(&self) -> u64 {
        self.spaces.iter().map(|(_, space)| space).sum()
    }

    /// Chooses the frame for the segment `start..end`, before it is stored: that of the segment
    /// before it if the frame has space (`skb_try_coalesce`), or a frame of its own, which has space
    /// for `capacity` bytes.
    pub(super) fn choose_frame(&mut self, start: u64, end: u64, capacity: u64) {
        if self.held.covers(start, end) {
            return;
        }
        let len = end - start;
        let joined = self.spaces.iter().rposition(|&(at, space)| at == start && space >= len);
        let space = match joined {
            Some(index) => self.spaces.swap_remove(index).1,
            None => capacity,
        };
        if space > len {
            self.spaces.push((end, space - len));
        }
    }

    /// Stores the numbers `start..end` of a segment, and returns how many of them are new. If
    /// `joins`, the segment's SACK block is joined with the remembered blocks only (Linux's
    /// `tcp_sack_new_ofo_skb`), else with all stored numbers.
    pub(super) fn hold(&mut self, start: u64, end: u64, joins: bool) -> u64 {
        let mut new = 0;
        let block = self.held.insert(start, end, |from, to| new += to - from);
        let block = if joins { joined((start, end), self.blocks()) } else { block };
        self.remember(block);
        new
    }

    /// Remembers `block` as the newest, in place of the blocks that it touches.
    fn remember(&mut self, block: (u64, u64)) {
        let mut kept = [(0, 0); MAX_BLOCKS];
        kept[0] = block;
        let mut at = 1;
        for &old in self.blocks() {
            if at < MAX_BLOCKS && (old.1 < block.0 || old.0 > block.1) {
                kept[at] = old;
                at += 1;
            }
        }
        self.recent = kept;
        self.recent_count = at as u8;
    }

    /// Forgets the blocks and frames that begin at or below `nxt`.
    pub(super) fn forget(&mut self, nxt: u64) {
        self.spaces.retain(|&(end, _)| end > nxt);
        let mut at = 0;
        for i in 0..usize::from(self.recent_count) {
            if self.recent[i].0 > nxt {
                self.recent[at] = self.recent[i];
                at += 1;
            }
        }
        self.recent_count = at as u8;
    }
}

/// Returns `new` joined with all of `blocks` that touch it, directly or through others.
fn joined(new: (u64, u64), blocks: &[(u64, u64)]) -> (u64, u64) {
    let mut block = new;
    loop {
        let before = block;
        for &(start, end) in blocks {
            if start <= block.1 && end >= block.0 {
                block = (block.0.min(start), block.1.max(end));
            }
        }
        if block == before {
            return block;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(beyond: &mut Beyond, segment: u64, capacity: u64) {
        let (start, end) = (1 + segment * 100, 101 + segment * 100);
        beyond.choose_frame(start, end, capacity);
        beyond.hold(start, end, true);
    }

    #[test]
    fn a_segment_shares_the_frame_of_the_one_before_it() {
        // Segments in the order of their arrivals, and the space left in the end, in segments.
        for (segments, space) in [
            (vec![3], 1),
            (vec![3, 4], 0),
            (vec![3, 4, 5], 1),
            (vec![4, 3], 2),
            (vec![3, 5, 4], 1),
            (vec![3, 4, 6, 5], 2),
            (vec![3, 3, 4, 4], 0),
        ] {
            let mut beyond = Beyond::default();
            for &segment in &segments {
                hold(&mut beyond, segment, 200);
            }
            assert_eq!(beyond.space(), 100 * space, "{segments:?}");
            beyond.forget(10_000);
            assert_eq!(beyond.space(), 0);
        }
        let mut beyond = Beyond::default();
        for segment in [3, 4, 6, 5] {
            hold(&mut beyond, segment, 100);
        }
        assert_eq!(beyond.space(), 0, "a frame for each");
    }
}
