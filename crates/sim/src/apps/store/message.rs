//! Messages between the hosts of the store.

use crate::channels;
use sojourn_replication::Outcome;

/// Bytes of a message in addition to the record, for the headers of Cassandra's protocols between
/// clients and nodes and between nodes.
const OVERHEAD: u64 = 100;

/// Identifies a request: its slot, and the number of requests that had the slot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// Messages between hosts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    /// A request from a client to its coordinator.
    Ask { id: Id, bytes: u64 },
    /// The answer from the coordinator to its client.
    Answer { id: Id, outcome: Outcome, bytes: u64 },
    /// A write from a coordinator to a replica, in step `step` of the request.
    Write { id: Id, step: u8, key: u64, version: u64, bytes: u64 },
    /// A read from a coordinator to a replica; 0 `records` request a digest.
    Read { id: Id, step: u8, key: u64, records: u32 },
    /// The answer from a replica to the coordinator: the version, or `None` for a failure.
    Done { id: Id, step: u8, version: Option<u64>, bytes: u64 },
    /// A hint: a write that a node stored for a replica that was down or did not answer.
    Hint { key: u64, version: u64, bytes: u64 },
    /// The replica's acknowledgement of a hint.
    Hinted,
}

impl channels::Message for Message {
    fn bytes(&self) -> u64 {
        OVERHEAD
            + match *self {
                Self::Ask { bytes, .. }
                | Self::Answer { bytes, .. }
                | Self::Write { bytes, .. }
                | Self::Done { bytes, .. }
                | Self::Hint { bytes, .. } => bytes,
                Self::Read { .. } | Self::Hinted => 0,
            }
    }
}
