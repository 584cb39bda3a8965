//! SFB's bins: for each level a row of small BLUEs, one of which a flow falls into by its hash.

use super::params::Params;
use crate::discipline::Draws;
use crate::packet::Packet;
use std::num::NonZeroU32;

/// Rows of bins.
pub(super) const LEVELS: usize = 8;
/// Bins of a row.
pub(super) const BINS: usize = 16;

/// One bin: BLUE of all the flows that fall into it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// Packets queued of its flows; no more than 65535 are counted.
    pub(super) qlen: u16,
    /// Marking probability; one is 65535.
    pub(super) p_mark: u16,
}

/// A flow's bin in each row, four bits a row from the low end. As in the kernel there is no hash of 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(NonZeroU32);

impl Hash {
    fn bin(self, level: usize) -> usize {
        (self.0.get() >> (4 * level)) as usize % BINS
    }
}

/// One of the two sets of bins, and the key by which flows are sorted into it.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// Drawn when first needed.
    key: Option<u64>,
    bins: [[Bin; BINS]; LEVELS],
}

impl Slot {
    /// Discards the key: the next hash draws a new one. The bins stay.
    pub(super) fn rekey(&mut self) {
        self.key = None;
    }

    /// Returns the bins of a packet's flow.
    #[inline]
    pub(super) fn hash(&mut self, packet: &impl Packet, draws: &mut impl Draws) -> Hash {
        let key = *self.key.get_or_insert_with(|| draws.draw_key());
        let hash = draws.keyed_hash(key, packet.flow_hash());
        Hash(NonZeroU32::new(hash).unwrap_or(NonZeroU32::MIN))
    }

    fn of(&mut self, hash: Hash) -> impl Iterator<Item = &mut Bin> {
        self.bins.iter_mut().enumerate().map(move |(level, bins)| &mut bins[hash.bin(level)])
    }

    /// Moves the probabilities of a flow's bins on an arrival; gives the least backlog and the least
    /// probability among them.
    #[inline]
    pub(super) fn arrive(&mut self, hash: Hash, params: &Params) -> (u32, u16) {
        let mut least = (u32::MAX, u16::MAX);
        for bin in self.of(hash) {
            let qlen = u32::from(bin.qlen);
            if qlen == 0 {
                bin.p_mark = bin.p_mark.saturating_sub(params.decrement);
            } else if qlen >= params.bin_size {
                bin.p_mark = bin.p_mark.saturating_add(params.increment);
            }
            least = (least.0.min(qlen), least.1.min(bin.p_mark));
        }
        least
    }

    /// Counts a queued packet of the flow.
    #[inline]
    pub(super) fn enter(&mut self, hash: Hash) {
        self.of(hash).for_each(|bin| bin.qlen = bin.qlen.saturating_add(1));
    }

    /// Counts a departure of the flow.
    #[inline]
    pub(super) fn leave(&mut self, hash: Hash) {
        self.of(hash).for_each(|bin| bin.qlen = bin.qlen.saturating_sub(1));
    }

    /// Returns the `index`-th bin, counted row by row.
    pub(super) fn bin(&self, index: usize) -> Bin {
        self.bins[index / BINS][index % BINS]
    }
}
