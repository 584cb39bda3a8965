//! The results of the handshake, from which a sender is set up.

use crate::params::Ecn;
use sojourn_units::Nanos;

/// The results of the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// When the connection was established.
    pub(crate) at: Nanos,
    /// Payload of a full segment in bytes.
    pub(crate) mss: u64,
    /// Whether both ends use selective acknowledgements.
    pub(crate) sack: bool,
    pub(crate) ecn: Ecn,
    /// How often the SYN was sent again because it was lost.
    pub(crate) lost_syns: u32,
    /// The handshake's round-trip time, if it is known.
    pub(crate) rtt: Option<Nanos>,
}
