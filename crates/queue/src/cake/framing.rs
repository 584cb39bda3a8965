//! The length of packets on the line after the shaper.

use sojourn_units::{choices, data};

/// Length of the Ethernet header in bytes. If `overhead` is given, the header does not count.
const ETHERNET: i64 = 14;

choices! {
    /// Cells into which the line divides packets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Cells {
        /// No cells.
        #[default]
        None = "noatm",
        /// ATM: cells of 53 bytes with 48 bytes of payload.
        Atm = "atm",
        /// PTM (64b/65b): one byte for each 64 bytes or part of them.
        Ptm = "ptm",
    }
}

impl Cells {
    /// Returns the number of bytes that a packet of `length` bytes occupies on the line.
    #[inline]
    pub fn occupied(self, length: u32) -> u32 {
        match self {
            Self::None => length,
            Self::Atm => length.div_ceil(48) * 53,
            Self::Ptm => length + length.div_ceil(64),
        }
    }

    /// Returns whether the line has no cells.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Parameters from which the length of a packet on the line is computed.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes that the line adds to the network packet; with `None` the length is that of the
    /// Ethernet frame.
    pub overhead: Option<i32>,
    /// Minimum length of a packet in bytes, before it is divided into cells.
    pub mpu: u32,
    /// Cells of the line.
    pub cells: Cells,
}

impl Framing {
    /// Returns the length on the line of a frame of `frame` bytes, in bytes.
    #[inline]
    pub fn length(&self, frame: u32) -> u32 {
        let packet = match self.overhead {
            None => i64::from(frame),
            Some(overhead) => i64::from(frame) - ETHERNET + i64::from(overhead),
        };
        self.cells.occupied(packet.max(i64::from(self.mpu)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_they_are() {
        let length = |overhead, mpu, cells, frame| Framing { overhead, mpu, cells }.length(frame);
        assert_eq!(length(None, 0, Cells::None, 1514), 1514);
        // A full IP packet with 38 bytes of Ethernet overhead: 1538 bytes on the wire.
        assert_eq!(length(Some(38), 84, Cells::None, 1514), 1538);
        assert_eq!(length(Some(38), 84, Cells::None, 60), 84);
        // PPPoE over ATM: 1540 bytes are 33 cells; 33 cells hold up to 1584 bytes.
        assert_eq!(length(Some(40), 0, Cells::Atm, 1514), 33 * 53);
        assert_eq!(length(Some(84), 0, Cells::Atm, 1514), 33 * 53);
        assert_eq!(length(Some(85), 0, Cells::Atm, 1514), 34 * 53);
        // An acknowledgement of 40 bytes with 40 bytes of overhead: two cells.
        assert_eq!(length(Some(40), 0, Cells::Atm, 54), 2 * 53);
        assert_eq!(length(Some(22), 0, Cells::Ptm, 1514), 1522 + 24);
        // A negative length counts as 0.
        assert_eq!(length(Some(-64), 0, Cells::None, 60), 0);
    }
}
