//! Which drops a larger receive buffer would have prevented.
//!
//! A socket counts its drops in one number (`sk_drops`), whatever the reason. UDP's counters tell reasons, but
//! for a whole network namespace. Both together bound what was lost at one socket's own buffer: not
//! more than the namespace's `RcvbufErrors`, and not less than what no other reason can account for. Drops
//! before any socket (a CPU's backlog, a device) are in neither, and no socket's fault.

use crate::procfs;
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

/// UDP's counters of a network namespace, both families together, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets for which a socket's buffer was full (`RcvbufErrors`).
    pub buffer: u64,
    /// Packets for which UDP had no memory (`MemErrors`).
    pub memory: u64,
    /// Packets with a wrong checksum (`InCsumErrors`).
    pub checksum: u64,
    /// All packets that a socket did not get (`InErrors`), which includes the others and what a
    /// socket's filter refused.
    pub all: u64,
}

impl Counters {
    /// Reads them from `net`, the folder `/proc/PID/net` of any process in the namespace.
    ///
    /// # Errors
    /// If there is no such process (any more).
    pub fn read(net: &Path) -> std::io::Result<Self> {
        let mut udp = BTreeMap::new();
        procfs::add_snmp(&read_to_string(net.join("snmp"))?, &mut udp);
        // A kernel without IPv6 has no such file.
        procfs::add_snmp6(&read_to_string(net.join("snmp6")).unwrap_or_default(), &mut udp);
        let get = |name: &str| udp.get(name).copied().unwrap_or(0);
        Ok(Self {
            buffer: get("RcvbufErrors"),
            memory: get("MemErrors"),
            checksum: get("InCsumErrors"),
            all: get("InErrors"),
        })
    }

    /// What has been added since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            buffer: self.buffer.saturating_sub(before.buffer),
            memory: self.memory.saturating_sub(before.memory),
            checksum: self.checksum.saturating_sub(before.checksum),
            all: self.all.saturating_sub(before.all),
        }
    }

    /// Packets lost for another reason than a full buffer.
    fn others(self) -> u64 {
        self.all.saturating_sub(self.buffer).max(self.memory.saturating_add(self.checksum))
    }
}

/// Drops of one socket by reason, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Split {
    /// Its buffer was full: more room helps.
    pub buffer: u64,
    /// UDP had no memory: more room makes it worse.
    pub memory: u64,
    /// Wrong checksums.
    pub checksum: u64,
    /// A filter of the socket's, or unknown.
    pub other: u64,
}

impl Split {
    /// All of them.
    pub fn total(self) -> u64 {
        self.buffer + self.memory + self.checksum + self.other
    }

    /// Adds another span's.
    pub fn add(&mut self, more: Self) {
        self.buffer += more.buffer;
        self.memory += more.memory;
        self.checksum += more.checksum;
        self.other += more.other;
    }
}

/// `drops` of one socket by reason, given what the namespace counted in the same time (or a little
/// longer). In doubt, in proportion to what was counted.
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

/// `whole` times `some` of `all`, rounded down.
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
        // The namespace's counters lag behind, or its packets were dropped before: no growth.
        assert_eq!(split(10, Counters::default()), Split { other: 10, ..Split::default() });
    }

    #[test]
    fn others_errors_do_not_hide_a_full_buffer() {
        // 100 lost here; meanwhile another socket got five broken packets.
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
