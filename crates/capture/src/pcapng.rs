//! The pcapng format: a sequence of blocks, of which sections, interfaces and packets are read and
//! written, and statistics written (draft-ietf-opsawg-pcapng).

use crate::headers::Link;
use crate::{CaptureError, Fields, Record};
use sojourn_units::{Nanos, SECOND};

/// Type of a section header, which is the same number in both byte orders.
pub const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
/// Type of a block with a packet.
pub const PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Numbers of Ethernet and of raw IP, without a link-layer header, in the registry of link types.
pub const ETHERNET: u16 = 1;
/// See [`ETHERNET`].
pub const RAW: u16 = 101;

/// Types of options of blocks.
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const APPLICATION: u16 = 4;
const RECEIVED: u16 = 4;
const LEFT_OUT: u16 = 5;
const END_OF_OPTIONS: u16 = 0;
const RESOLUTION: u16 = 9;
const FCS_LENGTH: u16 = 13;
const OFFSET: u16 = 14;

/// Maximum number of interfaces in a section, which is more than in any real capture.
const MOST_INTERFACES: usize = 1 << 16;

/// Description of an interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// Number of the link type in the registry.
    link: u32,
    /// Resolution of the times, in units per second.
    resolution: u128,
    /// Offset that is added to the times, in seconds.
    offset: i64,
    /// Length of the frame check sequence at the end of each packet, in bytes.
    fcs: u32,
}

impl Interface {
    fn time(&self, ticks: u64) -> Option<Nanos> {
        let nanos = u128::from(ticks).checked_mul(u128::from(SECOND))? / self.resolution;
        let offset = i128::from(self.offset) * i128::from(SECOND);
        Nanos::try_from(i128::try_from(nanos).ok()?.checked_add(offset)?).ok()
    }
}

/// Reads a file that begins with a section header.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    take: &mut impl FnMut(Record<'a>) -> Result<(), CaptureError>,
) -> Result<(), CaptureError> {
    let mut interfaces = Vec::new();
    let mut big = true;
    let mut at = 0;
    while at < bytes.len() {
        let cut = || CaptureError::new(at, "the file ends within a block");
        if (Fields { bytes, big: true }).u32(at) == Some(SECTION) {
            big = match (Fields { bytes, big: true }).u32(at + 8).ok_or_else(cut)? {
                BYTE_ORDER => true,
                order if order.swap_bytes() == BYTE_ORDER => false,
                order => {
                    let message =
                        format!("the byte-order number of a section is invalid: {order:#010x}");
                    return Err(CaptureError::new(at + 8, message));
                }
            };
            interfaces.clear();
        }
        let fields = Fields { bytes, big };
        let (kind, total) =
            (fields.u32(at).ok_or_else(cut)?, fields.u32(at + 4).ok_or_else(cut)? as usize);
        if total < 12 || !total.is_multiple_of(4) {
            return Err(CaptureError::new(
                at + 4,
                format!("the length of a block is invalid: {total} bytes"),
            ));
        }
        let body = fields.slice(at + 8, total - 12).ok_or_else(cut)?;
        if fields.u32(at + total - 4).ok_or_else(cut)? as usize != total {
            return Err(CaptureError::new(
                at + total - 4,
                "the two lengths of a block must be equal",
            ));
        }
        let body = Fields { bytes: body, big };
        match kind {
            INTERFACE if interfaces.len() == MOST_INTERFACES => {
                let message =
                    format!("a section must not have more than {MOST_INTERFACES} interfaces");
                return Err(CaptureError::new(at, message));
            }
            INTERFACE => interfaces.push(interface(body, at + 8)?),
            PACKET | OLD_PACKET => take(packet(body, at, kind == OLD_PACKET, &interfaces)?)?,
            SIMPLE_PACKET => {
                return Err(CaptureError::new(
                    at,
                    "packets must have times; a simple packet block has none",
                ));
            }
            SECTION => {
                let major = body.u16(4).ok_or_else(cut)?;
                if major != 1 {
                    let message = format!("the pcapng version must be 1, found {major}");
                    return Err(CaptureError::new(at + 12, message));
                }
            }
            // Blocks with names, statistics or comments contain no packets.
            _ => {}
        }
        at += total;
    }
    Ok(())
}

