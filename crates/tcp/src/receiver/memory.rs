//! The receive buffer in bytes of memory, and the window in bytes of payload that it allows.

use crate::params::{Memory, Params};
use std::num::NonZero;

/// Initial size of an automatic receive buffer in bytes of memory (`net.ipv4.tcp_rmem[1]`).
const INITIAL_MEMORY: u64 = 131_072;
/// Denominator of the share of memory that is payload.
pub(super) const SHARE: u64 = 256;
/// Assumed share of memory that is payload until data arrive, in units of 1/256.
const INITIAL_SHARE: NonZero<u64> = NonZero::new(SHARE / 2).expect("not zero");
/// The part of a frame's memory in bytes that is not for payload: two structures, and the space for
/// headers (`sk_buff`, `skb_shared_info`, `MAX_TCP_HEADER`).
pub(super) const HEADERS: u64 = 256 + 320 + 320;
/// Payload in bytes below which a segment does not open the window (`tcp_event_data_recv`).
pub(super) const SMALL: u64 = 128;

/// Initial window with autotuning, and largest window without window scaling, in bytes.
pub(super) const UNSCALED: u64 = 65_535;

/// The receive buffer.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    /// Bytes in order that the application has not read.
    pub(super) unread: u64,
    /// Bytes that the application reads only after the ACK that is due has left.
    pub(super) queued: u64,
    /// Bytes received beyond a hole.
    pub(super) held: u64,
    /// The window in bytes that the empty receive buffer allows at present.
    pub(super) space: u64,
    /// The greatest value of `space`.
    pub(super) max_space: u64,
    /// With `memory truesize`: the buffer as memory.
    pub(super) memory: Option<ReceiveMemory>,
}

impl Buffer {
    pub(super) fn new(params: &Params) -> Self {
        let max_space = params.receive_window;
        let memory = (params.memory == Memory::Truesize).then(|| ReceiveMemory::new(params));
        let automatic = if params.autotune { max_space.min(UNSCALED) } else { max_space };
        let space = memory.map_or(automatic, |memory| memory.opened);
        Self { unread: 0, queued: 0, held: 0, space, max_space, memory }
    }

    /// Takes the results of the handshake: the payload of a full segment in bytes, and whether the
    /// window is scaled.
    pub(super) fn establish(&mut self, mss: u64, is_scaled: bool) {
        let limit = if is_scaled { u64::MAX } else { UNSCALED };
        self.max_space = self.max_space.min(limit);
        self.space = self.space.min(limit);
        if let Some(memory) = &mut self.memory {
            // One segment stays in reserve (`tcp_init_buffer_space`).
            let most = self.space.saturating_sub(mss).max(2 * mss);
            memory.opened = memory.opened.min(limit).min(most);
        }
    }

    /// With `memory truesize`: sets the share of memory that is payload, in 1/256.
    pub(super) fn set_share(&mut self, share: u64) {
        if let Some(memory) = &mut self.memory {
            memory.share = NonZero::new(share.min(SHARE - 1)).unwrap_or(NonZero::<u64>::MIN);
            self.space = self.empty_window();
        }
    }

    /// Returns the window in bytes that the whole buffer allows.
    pub(super) fn empty_window(&self) -> u64 {
        let window = |memory: &ReceiveMemory| memory.window(memory.size).min(self.max_space);
        self.memory.as_ref().map_or(self.space, window)
    }

    /// Returns the window in bytes that the unused part of the buffer allows. `frame_memory` is the
    /// memory of a frame, `payload` the data that it contains, and `beyond` the memory of data
    /// beyond holes, in bytes.
    pub(super) fn free_memory(&self, frame_memory: u64, payload: u64, beyond: u64) -> u64 {
        let Some(memory) = &self.memory else { return self.space };
        let read = self.unread + self.queued;
        if read + self.held == 0 {
            debug_assert_eq!(self.space, self.empty_window());
            return self.space;
        }
        let held = proportion(read, frame_memory, payload) + beyond;
        memory.window(memory.size.saturating_sub(held)).min(self.max_space)
    }
}

/// The receive buffer as memory, after Linux's `tcp_grow_window` and `tcp_rcvbuf_grow`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveMemory {
    /// Size of the buffer in bytes of memory.
    pub(super) size: u64,
    /// The share of a full segment's memory that is payload, in 1/256.
    pub(super) share: NonZero<u64>,
    /// Window in bytes that segments have opened so far (`rcv_ssthresh`).
    pub(super) opened: u64,
}

impl ReceiveMemory {
    pub(super) fn new(params: &Params) -> Self {
        let most = most_memory(params);
        let size = if params.autotune { most.min(INITIAL_MEMORY) } else { most };
        Self { size, share: INITIAL_SHARE, opened: size * INITIAL_SHARE.get() / SHARE }
    }

    /// Returns the bytes of payload that fit into `bytes` of memory.
    pub(super) fn window(&self, bytes: u64) -> u64 {
        bytes * self.share.get() / SHARE
    }
}

/// Returns the greatest size of the receive buffer in bytes of memory.
pub(super) fn most_memory(params: &Params) -> u64 {
    params.receive_window.min(u64::from(u32::MAX))
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
