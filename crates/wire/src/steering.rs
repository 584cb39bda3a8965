//! Which way a packet takes: from the device it comes from, and the address it goes to.

use crate::endpoint::Attachment;
use sojourn_network::{Place, Routes};
use sojourn_plan::{PlanError, at};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A way through the network to another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// First place of its path.
    pub place: Place,
    /// Index of the device at its end.
    pub to: u32,
}

/// Where the packets of all devices go.
#[derive(Clone, Debug)]
pub enum Steering {
    /// Everything that comes from a device has one way: two ends of a cable, or of several.
    Cable(Vec<Option<Way>>),
    /// To the device of the host with the packet's destination address.
    Hosts {
        /// Addresses of devices.
        addresses: BTreeMap<IpAddr, u32>,
        /// Matrix of ways in row-major order: row for the sending device, column for the receiving
        /// device.
        ways: Vec<Option<Way>>,
        /// Number of devices.
        devices: usize,
    },
}

impl Steering {
    /// Returns the way of a packet that comes from a device, if it has one.
    #[inline]
    pub fn way(&self, from: u32, to: Option<IpAddr>) -> Option<Way> {
        match self {
            Self::Cable(ways) => ways[from as usize],
            Self::Hosts { addresses, ways, devices } => {
                let to = *addresses.get(&to?)?;
                ways[from as usize * devices + to as usize]
            }
        }
    }

    /// Steers between `attachments`: by address if any of them has one, else from each to its peer, who
    /// is the other one if there are two.
    ///
    /// # Errors
    /// A device's peer is unknown, two devices have one address, or a host cannot be reached.
    pub fn new(routes: &mut Routes, attachments: &[Attachment]) -> Result<Self, PlanError> {
        let fail = |message: String| PlanError::new(at!["devices"], message);
        let mut way = |from: &Attachment, to: usize| {
            let end = attachments[to].node as u32;
            let place = routes.path(from.node as u32, end)?;
            (from.node as u32 != end).then_some(Way { place, to: to as u32 })
        };
        if attachments.iter().any(|a| a.peer.is_some()) {
            let mut cables = Vec::with_capacity(attachments.len());
            for (number, from) in attachments.iter().enumerate() {
                let peer = from.peer.filter(|&peer| {
                    let back = attachments.get(peer).and_then(|other| other.peer);
                    from.addresses.is_empty() && peer != number && back == Some(number)
                });
                let Some(peer) = peer else {
                    return Err(fail("a cable has two ends, which name each other".to_owned()));
                };
                cables.push(way(from, peer));
            }
            return Ok(Self::Cable(cables));
        }
        if attachments.iter().all(|a| a.addresses.is_empty()) {
            let [one, other] = attachments else {
                return Err(fail(format!("{} have no addresses: two may", attachments.len())));
            };
            return Ok(Self::Cable(vec![way(one, 1), way(other, 0)]));
        }
        let mut addresses = BTreeMap::new();
        for (number, attachment) in attachments.iter().enumerate() {
            for &address in &attachment.addresses {
                if addresses.insert(address, number as u32).is_some() {
                    return Err(fail(format!("two have the address {address}")));
                }
            }
        }
        let devices = attachments.len();
        let ways = attachments
            .iter()
            .flat_map(|from| (0..devices).map(|to| way(from, to)).collect::<Vec<_>>());
        Ok(Self::Hosts { addresses, ways: ways.collect(), devices })
    }
}
