//! The receive buffer as memory, and the window that it stands for.

use crate::params::Params;

/// Where an automatic receive buffer starts (`net.ipv4.tcp_rmem[1]`).
const INITIAL_MEMORY: u64 = 131_072;
/// Shares of windows in memory are in 1/256; the share before the first data.
pub(super) const SHARE: u64 = 256;
const INITIAL_SHARE: u64 = SHARE / 2;
/// Smaller segments do not open the window (`tcp_event_data_recv`).
pub(super) const SMALL: u64 = 128;

/// The receive buffer as memory, after Linux's `tcp_grow_window` and `tcp_rcvbuf_grow`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveMemory {
    /// The buffer.
    pub(super) size: u64,
    /// The share of a full segment's memory that is payload, in 1/256.
    pub(super) share: u64,
    /// The window that segments have opened so far (`rcv_ssthresh`).
    pub(super) opened: u64,
}

impl ReceiveMemory {
    pub(super) fn new(params: &Params) -> Self {
        let most = most_memory(params);
        let size = if params.autotune { most.min(INITIAL_MEMORY) } else { most };
        Self { size, share: INITIAL_SHARE, opened: size * INITIAL_SHARE / SHARE }
    }

    /// Returns the payload that fits `bytes` of memory.
    pub(super) fn window(&self, bytes: u64) -> u64 {
        bytes * self.share / SHARE
    }
}

/// Most memory that the receive buffer may take.
pub(super) fn most_memory(params: &Params) -> u64 {
    params.receive_window.min(u64::from(u32::MAX))
}
