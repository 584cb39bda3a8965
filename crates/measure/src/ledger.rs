//! Double-entry bookkeeping of packets: what went in is out, or inside, or lost with a reason.
//!
//! A link counts the packets that pass it in its own ledger; the accounts of flows are the other side. The
//! two are the only source of every count in a record. Nothing is ever reset: what happened after the
//! warm-up is the difference of two copies.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes in them.
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

/// What happened to the packets of one flow in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowAccount {
    /// Handed to the network by its host.
    pub sent: Count,
    /// Copied by lines.
    pub duplicated: Count,
    /// Dropped by queues.
    pub dropped: Count,
    /// Lost on lines, or given up by transmitters.
    pub lost: Count,
    /// Taken by the other host.
    pub received: Count,
}

impl FlowAccount {
    /// What the books say is in the network.
    pub fn in_network(&self) -> Count {
        self.sent + self.duplicated - self.dropped - self.lost - self.received
    }
}

/// Books that do not balance: a bug in the simulator, never a property of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imbalance {
    /// Which account.
    pub account: String,
    /// What the books say.
    pub booked: Count,
    /// What was found.
    pub found: Count,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, booked, found } = self;
        write!(
            f,
            "conservation broken: {account}: booked {} packets ({} B), found {} ({} B)",
            booked.packets, booked.bytes, found.packets, found.bytes
        )
    }
}

impl std::error::Error for Imbalance {}

/// Compares the books with what was found.
///
/// # Errors
/// The imbalance, if there is one.
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
            "conservation broken: link up: booked 0 packets (0 B), found 1 (60 B)"
        );
    }
}
