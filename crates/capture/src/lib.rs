//! Capture files: a reader of packets' times and lengths.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types after the registry of
//! tcpdump.org.
//! Idea: [`read`] iterates over a file in memory, matches each packet's headers with [`Select`], and
//! keeps the packet's time and its length on the wire as an Ethernet frame, even if only a part of it
//! was captured.
//! Invariants: no input causes a panic, or uses memory beyond the permitted number of packets; every
//! error states its place in the file.
//!
//! The crate `pcap-file` is not used: its release 2.0 reads every time in a pcapng file as
//! nanoseconds.

mod headers;
mod pcap;
mod pcapng;
pub mod select;

pub use select::{Endpoint, Select};
use sojourn_units::Nanos;
use std::fmt;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of capture in nanoseconds since 1970.
    pub time: Nanos,
    /// Length of its Ethernet frame in bytes, without FCS; packets captured without an Ethernet
    /// header count as if they had one.
    pub frame: u32,
}

/// Content of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Selected packets, in the order of the file.
    pub packets: Vec<Packet>,
    /// Number of all packets in the file.
    pub seen: u64,
}

/// Reason why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// Offset of the error in the file, in bytes.
    pub at: usize,
    /// Description of the error.
    pub message: String,
}

impl CaptureError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {} of the file)", self.message, self.at)
    }
}

impl std::error::Error for CaptureError {}

/// A packet in a file.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    /// Offset in the file, in bytes.
    at: usize,
    time: Nanos,
    link: headers::Link,
    /// Length on the wire in bytes, without FCS.
    length: u32,
    /// Captured bytes.
    data: &'a [u8],
}

/// A part of a file, with the byte order of its numbers.
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

/// Reads a pcap or pcapng file: the packets that `select` matches, at most `most`.
///
/// # Errors
/// A malformed file, with the place; or a file with more than `most` matching packets.
pub fn read(bytes: &[u8], select: &Select, most: usize) -> Result<Capture, CaptureError> {
    let mut capture = Capture { packets: Vec::new(), seen: 0 };
    let mut take = |record: Record<'_>| {
        capture.seen += 1;
        if select.is_all() || select.means(record.link.headers(record.data).as_ref()) {
            if capture.packets.len() == most {
                return Err(CaptureError::new(record.at, format!("more than {most} packets")));
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
        None => return Err(CaptureError::new(0, "too short to be a capture file")),
    }
    Ok(capture)
}
