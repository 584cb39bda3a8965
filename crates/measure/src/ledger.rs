//! Double-entry bookkeeping of packets. Each packet that entered the network has left it, is still
//! in it, or was lost for a known reason.
//!
//! Each link counts its packets in its own ledger, and the accounts of flows count them a second
//! time. An audit compares the two. Counts are never reset: the count after the warm-up is the
//! difference of two copies.

use std::ops::{Add, AddAssign, Sub};

/// Number of packets, and number of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet of `bytes`.
    #[inline]
    pub fn count(&mut self, bytes: impl Into<u64>) {
        self.packets += 1;
        self.bytes += bytes.into();
    }
}

impl Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Count {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::default(), |a, b| a + b)
    }
}

/// Counts of the packets of one flow in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowAccount {
    /// Packets that the sending host passed to the network.
    pub sent: Count,
    /// Packets that impairments of links duplicated.
    pub duplicated: Count,
    /// Packets that queues dropped.
    pub dropped: Count,
    /// Packets lost by impairments of links, or abandoned by transmitters.
    pub lost: Count,
    /// Packets that the receiving host received.
    pub received: Count,
    /// Number of sent packets of which all copies were dropped or lost.
    pub missing: u64,
}

impl FlowAccount {
    /// Returns the number of packets that must be in the network according to this account.
    pub fn in_network(&self) -> Count {
        self.sent + self.duplicated - self.dropped - self.lost - self.received
    }
}

/// An account that does not balance. This is a bug in the program, never a property of the
/// scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "packets are not conserved: {account}: booked {} packets ({} B), found {} ({} B)",
    booked.packets, booked.bytes, found.packets, found.bytes
)]
pub struct Imbalance {
    /// Name of the account.
    pub account: String,
    /// Count that the account implies.
    pub booked: Count,
    /// Count that was found.
    pub found: Count,
}

/// Compares the count that an account implies with the count that was found.
///
/// # Errors
/// If the counts differ: the imbalance.
pub fn balance(
    account: impl FnOnce() -> String,
    booked: Count,
    found: Count,
) -> Result<(), Imbalance> {
    if booked == found { Ok(()) } else { Err(Imbalance { account: account(), booked, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imbalance_says_where() {
        let found = Count { packets: 1, bytes: 60 };
        let error = balance(|| "link up".to_owned(), Count::default(), found).unwrap_err();
        assert_eq!(
            error.to_string(),
            "packets are not conserved: link up: booked 0 packets (0 B), found 1 (60 B)"
        );
    }
}
