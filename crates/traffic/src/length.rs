//! Meaning of a length and of a rate: frames or payload.

use serde::{Deserialize, Serialize};
use sojourn_units::words::{Given, WordError};

/// Bytes before the payload of a UDP packet: Ethernet 14, IPv4 20, UDP 8. Lengths of frames exclude
/// frame check sequence, preamble and padding, as everywhere.
pub const UDP_HEADERS: u32 = 42;

/// The longest payload: that of a jumbo frame.
pub const MAX_PAYLOAD: u32 = 9014 - UDP_HEADERS;

/// Meaning of a length, and of the rate made of such lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// The Ethernet frame.
    #[default]
    Frame,
    /// The UDP payload.
    Payload,
}

impl Counts {
    /// Returns the payload of a packet of `length`.
    pub fn payload(self, length: u32) -> u32 {
        match self {
            Self::Frame => length.saturating_sub(UDP_HEADERS),
            Self::Payload => length,
        }
        .min(MAX_PAYLOAD)
    }

    /// Returns the word for such a length.
    pub fn word(self) -> &'static str {
        match self {
            Self::Frame => "size",
            Self::Payload => "payload",
        }
    }

    /// Returns which of `size` and `payload` was given, if any.
    ///
    /// # Errors
    /// Both were given.
    pub(crate) fn given(given: &Given) -> Result<Option<Self>, WordError> {
        match (given.has("size"), given.has("payload")) {
            (true, true) => Err(given.error(
                "payload",
                "`size` (of the Ethernet frame) and `payload` (of UDP) exclude each other",
            )),
            (true, false) => Ok(Some(Self::Frame)),
            (false, true) => Ok(Some(Self::Payload)),
            (false, false) => Ok(None),
        }
    }
}

/// Lengths of packets, and their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Length<T> {
    /// Bytes of a packet, or their distribution.
    pub length: T,
    /// Their meaning, and that of a rate made of such lengths.
    pub counts: Counts,
}
