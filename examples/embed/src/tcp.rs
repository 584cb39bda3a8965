//! TCP by smoltcp: the glue between an interface's device and a path.

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use sojourn_link::{Datagram, Direction, Ecn, Path};
use std::collections::VecDeque;

/// The device of one host: packets that have arrived, and packets to send.
#[derive(Default)]
pub struct Port {
    pub arrived: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

impl Port {
    /// Puts the packets that the interface has sent on the path.
    pub fn transmit(&mut self, now: u64, flow: u32, to: Direction, path: &mut Path<Datagram>) {
        for bytes in self.sent.drain(..) {
            let ecn = Ecn::from_bits(bytes[1]);
            path.send(now, to, Datagram { bytes, headers: 14, flow, ecn });
        }
    }
}

pub struct Received(Vec<u8>);
pub struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.push_back(vec![0; length]);
        write(self.0.back_mut().unwrap())
    }
}

impl Device for Port {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;
    fn receive(&mut self, _: Instant) -> Option<(Received, Sent<'_>)> {
        Some((Received(self.arrived.pop_front()?), Sent(&mut self.sent)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, 1500);
        capabilities
    }
}
