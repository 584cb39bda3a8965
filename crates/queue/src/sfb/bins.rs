//! SFB's bins: each level has a row of bins, and the flow's hash selects one bin per row.

use super::params::Params;
use crate::discipline::Draws;
use crate::packet::Packet;
use std::num::NonZeroU32;

/// Number of levels, each with a row of bins.
pub(super) const LEVELS: usize = 8;
/// Number of bins in a row.
pub(super) const BINS: usize = 16;

/// A bin: the state of BLUE for all flows in the bin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// Number of queued packets of the bin's flows; the count stops at 65535.
    pub(super) qlen: u16,
    /// Mark or drop probability, in units of 1/65535.
    pub(super) p_mark: u16,
}

/// Hash of a flow, which selects its bin on each level: four bits per level, the lowest bits for
/// the first level. As in the kernel, the hash is never 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(NonZeroU32);

impl Hash {
    fn bin(self, level: usize) -> usize {
        (self.0.get() >> (4 * level)) as usize % BINS
    }
}

/// One of the two sets of bins, and the key of its hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// Key of the hash; `None` until the first packet.
    key: Option<u64>,
    bins: [[Bin; BINS]; LEVELS],
}

impl Slot {
    /// Discards the key, so that the next packet draws a new one. The bins keep their state.
    pub(super) fn rekey(&mut self) {
        self.key = None;
    }

    /// Returns the hash that selects the bins of a packet's flow.
    #[inline]
    pub(super) fn hash(&mut self, packet: &impl Packet, draws: &mut impl Draws) -> Hash {
        let key = *self.key.get_or_insert_with(|| draws.draw_key());
        let hash = draws.keyed_hash(key, packet.flow_hash());
        Hash(NonZeroU32::new(hash).unwrap_or(NonZeroU32::MIN))
    }

    fn of(&mut self, hash: Hash) -> impl Iterator<Item = &mut Bin> {
        self.bins.iter_mut().enumerate().map(move |(level, bins)| &mut bins[hash.bin(level)])
    }

    /// Updates the probabilities of a flow's bins on an arrival. Returns the smallest number of
    /// packets and the smallest probability of these bins.
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

    /// Counts a queued packet in the flow's bins.
    pub(super) fn enter(&mut self, hash: Hash) {
        self.of(hash).for_each(|bin| bin.qlen = bin.qlen.saturating_add(1));
    }

    /// Counts a departure in the flow's bins.
    pub(super) fn leave(&mut self, hash: Hash) {
        self.of(hash).for_each(|bin| bin.qlen = bin.qlen.saturating_sub(1));
    }

    /// Returns the bin with this index, counted row by row.
    pub(super) fn bin(&self, index: usize) -> Bin {
        self.bins[index / BINS][index % BINS]
    }
}
