//! FIFOs with strict priorities: the first FIFO that has packets is served.

use crate::discipline::{Dequeue, Sink, Totals, View};
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Queued};
use sojourn_units::Nanos;

/// Up to 64 FIFOs, called bands. Band 0 is served first.
#[derive(Clone, Debug)]
pub(crate) struct Bands<P, const N: usize> {
    fifos: [PacketFifo<P>; N],
    /// Set of bands that have packets: bit n is band n.
    busy: u64,
    /// Time at which the last packet taken by `pop` was enqueued; `None` before the first.
    left_at: Option<Nanos>,
}

impl<P, const N: usize> Default for Bands<P, N> {
    fn default() -> Self {
        const { assert!(N <= 64, "`busy` has 64 bits, one per band") };
        Self { fifos: std::array::from_fn(|_| PacketFifo::default()), busy: 0, left_at: None }
    }
}

impl<P: Packet, const N: usize> Bands<P, N> {
    /// Returns the FIFOs of bands that have packets, in the order of service.
    #[inline]
    fn busy(&self) -> impl Iterator<Item = &PacketFifo<P>> {
        let mut remaining = self.busy;
        std::iter::from_fn(move || {
            let first = self.fifos.get(remaining.trailing_zeros() as usize)?;
            remaining &= remaining - 1;
            Some(first)
        })
    }

    /// Returns the number of packets in a band.
    pub fn len(&self, band: usize) -> usize {
        self.fifos[band].len()
    }

    /// Visits the number of packets and bytes in a band, under the names in recordings.
    pub fn state(&self, band: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(band) = self.fifos.get(band) {
            visit("qlen", band.len() as i128);
            visit("backlog", band.bytes().into());
        }
    }

    /// Returns the last band that has packets; `None` if all are empty.
    pub fn last(&self) -> Option<usize> {
        self.busy.checked_ilog2().map(|bit| bit as usize)
    }

    /// Appends a packet to a band.
    #[inline]
    pub fn push(&mut self, band: usize, at: Nanos, packet: P) {
        self.fifos[band].push(at, packet);
        self.busy |= 1 << band;
    }

    /// Removes and returns the packet that leaves next.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let band = self.busy.trailing_zeros() as usize;
        let queued = self.fifos.get_mut(band)?.pop()?;
        self.settle(band);
        self.left_at = Some(queued.at);
        Some(queued.packet)
    }

    /// Removes and returns the newest packet of a band.
    pub fn take_newest(&mut self, band: usize) -> Option<Queued<P>> {
        let newest = self.fifos[band].len().checked_sub(1)?;
        let queued = self.fifos[band].remove(newest);
        self.settle(band);
        queued
    }

    /// Drops the oldest packets of each band until the band has at most `limit` packets.
    pub fn cut(&mut self, limit: usize, totals: &mut Totals, sink: &mut impl Sink<P>) {
        for band in 0..N {
            self.fifos[band].cut(limit, totals, sink);
            self.settle(band);
        }
    }

    /// Returns the packet that leaves next, as the result of `dequeue`.
    pub fn head(&self) -> Dequeue<&P> {
        self.busy().next().map_or(Dequeue::Empty, PacketFifo::head)
    }

    #[inline]
    fn settle(&mut self, band: usize) {
        if self.fifos[band].is_empty() {
            self.busy &= !(1 << band);
        }
    }
}

impl<P: Packet, const N: usize> View for Bands<P, N> {
    fn packets(&self) -> usize {
        self.busy().map(PacketFifo::len).sum()
    }

    fn bytes(&self) -> u64 {
        self.busy().map(PacketFifo::bytes).sum()
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left_at
    }

    /// Returns the time of the `n`-th packet in the order of arrival. For `n > 0` this collects the
    /// times of all packets.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        if n >= self.packets() {
            return None;
        }
        if n == 0 {
            return self.busy().filter_map(|band| band.enqueued_at(0)).min();
        }
        let mut times: Vec<Nanos> = self.busy().flat_map(PacketFifo::times).collect();
        Some(*times.select_nth_unstable(n).1)
    }
}
