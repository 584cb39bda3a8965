//! Capture files: a reader, which returns the times and lengths of packets, and writers.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types of the registry of
//! tcpdump.org.
//! Method: [`read`] iterates over a file in memory and compares each packet's headers with
//! [`Select`]. It returns the time and the length on the wire of each selected packet, as an
//! Ethernet frame, even if only a part of the packet was captured. [`frames`] writes the packets of
//! a simulated link as a pcap file, [`pcapng::Block`] the blocks of a pcapng file.
//! Invariants: no input causes a panic, or uses memory for more than the permitted number of
//! packets. Every error states its place in the file.
//!
//! The crate `pcap-file` is not used, since its release 2.0 interprets all times in a pcapng file
//! as nanoseconds.

pub mod checksum;
pub mod frames;
mod headers;
mod pcap;
pub mod pcapng;
pub mod select;

pub use select::{Endpoint, Select};
use sojourn_units::Nanos;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of capture in nanoseconds since 1970.
    pub time: Nanos,
    /// Length of the packet's Ethernet frame in bytes, without FCS. If the packet was captured
    /// without an Ethernet header, the length includes one.
    pub frame: u32,
}

/// The packets of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Selected packets, in the order of the file.
    pub packets: Vec<Packet>,
    /// Number of packets in the file, including those that were not selected.
    pub seen: u64,
}

/// Reason why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (byte {at} of the file)")]
pub struct CaptureError {
    /// Offset of the error in the file, in bytes.
    pub at: usize,
    /// Explanation of the error.
    pub message: String,
}

impl CaptureError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// A packet in a file.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    /// Offset of the packet in the file, in bytes.
    at: usize,
    time: Nanos,
    link: headers::Link,
    /// Length on the wire in bytes, without FCS.
    length: u32,
    /// Captured bytes of the packet.
    data: &'a [u8],
}

/// A part of a file, and the byte order of its numbers.
#[derive(Clone, Copy, Debug)]
struct Fields<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Fields<'a> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        let mut array: [u8; N] = self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()?;
        if !self.big {
            array.reverse();
        }
        Some(array)
    }

    fn u16(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_be_bytes)
    }

    fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    fn i64(self, at: usize) -> Option<i64> {
        self.array(at).map(i64::from_be_bytes)
    }

    fn slice(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(at..at.checked_add(length)?)
    }
}

/// Reads a pcap or pcapng file. Returns the packets that `select` selects, at most `most` of them.
///
/// # Errors
/// If the file is malformed or contains more than `most` selected packets: the place and the
/// reason.
pub fn read(bytes: &[u8], select: &Select, most: usize) -> Result<Capture, CaptureError> {
    let mut capture = Capture { packets: Vec::new(), seen: 0 };
    let mut take = |record: Record<'_>| {
        capture.seen += 1;
        if select.is_all() || select.means(record.link.headers(record.data).as_ref()) {
            if capture.packets.len() == most {
                return Err(CaptureError::new(
                    record.at,
                    format!("the file must not contain more than {most} selected packets"),
                ));
            }
            let frame = record.link.frame(record.length);
            capture.packets.push(Packet { time: record.time, frame });
        }
        Ok(())
    };
    let first = Fields { bytes, big: true }.u32(0);
    match first {
        Some(pcapng::SECTION) => pcapng::read(bytes, &mut take)?,
        Some(magic) => pcap::read(bytes, magic, &mut take)?,
        None => return Err(CaptureError::new(0, "the file is too short for a capture file")),
    }
    Ok(capture)
}
