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

/// A device, and the host that it belongs to.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The device. It may be shared with wires that run before or after this one.
    pub device: Arc<Device>,
    /// Index of the device's host among the plan's nodes.
    pub node: usize,
    /// Addresses by which other hosts reach this device; empty if all its packets go to one other
    /// device.
    pub addresses: Vec<IpAddr>,
    /// Index of the device at the other end of the cable. Needed if more than two devices have no
    /// addresses.
    pub peer: Option<usize>,
    /// Whether the device belongs to a switch. A packet that arrives there enters the network again
    /// through another device of the switch.
    pub passing: bool,
}

/// A device in use.
#[derive(Debug)]
pub struct Endpoint {
    /// The device and its host.
    pub attachment: Attachment,
    batch: Coalescer,
    /// For each packet of the batch: its slot, its length in bytes, and its theoretical time of
    /// arrival.
    packets: Vec<(u32, u32, Nanos)>,
}

/// Maximum number of packets that wait for one device. A full batch is written at once.
const BATCH: usize = 1024;

impl Endpoint {
    /// Returns a device in use with an empty batch.
    pub fn new(attachment: Attachment) -> Self {
        let batch = Coalescer::new(BATCH, attachment.device.takes_udp());
        Self { attachment, batch, packets: Vec::with_capacity(BATCH) }
    }

    /// Returns whether no packet waits for the device.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns whether the batch is full. A full batch must be written before another packet is
    /// added.
    pub fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// Adds a packet that arrived at `at`. Its bytes must stay in the arena until it is written.
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

    /// Writes the waiting packets. Packets that the host does not accept are counted in
    /// [`Health::refused`], like the losses of a network card.
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

    /// Empties the batch, and calls `free` with the slot of each packet.
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
