//! The receive buffer in bytes of memory, and the window in bytes of payload that it allows.

use crate::params::Params;

/// Initial size of an automatic receive buffer in bytes of memory (`net.ipv4.tcp_rmem[1]`).
const INITIAL_MEMORY: u64 = 131_072;
/// Denominator of the share of memory that is payload.
pub(super) const SHARE: u64 = 256;
/// Assumed share of memory that is payload until data arrive, in units of 1/256.
const INITIAL_SHARE: u64 = SHARE / 2;
/// Payload in bytes below which a segment does not open the window (`tcp_event_data_recv`).
pub(super) const SMALL: u64 = 128;

/// The receive buffer as memory, after Linux's `tcp_grow_window` and `tcp_rcvbuf_grow`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveMemory {
    /// Size of the buffer in bytes of memory.
    pub(super) size: u64,
    /// The share of a full segment's memory that is payload, in 1/256.
    pub(super) share: u64,
    /// Window in bytes that segments have opened so far (`rcv_ssthresh`).
    pub(super) opened: u64,
}

impl ReceiveMemory {
    pub(super) fn new(params: &Params) -> Self {
        let most = most_memory(params);
        let size = if params.autotune { most.min(INITIAL_MEMORY) } else { most };
        Self { size, share: INITIAL_SHARE, opened: size * INITIAL_SHARE / SHARE }
    }

    /// Returns the bytes of payload that fit into `bytes` of memory.
    pub(super) fn window(&self, bytes: u64) -> u64 {
        bytes * self.share / SHARE
    }
}

/// Returns the greatest size of the receive buffer in bytes of memory.
pub(super) fn most_memory(params: &Params) -> u64 {
    params.receive_window.min(u64::from(u32::MAX))
}
