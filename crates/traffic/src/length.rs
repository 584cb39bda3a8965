//! Lengths and rates of packets: of their Ethernet frames or of their UDP payloads.

use sojourn_units::data;
use sojourn_units::words::{Given, WordError};

/// Bytes before the payload of a UDP packet in an Ethernet frame: Ethernet 14, IPv4 20, UDP 8.
/// Lengths of frames do not include frame check sequence, preamble and padding.
pub const UDP_HEADERS: u32 = 42;

/// Maximum UDP payload in bytes: that of a jumbo frame of 9014 bytes.
pub const MAX_PAYLOAD: u32 = 9014 - UDP_HEADERS;

/// Part of a packet that a length measures; a rate computed from the length counts the same part.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// The Ethernet frame.
    #[default]
    Frame,
    /// The UDP payload.
    Payload,
}

impl Counts {
    /// Returns the UDP payload of a packet of `length`, in bytes, at most [`MAX_PAYLOAD`].
    pub fn payload(self, length: u32) -> u32 {
        match self {
            Self::Frame => length.saturating_sub(UDP_HEADERS),
            Self::Payload => length,
        }
        .min(MAX_PAYLOAD)
    }

    /// Returns the word of a description that sets a length of this part: `size` or `payload`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Frame => "size",
            Self::Payload => "payload",
        }
    }

    /// Returns the part of a packet whose length a description sets by `size` or `payload`; `None`
    /// if it contains neither word.
    ///
    /// # Errors
    /// Both words are given.
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

/// Length of packets, and the part of a packet that it measures.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length<T> {
    /// Length of a packet in bytes, or its distribution.
    pub length: T,
    /// Part of the packet that the length, and a rate computed from it, measure.
    pub counts: Counts,
}