fn interface(body: Fields<'_>, at: usize) -> Result<Interface, CaptureError> {
    let cut = || CaptureError::new(at, "an interface block is too short");
    let link = u32::from(body.u16(0).ok_or_else(cut)?);
    body.u32(4).ok_or_else(cut)?;
    let mut interface = Interface { link, resolution: 1_000_000, offset: 0, fcs: 0 };
    let mut next = 8;
    while let (Some(code), Some(length)) = (body.u16(next), body.u16(next + 2)) {
        let length = usize::from(length);
        let value = Fields { bytes: body.slice(next + 4, length).ok_or_else(cut)?, big: body.big };
        match (code, length) {
            (END_OF_OPTIONS, _) => break,
            (RESOLUTION, 1) => {
                let power = u32::from(value.bytes[0] & 0x7f);
                let base: u128 = if value.bytes[0] & 0x80 == 0 { 10 } else { 2 };
                interface.resolution = base.checked_pow(power).ok_or_else(|| {
                    let message = format!("the unit of time is too small: {base}^-{power} s");
                    CaptureError::new(at + next, message)
                })?;
            }
            (FCS_LENGTH, 1) => interface.fcs = u32::from(value.bytes[0]),
            (OFFSET, 8) => interface.offset = value.i64(0).ok_or_else(cut)?,
            _ => {}
        }
        next += 4 + length.next_multiple_of(4);
    }
    Ok(interface)
}

fn packet<'a>(
    body: Fields<'a>,
    at: usize,
    old: bool,
    interfaces: &[Interface],
) -> Result<Record<'a>, CaptureError> {
    let cut = || CaptureError::new(at, "a packet block is too short");
    let number = if old { body.u16(0).map(u32::from) } else { body.u32(0) }.ok_or_else(cut)?;
    let Some(interface) = interfaces.get(number as usize) else {
        return Err(CaptureError::new(at + 8, format!("there is no interface {number}")));
    };
    let field = |i: usize| body.u32(i).ok_or_else(cut);
    let ticks = u64::from(field(4)?) << 32 | u64::from(field(8)?);
    let (kept, length) = (field(12)?, field(16)?);
    let data = body.slice(20, kept as usize).ok_or_else(cut)?;
    let time = interface
        .time(ticks)
        .ok_or_else(|| CaptureError::new(at + 12, "the packet's time is out of range"))?;
    let link = Link::of(interface.link).map_err(|why| CaptureError::new(at, why))?;
    let length = length.saturating_sub(interface.fcs);
    Ok(Record { at, time, link, length, data })
}

/// A block under construction, in little-endian byte order.
#[derive(Debug, Default)]
pub struct Block(Vec<u8>);

impl Block {
    /// Returns an empty block with memory for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Begins a block of the type `kind`, and discards the previous block.
    fn begin(&mut self, kind: u32) {
        self.0.clear();
        self.u32(kind);
        self.u32(0);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn time(&mut self, nanos: u64) {
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    fn end_of_options(&mut self) {
        self.u32(0);
    }

    /// Begins a section header block; `application` is the name of the program that writes the file.
    pub fn section(&mut self, application: &str) {
        self.begin(SECTION);
        self.u32(BYTE_ORDER);
        self.u16(1);
        self.u16(0);
        // The value -1 means that the section's length is not given.
        self.0.extend([0xff; 8]);
        self.option(APPLICATION, application.as_bytes());
        self.end_of_options();
    }

    /// Begins an interface description block; `link` is the number of a link type. Times are in
    /// nanoseconds.
    pub fn interface(&mut self, name: &str, link: u16, snaplen: usize) {
        self.begin(INTERFACE);
        self.u16(link);
        self.u16(0);
        self.u32(snaplen as u32);
        self.option(NAME, name.as_bytes());
        self.option(RESOLUTION, &[9]);
        self.end_of_options();
    }

    /// Begins a packet block: a packet of `length` bytes on an interface, of which `kept` was
    /// captured `at` this time, in nanoseconds since 1970. The comment has two parts.
    pub fn packet(
        &mut self,
        interface: u32,
        at: Nanos,
        kept: &[u8],
        length: u32,
        comment: Option<(&str, &str)>,
    ) {
        self.begin(PACKET);
        self.u32(interface);
        self.time(at);
        self.u32(kept.len() as u32);
        self.u32(length);
        self.padded(kept);
        if let Some((first, second)) = comment {
            self.u16(COMMENT);
            self.u16((first.len() + second.len()) as u16);
            self.0.extend(first.as_bytes());
            self.padded(second.as_bytes());
            self.end_of_options();
        }
    }

    /// Begins an interface statistics block: packets received and packets not captured.
    pub fn statistics(&mut self, interface: u32, at: Nanos, packets: u64, missed: u64) {
        self.begin(STATISTICS);
        self.u32(interface);
        self.time(at);
        self.option(RECEIVED, &(packets + missed).to_le_bytes());
        self.option(LEFT_OUT, &missed.to_le_bytes());
        self.end_of_options();
    }

    /// Completes the block and returns its bytes.
    pub fn end(&mut self) -> &[u8] {
        let length = self.0.len() as u32 + 4;
        self.0[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        &self.0
    }
}
