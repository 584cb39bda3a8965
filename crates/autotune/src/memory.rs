//! Memory available to sockets: limits of the machine, of UDP, and of the servers' control groups.

use crate::procfs;
use sojourn_buffer::Memory;
use sojourn_units::Bytes;
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Memory is short if tasks waited for memory for at least this share of the last ten seconds.
pub const PRESSURE: f64 = 0.1;
/// Memory is short if less than the total divided by this number is available.
const SHORT: Bytes = 20;
const PAGE: Bytes = 4096;

/// Memory available to the sockets of some processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// The smallest total and available memory among the machine and the control groups. While
    /// memory is short, the available part is 0.
    pub memory: Memory,
    /// Limit on the sum of all receive buffers, in bytes.
    pub budget: Bytes,
    /// Name of the limit that determines the budget: `given`, `cgroup`, `udp_mem` or `available`.
    pub bound: &'static str,
    /// Whether memory is short: tasks wait for memory, or little memory is available.
    pub short: bool,
    /// Share of the last ten seconds in which tasks waited for memory, 0 to 1; `None` if the kernel
    /// does not report it (`CONFIG_PSI`).
    pub pressure: Option<f64>,
}

/// Memory limit of one control group, and the memory pressure in it.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    memory: Memory,
    pressure: Option<f64>,
}

/// Root folders of the kernel's reports. Tests use other folders.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder `/proc`.
    pub proc: PathBuf,
    /// The folder `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { proc: "/proc".into(), cgroup: "/sys/fs/cgroup".into() }
    }
}

impl Places {
    /// Returns the memory for sockets of `processes`, whose packets occupy `occupied` bytes now.
    /// The budget is the minimum of `given`, of `share` times UDP's limit, and of `share` times the
    /// memory available to the machine and to each control group.
    ///
    /// # Errors
    /// If the machine's memory figures cannot be read.
    pub fn room(
        &self,
        processes: &[u32],
        given: Option<Bytes>,
        share: f64,
        occupied: Bytes,
    ) -> std::io::Result<Room> {
        let meminfo = read_to_string(self.proc.join("meminfo"))?;
        let field = |name| procfs::meminfo(&meminfo, name).unwrap_or(0);
        let mut memory = Memory { total: field("MemTotal"), available: field("MemAvailable") };
        let part = |bytes: Bytes| (bytes as f64 * share) as Bytes;
        let mut bounds = vec![(part(memory.available.saturating_add(occupied)), "available")];
        let mut pressure = self.machine_pressure();
        if let Some(most) = self.udp_limit() {
            bounds.push((part(most), "udp_mem"));
        }
        let lines: BTreeSet<String> = processes
            .iter()
            .filter_map(|pid| read_to_string(self.proc.join(format!("{pid}/cgroup"))).ok())
            .collect();
        for group in lines.iter().flat_map(|text| self.groups(text)) {
            bounds.push((part(group.memory.available.saturating_add(occupied)), "cgroup"));
            memory.total = memory.total.min(group.memory.total);
            memory.available = memory.available.min(group.memory.available);
            pressure = match (pressure, group.pressure) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        let short = memory.available < memory.total / SHORT
            || pressure.is_some_and(|waited| waited >= PRESSURE);
        if short {
            memory.available = 0;
        }
        bounds.extend(given.map(|bytes| (bytes, "given")));
        let (budget, bound) = bounds.into_iter().min().unwrap_or((0, "available"));
        Ok(Room { memory, budget, bound, short, pressure })
    }

    fn machine_pressure(&self) -> Option<f64> {
        procfs::pressure(&read_to_string(self.proc.join("pressure/memory")).ok()?)
    }

    /// Returns the limit above which UDP drops all packets, in bytes. It is the third number of
    /// `net.ipv4.udp_mem`, which is in pages.
    fn udp_limit(&self) -> Option<Bytes> {
        let text = read_to_string(self.proc.join("sys/net/ipv4/udp_mem")).ok()?;
        text.split_whitespace().nth(2)?.parse::<Bytes>().ok()?.checked_mul(PAGE)
    }

    /// Returns the control groups with a limit: those that the text of `/proc/PID/cgroup` names,
    /// and their parents.
    fn groups(&self, text: &str) -> Vec<Group> {
        let mut found = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let path = path.trim_start_matches('/');
            if controllers.is_empty() {
                // Version 2 is mounted at `self.cgroup`, or at `self.cgroup/unified` if version 1
                // is also mounted.
                for root in [self.cgroup.clone(), self.cgroup.join("unified")] {
                    climb(&root, path, version2, &mut found);
                }
            } else if controllers.split(',').any(|name| name == "memory") {
                climb(&self.cgroup.join("memory"), path, version1, &mut found);
            }
        }
        found
    }
}

