//! The size of a packet on the line behind the shaper.

use serde::{Deserialize, Serialize};
use sojourn_units::choices;

/// The Ethernet header, which the shaper does not count once the line's own overhead is given.
const ETHERNET: i64 = 14;

choices! {
    /// How the line cuts packets into cells.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Cells {
        /// It does not.
        #[default]
        None = "noatm",
        /// ATM: 48 bytes of payload in each cell of 53.
        Atm = "atm",
        /// PTM, 64b/65b: a byte for each 64, begun ones counted whole.
        Ptm = "ptm",
    }
}

impl Cells {
    /// Bytes that a packet of `length` bytes occupies in cells.
    #[inline]
    pub fn occupied(self, length: u32) -> u32 {
        match self {
            Self::None => length,
            Self::Atm => length.div_ceil(48) * 53,
            Self::Ptm => length + length.div_ceil(64),
        }
    }

    /// Returns whether the line cuts packets into none.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How the length of a packet on the line follows from its frame's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// Bytes that the line adds to the network packet; `None`: the frame is counted as it is.
    pub overhead: Option<i32>,
    /// The least that a packet occupies, before it is cut into cells.
    pub mpu: u32,
    /// Cells.
    pub cells: Cells,
}

impl Framing {
    /// Bytes on the line for a frame of `frame` bytes.
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
        // A full IP packet with 38 bytes of Ethernet: 1538 on the wire.
        assert_eq!(length(Some(38), 84, Cells::None, 1514), 1538);
        assert_eq!(length(Some(38), 84, Cells::None, 60), 84);
        // PPPoE over ATM: 1540 bytes are 33 cells, and one byte more is another.
        assert_eq!(length(Some(40), 0, Cells::Atm, 1514), 33 * 53);
        assert_eq!(length(Some(84), 0, Cells::Atm, 1514), 33 * 53);
        assert_eq!(length(Some(85), 0, Cells::Atm, 1514), 34 * 53);
        // A bare acknowledgement with its overhead: 80 bytes, two cells.
        assert_eq!(length(Some(40), 0, Cells::Atm, 54), 2 * 53);
        assert_eq!(length(Some(22), 0, Cells::Ptm, 1514), 1522 + 24);
        // Less than nothing is nothing.
        assert_eq!(length(Some(-64), 0, Cells::None, 60), 0);
    }
}
