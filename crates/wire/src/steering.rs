//! Selection of a packet's path: by the device that it comes from and its destination address.

use crate::endpoint::Attachment;
use sojourn_network::{Place, Routes};
use sojourn_plan::{PlanError, at};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A path through the network to another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Position of the path's first link (see [`Routes`]).
    pub place: Place,
    /// Index of the device at the path's end.
    pub to: u32,
}

/// Rule that selects the path of each packet.
#[derive(Clone, Debug)]
pub enum Steering {
    /// All packets of a device have one path, to the other end of a cable. The vector has the path
    /// of each device.
    Cable(Vec<Option<Way>>),
    /// The destination address selects the device.
    Hosts {
        /// Index of the device with each address.
        addresses: BTreeMap<IpAddr, u32>,
        /// Matrix of ways in row-major order: row for the sending device, column for the receiving
        /// device.
        ways: Vec<Option<Way>>,
        /// Number of devices.
        devices: usize,
    },
}

impl Steering {
    /// Returns the path of a packet that comes from a device and goes to the address `to`; `None`
    /// if no path leads there.
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

    /// Returns the rule for `attachments`. If any device has a peer, each is connected to its peer.
    /// If no device has an address, there must be two, connected to each other. Otherwise the
    /// destination address decides.
    ///
    /// # Errors
    /// If the two ends of a cable do not name each other, if no device has an address or peer and
    /// there are not exactly two, or if two devices have the same address.
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
                    return Err(fail("the two ends of a cable must name each other".to_owned()));
                };
                cables.push(way(from, peer));
            }
            return Ok(Self::Cable(cables));
        }
        if attachments.iter().all(|a| a.addresses.is_empty()) {
            let [one, other] = attachments else {
                let count = attachments.len();
                return Err(fail(format!("{count} devices have no addresses; only 2 may")));
            };
            return Ok(Self::Cable(vec![way(one, 1), way(other, 0)]));
        }
        let mut addresses = BTreeMap::new();
        for (number, attachment) in attachments.iter().enumerate() {
            for &address in &attachment.addresses {
                if addresses.insert(address, number as u32).is_some() {
                    return Err(fail(format!("two devices have the address {address}")));
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