/// Appends a group and all groups above it, as far as they have a limit. In a container, the
/// container's own group is the root, regardless of its path.
fn climb(root: &Path, path: &str, read: fn(&Path) -> Option<Group>, found: &mut Vec<Group>) {
    let mut here = root.join(path);
    while here.starts_with(root) {
        found.extend(read(&here));
        if !here.pop() {
            return;
        }
    }
}

fn number(folder: &Path, file: &str) -> Option<Bytes> {
    read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

fn version2(folder: &Path) -> Option<Group> {
    let total = number(folder, "memory.max")?;
    let used = number(folder, "memory.current")?.saturating_sub(cache(folder, "inactive_file"));
    let pressure = read_to_string(folder.join("memory.pressure")).ok();
    Some(Group {
        memory: Memory { total, available: total.saturating_sub(used) },
        pressure: pressure.and_then(|text| procfs::pressure(&text)),
    })
}

fn version1(folder: &Path) -> Option<Group> {
    let total = number(folder, "memory.limit_in_bytes")?;
    // In version 1, a group without a limit has a very large number as its limit.
    if total >= 1 << 62 {
        return None;
    }
    let cached = cache(folder, "total_inactive_file");
    let used = number(folder, "memory.usage_in_bytes")?.saturating_sub(cached);
    Some(Group { memory: Memory { total, available: total.saturating_sub(used) }, pressure: None })
}

/// Returns the group's file cache that the kernel can release immediately, in bytes.
fn cache(folder: &Path, name: &str) -> Bytes {
    let text = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Machine(Places, PathBuf);

    impl Machine {
        fn new(name: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("sojourn-memory-{name}-{}", std::process::id()));
            let machine =
                Self(Places { proc: root.join("proc"), cgroup: root.join("cgroup") }, root.clone());
            machine.write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
            machine
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.1.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn room(&self, given: Option<Bytes>) -> Room {
            self.0.room(&[7], given, 0.25, 0).unwrap()
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.1);
        }
    }

    #[test]
    fn the_least_bound_counts() {
        let machine = Machine::new("least");
        let room = machine.room(None);
        assert_eq!((room.budget, room.bound), (128 << 20, "available"));
        assert_eq!((room.short, room.pressure), (false, None));
        machine.write("proc/sys/net/ipv4/udp_mem", "10 20 65536\n");
        let room = machine.room(None);
        assert_eq!((room.budget, room.bound), (64 << 20, "udp_mem"));
        let room = machine.room(Some(1 << 20));
        assert_eq!((room.budget, room.bound), (1 << 20, "given"));
    }

    #[test]
    fn control_groups_of_both_versions() {
        let machine = Machine::new("groups");
        machine.write("proc/7/cgroup", "4:cpu,memory:/a/b\n0::/x\n");
        machine.write("cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        machine.write("cgroup/memory/a/b/memory.usage_in_bytes", "1\n");
        assert_eq!(machine.room(None).bound, "available");
        machine.write("cgroup/memory/a/memory.limit_in_bytes", &(100u64 << 20).to_string());
        machine.write("cgroup/memory/a/memory.usage_in_bytes", &(60u64 << 20).to_string());
        machine.write("cgroup/memory/a/memory.stat", "total_inactive_file 20971520\n");
        let room = machine.room(None);
        assert_eq!((room.budget, room.bound), (15 << 20, "cgroup"));
        assert_eq!(room.memory.total, 100 << 20);
        machine.write("cgroup/unified/x/memory.max", "max\n");
        machine.write("cgroup/unified/memory.max", "33554432\n");
        machine.write("cgroup/unified/memory.current", "0\n");
        assert_eq!(machine.room(None).budget, 8 << 20);
        machine.write("cgroup/unified/memory.pressure", "some avg10=30.00 avg60=0\n");
        let room = machine.room(None);
        assert!(room.short && room.memory.available == 0);
        assert_eq!(room.pressure, Some(0.3));
    }

    #[test]
    fn little_memory_is_short() {
        let machine = Machine::new("short");
        machine.write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1024 kB\n");
        assert!(machine.room(None).short);
        machine.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        assert_eq!(machine.room(None).pressure, Some(0.0));
    }

    #[test]
    fn the_memory_of_this_machine_is_read() {
        let room = Places::default().room(&[std::process::id()], None, 0.25, 0).unwrap();
        assert!(room.memory.total > 0 && room.budget > 0);
    }
}
