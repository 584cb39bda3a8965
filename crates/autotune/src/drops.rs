//! Classification of drops by reason, to find those that a larger receive buffer would have
//! prevented.
//!
//! A socket has one counter of drops for all reasons (`sk_drops`). UDP's counters distinguish
//! reasons, but cover a whole network namespace. Together they bound the number of drops due to one
//! socket's full buffer: it is at most the namespace's `RcvbufErrors`, and at least the socket's
//! drops that no other counter can explain. All these counters exclude packets that were dropped
//! before they reached a socket, by a CPU's backlog or a device.

use crate::procfs;
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

/// UDP's counters of a network namespace since its creation. Each is the sum of both address
/// families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets dropped because a socket's receive buffer was full (`RcvbufErrors`).
    pub buffer: u64,
    /// Packets dropped because the memory limit of UDP was reached (`MemErrors`).
    pub memory: u64,
    /// Packets with a wrong checksum (`InCsumErrors`).
    pub checksum: u64,
    /// All packets dropped before delivery to a socket (`InErrors`), including those of the other
    /// counters and those dropped by socket filters.
    pub all: u64,
}

impl Counters {
    /// Reads the counters from the folder `net`, which is `/proc/PID/net` of any process in the
    /// namespace.
    ///
    /// # Errors
    /// If the process does not exist or has ended.
    pub fn read(net: &Path) -> std::io::Result<Self> {
        let mut udp = BTreeMap::new();
        procfs::add_snmp(&read_to_string(net.join("snmp"))?, &mut udp);
        // A kernel without IPv6 has no file `snmp6`.
        procfs::add_snmp6(&read_to_string(net.join("snmp6")).unwrap_or_default(), &mut udp);
        let get = |name: &str| udp.get(name).copied().unwrap_or(0);
        Ok(Self {
            buffer: get("RcvbufErrors"),
            memory: get("MemErrors"),
            checksum: get("InCsumErrors"),
            all: get("InErrors"),
        })
    }

    /// Returns the increase of each counter since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            buffer: self.buffer.saturating_sub(before.buffer),
            memory: self.memory.saturating_sub(before.memory),
            checksum: self.checksum.saturating_sub(before.checksum),
            all: self.all.saturating_sub(before.all),
        }
    }

    /// Returns the number of packets dropped for reasons other than a full receive buffer.
    fn others(self) -> u64 {
        self.all.saturating_sub(self.buffer).max(self.memory.saturating_add(self.checksum))
    }
}

/// Number of one socket's dropped packets for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Split {
    /// Packets dropped because the socket's receive buffer was full. A larger buffer prevents such
    /// drops.
    pub buffer: u64,
    /// Packets dropped because the memory limit of UDP was reached. Larger buffers make such drops
    /// more frequent.
    pub memory: u64,
    /// Packets dropped because of a wrong checksum.
    pub checksum: u64,
    /// Packets dropped by the socket's filter or for an unknown reason.
    pub other: u64,
}

impl Split {
    /// Returns the total number of dropped packets.
    pub fn total(self) -> u64 {
        self.buffer + self.memory + self.checksum + self.other
    }

    /// Adds the drops of another interval.
    pub fn add(&mut self, more: Self) {
        self.buffer += more.buffer;
        self.memory += more.memory;
        self.checksum += more.checksum;
        self.other += more.other;
    }
}

/// Divides `drops` of one socket by reason. `counted` is the increase of the namespace's counters
/// in the same time or slightly longer. Within the bounds, the division is proportional to these
/// counters.
pub fn split(drops: u64, counted: Counters) -> Split {
    let others = counted.others();
    let least = drops.saturating_sub(others);
    let most = drops.min(counted.buffer);
    let share = part(drops, counted.buffer, counted.buffer.saturating_add(others));
    let buffer = share.clamp(least.min(most), most);
    let rest = drops - buffer;
    let memory = part(rest, counted.memory, others);
    let checksum = part(rest, counted.checksum, others).min(rest - memory);
    Split { buffer, memory, checksum, other: rest - memory - checksum }
}

/// Returns `whole` times `some / all`, rounded down; 0 if `all` is 0.
fn part(whole: u64, some: u64, all: u64) -> u64 {
    if all == 0 {
        0
    } else {
        (u128::from(whole) * u128::from(some.min(all)) / u128::from(all)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(buffer: u64, memory: u64, checksum: u64, filtered: u64) -> Counters {
        Counters { buffer, memory, checksum, all: buffer + memory + checksum + filtered }
    }

    #[test]
    fn one_reason_takes_all() {
        assert_eq!(split(10, counted(10, 0, 0, 0)).buffer, 10);
        assert_eq!(split(10, counted(0, 10, 0, 0)), Split { memory: 10, ..Split::default() });
        assert_eq!(split(10, counted(0, 0, 10, 0)), Split { checksum: 10, ..Split::default() });
        assert_eq!(split(10, counted(0, 0, 0, 10)), Split { other: 10, ..Split::default() });
        // The namespace's counters may lag behind the socket's; then the buffer must not grow.
        assert_eq!(split(10, Counters::default()), Split { other: 10, ..Split::default() });
    }

    #[test]
    fn others_errors_do_not_hide_a_full_buffer() {
        // 100 packets were dropped at this socket, and another socket received 5 packets with
        // errors.
        assert!(split(100, counted(100, 0, 5, 0)).buffer >= 95);
    }

    proptest! {
        #[test]
        fn parts_make_the_whole(
            drops in 0u64..10_000, buffer in 0u64..10_000, memory in 0u64..10_000,
            checksum in 0u64..10_000, filtered in 0u64..10_000,
        ) {
            let split = split(drops, counted(buffer, memory, checksum, filtered));
            prop_assert_eq!(split.total(), drops);
            prop_assert!(split.buffer <= buffer);
            prop_assert!(split.buffer + memory + checksum + filtered >= drops.min(buffer));
        }
    }
}
