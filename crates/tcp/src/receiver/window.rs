//! The receive window: its growth, and the part of it that is announced.
//!
//! Source: Linux's `tcp_grow_window`, `tcp_rcvbuf_grow`, `tcp_rcv_space_adjust` and `__tcp_select_window`.

use super::Receiver;
use super::memory::{HEADERS, ReceiveMemory, SHARE, SMALL, most_memory};
use sojourn_units::{MILLISECOND, Nanos};

/// Round-trip time below which the receive buffer grows less (`net.ipv4.tcp_rcvbuf_low_rtt`).
const LOW_RTT: Nanos = MILLISECOND;

impl Receiver {
    /// With `memory truesize`: takes a segment before it is stored. A full segment opens the window
    /// by two segments up to the buffer's size; with `quick_ack` it is then acknowledged at once
    /// (`tcp_grow_window`).
    pub(super) fn open(&mut self, payload: u64) {
        if self.buffer.memory.is_some() && payload > self.full && payload >= SMALL {
            self.buffer.set_share(payload * SHARE / self.params.frame_memory.max(payload));
            self.tuning.read = self.tuning.read.min(self.buffer.space);
        }
        let Some(ReceiveMemory { opened, .. }) = self.buffer.memory else { return };
        if opened >= self.buffer.space || payload < SMALL.max(self.full) {
            return;
        }
        let room = self.buffer.space.min(self.free_memory()).saturating_sub(opened);
        if room > 0
            && let Some(memory) = &mut self.buffer.memory
        {
            memory.opened += room.min(2 * payload);
            if self.params.quick_ack {
                self.acks.quick |= 1;
            }
        }
    }

    /// With `memory truesize`: returns the window in bytes that the unused part of the buffer
    /// allows.
    pub(super) fn free_memory(&self) -> u64 {
        let full = self.full.max(SMALL);
        let is_shared = self.buffer.unread + self.buffer.queued > full;
        let payload = if is_shared { self.capacity() } else { full };
        let beyond = self.beyond.as_ref().map_or(0, |beyond| {
            let frames = (self.buffer.held + beyond.space()).div_ceil(self.capacity());
            frames * self.params.frame_memory
        });
        self.buffer.free_memory(self.params.frame_memory, payload, beyond)
    }

    /// Returns the bytes of payload for which the memory of a frame has space: whole segments, one
    /// at least.
    pub(super) fn capacity(&self) -> u64 {
        let full = self.full.max(SMALL);
        (self.params.frame_memory.saturating_sub(HEADERS) / full).max(1) * full
    }

    /// Returns the bytes of payload for which the receive buffer has space; with `memory truesize`,
    /// at most the window opened so far.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        match &self.buffer.memory {
            None => self.buffer.space.saturating_sub(self.buffer.unread),
            Some(memory) => self.free_memory().min(memory.opened),
        }
    }

    /// Enlarges the window by the bytes that the application read in a round-trip time. Of the data
    /// newly in order, the last `beyond` bytes follow the segment that arrived.
    pub(super) fn tune(&mut self, now: Nanos, beyond: u64) {
        // Timestamps give other samples.
        self.rtt.on_data(now, self.nxt, self.edge.max(self.nxt + self.full));
        if self.tuning.at == 0 {
            self.tuning.at = now;
            self.tuning.from = self.nxt;
            return;
        }
        if self.rtt.time == 0 || now - self.tuning.at < self.rtt.time {
            return;
        }
        let beyond = if self.buffer.memory.is_some() { beyond } else { 0 };
        let first = self.nxt - beyond;
        let read =
            first.saturating_sub(self.tuning.from).saturating_sub(beyond + self.buffer.unread);
        if read > self.tuning.read && self.buffer.memory.is_some() {
            self.grow_memory(read);
            self.tuning.read = read;
        } else if read > self.tuning.read {
            // The window has space for a sender that doubles its rate, and more if the rate grew
            // since the last round.
            let mut window = 2 * read + 16 * self.full;
            let growth = u128::from(window) * u128::from(read - self.tuning.read)
                / u128::from(self.tuning.read.max(1));
            window = window.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX));
            self.buffer.space = self.buffer.space.max(window.min(self.buffer.max_space));
            self.tuning.read = read;
        }
        self.tuning.at = now;
        self.tuning.from = first;
    }

    /// With `memory truesize`: enlarges the buffer for a sender that doubles its rate, after the
    /// application read `read` bytes in a round-trip time.
    pub(super) fn grow_memory(&mut self, read: u64) {
        let beyond = self.held_end().map_or(0, |end| end - self.nxt);
        let Some(memory) = &mut self.buffer.memory else { return };
        let mut window = u128::from(2 * read);
        window += if self.rtt.time < LOW_RTT {
            window * u128::from(self.rtt.time) / u128::from(LOW_RTT)
        } else {
            2 * window * u128::from(read - self.tuning.read) / u128::from(self.tuning.read.max(1))
        };
        window += u128::from(beyond);
        let size = window * u128::from(SHARE) / u128::from(memory.share.get());
        let size = u64::try_from(size).unwrap_or(u64::MAX).min(most_memory(&self.params));
        if size > memory.size {
            memory.size = size;
            self.buffer.space = self.buffer.empty_window();
        }
    }

    /// With `memory truesize`: returns the window in bytes to announce, which may end before the
    /// right edge announced earlier (`__tcp_select_window`).
    pub(super) fn offer(&self) -> u64 {
        let granule = 1 << self.scale;
        let mut free = self.free_memory();
        if free < self.buffer.space / 2 {
            free &= !(granule - 1);
            if free < (self.buffer.space / 16).max(self.full) {
                return 0;
            }
        }
        free.min(self.buffer.memory.map_or(free, |memory| memory.opened)).next_multiple_of(granule)
    }
}
