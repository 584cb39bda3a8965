//! The pcap format: a header, followed by packets (draft-ietf-opsawg-pcap).

use crate::headers::Link;
use crate::{CaptureError, Fields, Record};
use sojourn_units::{Nanos, SECOND};

/// First number of a file whose times are in microseconds (or nanoseconds), in the byte order of
/// the file.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

const HEADER: usize = 24;
const RECORD: usize = 16;

/// Maximum number of captured bytes of a packet. A larger number indicates a corrupt file.
const LONGEST: u32 = 1 << 26;

/// Reads a file whose first four bytes, as a big-endian number, are `magic`.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    magic: u32,
    take: &mut impl FnMut(Record<'a>) -> Result<(), CaptureError>,
) -> Result<(), CaptureError> {
    let (big, unit) = match (magic, magic.swap_bytes()) {
        (MICROSECONDS, _) => (true, 1000),
        (NANOSECONDS, _) => (true, 1),
        (_, MICROSECONDS) => (false, 1000),
        (_, NANOSECONDS) => (false, 1),
        _ => return Err(CaptureError::new(0, "the file is neither a pcap nor a pcapng file")),
    };
    let fields = Fields { bytes, big };
    let (Some(major), Some(network)) = (fields.u16(4), fields.u32(20)) else {
        return Err(CaptureError::new(0, "the file ends within its header"));
    };
    if major != 2 {
        return Err(CaptureError::new(4, format!("the pcap version must be 2, found {major}")));
    }
    // The upper bits contain the length of each packet's frame check sequence, in 16-bit words, if
    // it is known.
    let fcs = if network & 1 << 26 == 0 { 0 } else { (network >> 28) * 2 };
    let link = Link::of(network & 0xffff).map_err(|why| CaptureError::new(20, why))?;
    let mut at = HEADER;
    while at < bytes.len() {
        let cut = || CaptureError::new(at, "the file ends within a packet");
        let field = |i: usize| fields.u32(at + 4 * i).ok_or_else(cut);
        let (seconds, fraction, kept, length) = (field(0)?, field(1)?, field(2)?, field(3)?);
        if kept > LONGEST {
            return Err(CaptureError::new(
                at + 8,
                format!("a packet must not have more than {LONGEST} captured bytes, found {kept}"),
            ));
        }
        let data = fields.slice(at + RECORD, kept as usize).ok_or_else(cut)?;
        let time = Nanos::from(seconds) * SECOND + Nanos::from(fraction) * unit;
        take(Record { at, time, link, length: length.saturating_sub(fcs), data })?;
        at += RECORD + data.len();
    }
    Ok(())
}

/// A file under construction in memory, with times in nanoseconds and Ethernet frames.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    snaplen: usize,
}

impl Writer {
    /// Returns a file without packets. At most `snaplen` bytes of each packet are captured.
    pub fn new(snaplen: u32) -> Self {
        let mut bytes = Vec::new();
        bytes.extend(NANOSECONDS.to_le_bytes());
        bytes.extend([2, 0, 4, 0]);
        bytes.extend([0; 8]);
        bytes.extend(snaplen.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        Self { bytes, snaplen: snaplen as usize }
    }

    /// Returns the maximum size in bytes of the file after one more packet.
    pub fn next_size(&self) -> usize {
        self.bytes.len() + RECORD + self.snaplen
    }

    /// Appends a frame of `length` bytes, which are `head` and then zeros. `time` is in nanoseconds
    /// since 1970.
    pub fn add(&mut self, time: Nanos, length: u32, head: &[u8]) {
        let kept = (length as usize).min(self.snaplen);
        let fields = [(time / SECOND) as u32, (time % SECOND) as u32, kept as u32, length];
        self.bytes.extend(fields.into_iter().flat_map(u32::to_le_bytes));
        let head = &head[..head.len().min(kept)];
        self.bytes.extend(head);
        self.bytes.resize(self.bytes.len() + kept - head.len(), 0);
    }

    /// Returns the file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
