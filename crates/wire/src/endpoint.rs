//! A device at the edge of the network, and the packets that wait to be written to it.

use crate::arena::Arena;
use crate::clock::Clock;
use crate::coalesce::{Coalescer, MAX_PACKETS};
use crate::device::Device;
use crate::headers::Headers;
use crate::record::Health;
use crate::vnet::Partial;
use rustix::fd::{AsFd, BorrowedFd};
use sojourn_units::Nanos;
use std::io::IoSlice;
use std::net::IpAddr;
use std::sync::Arc;

/// A device, and whose it is.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The device, which another wire may have had before, or have afterwards.
    pub device: Arc<Device>,
    /// Index of its host among the plan's nodes.
    pub node: usize,
    /// Addresses by which other hosts reach it; empty if it has one way only, to the device at the
    /// other end of its path.
    pub addresses: Vec<IpAddr>,
    /// Index of the device at the other end of its cable, where there are more than two devices
    /// without addresses.
    pub peer: Option<usize>,
    /// Whether it belongs to a switch: what arrives there is on its way, and comes again by another
    /// of its devices.
    pub passing: bool,
}

/// A device in use.
#[derive(Debug)]
pub struct Endpoint {
    /// Its kind.
    pub attachment: Attachment,
    batch: Coalescer,
    /// The packets of the batch: their slots, their bytes, and when they arrived.
    packets: Vec<(u32, u32, Nanos)>,
}

/// Packets that wait for one device before they are written, regardless of other work.
const BATCH: usize = 1024;

impl Endpoint {
    /// Returns a device in use, with nothing to be written.
    pub fn new(attachment: Attachment) -> Self {
        let batch = Coalescer::new(BATCH, attachment.device.takes_udp());
        Self { attachment, batch, packets: Vec::with_capacity(BATCH) }
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns whether it must be written before more is added.
    pub fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// A packet that arrived at `at`, and stays at its place in the arena until it is written.
    pub fn add(
        &mut self,
        slot: u32,
        bytes: &[u8],
        headers: &Headers,
        partial: Option<Partial>,
        at: Nanos,
    ) {
        self.batch.add(bytes, headers, partial);
        self.packets.push((slot, bytes.len() as u32, at));
    }

    /// Writes waiting packets. Packets that the host does not take are counted, as a network card's
    /// losses are.
    pub fn write(&mut self, arena: &Arena, clock: Clock, health: &mut Health) {
        let now = clock.now();
        for &(_, _, at) in &self.packets {
            health.lateness.record(now.saturating_sub(at));
        }
        for group in self.batch.groups() {
            let front = group.front();
            let mut parts = [IoSlice::new(&[]); MAX_PACKETS + 1];
            parts[0] = IoSlice::new(front.as_slice());
            let mut count = 1;
            for member in self.batch.members(group) {
                let (slot, length, _) = self.packets[member];
                parts[count] = IoSlice::new(&arena.get(slot)[front.from..length as usize]);
                count += 1;
            }
            health.writes += 1;
            if self.attachment.device.write_vectored(&parts[..count]).is_err() {
                health.refused += count as u64 - 1;
            }
        }
    }

    /// Forgets what was written, and says of each packet where it was.
    pub fn clear(&mut self, mut free: impl FnMut(u32)) {
        self.batch.clear();
        self.packets.drain(..).for_each(|(slot, _, _)| free(slot));
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.attachment.device.as_fd()
    }
}
