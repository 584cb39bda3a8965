//! The receive window: its growth, and the part of it that is announced.
//!
//! Source: Linux's `tcp_grow_window`, `tcp_rcvbuf_grow`, `tcp_rcv_space_adjust` and `__tcp_select_window`.

use super::Receiver;
use super::memory::{SHARE, SMALL, most_memory};
use sojourn_units::{MILLISECOND, Nanos};

/// Round-trip time below which the receive buffer grows less (`net.ipv4.tcp_rcvbuf_low_rtt`).
const LOW_RTT: Nanos = MILLISECOND;

impl Receiver {
    /// With `memory truesize`: takes a segment before it is stored. A full segment opens the window
    /// by two segments up to the buffer's size; with `quick_ack` it is then acknowledged at once
    /// (`tcp_grow_window`).
    pub(super) fn open(&mut self, payload: u64) {
        let Some(memory) = &mut self.memory else { return };
        if payload > self.full && payload >= SMALL {
            memory.share =
                (payload * SHARE / self.params.frame_memory.max(payload)).clamp(1, SHARE - 1);
            self.space = memory.window(memory.size).min(self.max_space);
            self.tune_space = self.tune_space.min(self.space);
        }
        let opened = memory.opened;
        if opened >= self.space || payload < SMALL.max(self.full) {
            return;
        }
        let room = self.space.min(self.free_memory()).saturating_sub(opened);
        if room > 0
            && let Some(memory) = &mut self.memory
        {
            memory.opened += room.min(2 * payload);
            if self.params.quick_ack {
                self.quick |= 1;
            }
        }
    }

    /// With `memory truesize`: returns the window in bytes that the unused part of the buffer
    /// allows.
    pub(super) fn free_memory(&self) -> u64 {
        let Some(memory) = &self.memory else { return self.space };
        let held = self.unread + self.queued + self.held_bytes;
        if held == 0 {
            debug_assert_eq!(self.space, memory.window(memory.size).min(self.max_space));
            return self.space;
        }
        let held = proportion(held, self.params.frame_memory, self.full.max(SMALL));
        memory.window(memory.size.saturating_sub(held)).min(self.max_space)
    }

    /// Returns the bytes of payload for which the receive buffer has space; with `memory truesize`,
    /// at most the window opened so far.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        match &self.memory {
            None => self.space.saturating_sub(self.unread),
            Some(memory) => self.free_memory().min(memory.opened),
        }
    }

    /// Enlarges the window by the bytes that the application read in a round-trip time. Of the data
    /// newly in order, the last `beyond` bytes follow the segment that arrived.
    pub(super) fn tune(&mut self, now: Nanos, beyond: u64) {
        // The shortest time in which one window arrives counts as a round-trip time. Timestamps
        // give other samples.
        if self.rtt_at == 0 || self.nxt >= self.rtt_edge {
            if self.rtt_at != 0 {
                let round = (now - self.rtt_at).max(MILLISECOND);
                if self.rtt == 0 || round < self.rtt {
                    self.rtt = round;
                }
            }
            self.rtt_at = now;
            self.rtt_edge = self.edge.max(self.nxt + self.full);
        }
        if self.tune_at == 0 {
            self.tune_at = now;
            self.tune_from = self.nxt;
            return;
        }
        if self.rtt == 0 || now - self.tune_at < self.rtt {
            return;
        }
        let beyond = if self.memory.is_some() { beyond } else { 0 };
        let first = self.nxt - beyond;
        let read = first.saturating_sub(self.tune_from).saturating_sub(beyond + self.unread);
        if read > self.tune_space && self.memory.is_some() {
            self.grow_memory(read);
            self.tune_space = read;
        } else if read > self.tune_space {
            // The window has space for a sender that doubles its rate, and more if the rate grew
            // since the last round.
            let mut window = 2 * read + 16 * self.full;
            let growth = u128::from(window) * u128::from(read - self.tune_space)
                / u128::from(self.tune_space.max(1));
            window = window.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX));
            self.space = self.space.max(window.min(self.max_space));
            self.tune_space = read;
        }
        self.tune_at = now;
        self.tune_from = first;
    }

    /// With `memory truesize`: enlarges the buffer for a sender that doubles its rate, after the
    /// application read `read` bytes in a round-trip time.
    pub(super) fn grow_memory(&mut self, read: u64) {
        let beyond = self.held_end().map_or(0, |end| end - self.nxt);
        let Some(memory) = &mut self.memory else { return };
        let mut window = u128::from(2 * read);
        window += if self.rtt < LOW_RTT {
            window * u128::from(self.rtt) / u128::from(LOW_RTT)
        } else {
            2 * window * u128::from(read - self.tune_space) / u128::from(self.tune_space.max(1))
        };
        window += u128::from(beyond);
        let size = window * u128::from(SHARE) / u128::from(memory.share);
        let size = u64::try_from(size).unwrap_or(u64::MAX).min(most_memory(&self.params));
        if size > memory.size {
            memory.size = size;
            self.space = memory.window(size).min(self.max_space);
        }
    }

    /// With `memory truesize`: returns the window in bytes to announce, which may end before the
    /// right edge announced earlier (`__tcp_select_window`).
    pub(super) fn offer(&self) -> u64 {
        let granule = 1 << self.scale;
        let mut free = self.free_memory();
        if free < self.space / 2 {
            free &= !(granule - 1);
            if free < (self.space / 16).max(self.full) {
                return 0;
            }
        }
        free.min(self.memory.map_or(free, |memory| memory.opened)).next_multiple_of(granule)
    }
}

/// Returns `value * factor / divisor`, rounded down; at most `u64::MAX`.
#[inline]
fn proportion(value: u64, factor: u64, divisor: u64) -> u64 {
    if let Some(product) = value.checked_mul(factor) {
        return product / divisor;
    }
    let wide = u128::from(value) * u128::from(factor) / u128::from(divisor);
    u64::try_from(wide).unwrap_or(u64::MAX)
}
