//! Capture files: bytes in, times and lengths of packets out.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types after the registry of
//! tcpdump.org.
//! Idea: [`read`] walks over a file in memory, asks [`Select`] of each packet's headers whether it is
//! meant, and keeps its time and the length that it had on the wire as an Ethernet frame, however
//! little of it was captured.
//! Invariants: no bytes make it panic or take memory beyond the packets it is allowed to keep; what
//! it refuses, it refuses with the place in the file.
//!
//! Not by the crate `pcap-file`: its release 2.0 takes every time in a pcapng file for nanoseconds.

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
    /// When it was captured, since 1970.
    pub time: Nanos,
    /// Length of its Ethernet frame without FCS; of packets captured without one, as if they had it.
    pub frame: u32,
}

/// What a capture holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The packets that were meant, in the order of the file.
    pub packets: Vec<Packet>,
    /// Packets in the file.
    pub seen: u64,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// Where in the file, in bytes from its beginning.
    pub at: usize,
    /// The complaint.
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

/// A packet as it stands in a file.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    /// Where it stands.
    at: usize,
    time: Nanos,
    link: headers::Link,
    /// Its length on the wire, FCS left out.
    length: u32,
    /// What was captured of it.
    data: &'a [u8],
}

/// Part of a file, with the byte order of its numbers.
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

/// Reads a pcap or pcapng file: the packets that `select` means, at most `most` of them.
///
/// # Errors
/// What is wrong with the file, and where; or that it has more packets.
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
