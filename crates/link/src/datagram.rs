//! A ready-made packet: bytes with an ECN field, as transports over UDP send them.

use crate::observer::Corrupt;
use sojourn_queue::{Ecn, Packet};

/// A datagram with the fields that queues read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// The content, of which a wire that corrupts flips a bit.
    pub bytes: Vec<u8>,
    /// Bytes of the headers around the content, Ethernet's included: 42 with IPv4 and UDP, 62 with
    /// IPv6 and UDP.
    pub headers: u32,
    /// Number of the flow, for disciplines with a queue for each flow.
    pub flow: u32,
    /// The ECN field.
    pub ecn: Ecn,
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        self.bytes.len() as u32 + self.headers
    }

    fn flow_hash(&self) -> u32 {
        // The disciplines take a flow's queue from the upper bits.
        self.flow.wrapping_mul(0x9e37_79b9)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) -> bool {
        self.ecn.mark()
    }
}

impl Corrupt for Datagram {
    fn corrupt(&mut self, entropy: u32) {
        let bits = self.bytes.len() as u32 * 8;
        if bits > 0 {
            let bit = entropy % bits;
            self.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}
