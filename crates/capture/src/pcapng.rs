//! The pcapng format: a sequence of blocks, of which sections, interfaces and packets are read
//! (draft-ietf-opsawg-pcapng).

use crate::headers::Link;
use crate::{CaptureError, Fields, Record};
use sojourn_units::{Nanos, SECOND};

/// Types of blocks. The type of a section header is the same number in both byte orders.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Types of an interface's options.
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
