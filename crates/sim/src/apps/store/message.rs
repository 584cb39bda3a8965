//! Messages between the hosts of the store.

use crate::channels;
use sojourn_replication::Outcome;

/// Bytes of a message in addition to the record: headers of the native protocol and of Cassandra's
/// own.
const OVERHEAD: u64 = 100;

/// A request, in a slot that is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// Messages between hosts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    /// A client to its coordinator.
    Ask { id: Id, bytes: u64 },
    /// And back.
    Answer { id: Id, outcome: Outcome, bytes: u64 },
    /// A coordinator to a replica, of whose `step` it is.
    Write { id: Id, step: u8, key: u64, version: u64, bytes: u64 },
    /// The same; `records` of 0 asks for a digest.
    Read { id: Id, step: u8, key: u64, records: u32 },
    /// And back: the version that was read, or whether it failed.
    Done { id: Id, step: u8, version: Option<u64>, bytes: u64 },
    /// A write that was kept for the replica.
    Hint { key: u64, version: u64, bytes: u64 },
    /// And back.
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
