//! Memory of this machine, or of the process's control group if the group's limit is lower.

use sojourn_buffer::Memory;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns total and available memory; `None` if the system does not report them.
pub fn memory() -> Option<Memory> {
    let machine = machine(&read_to_string("/proc/meminfo").ok()?)?;
    let group = read_to_string("/proc/self/cgroup").ok().and_then(|text| group(&text));
    Some(group.filter(|group| group.total < machine.total).map_or(machine, |group| Memory {
        total: group.total,
        available: group.available.min(machine.available),
    }))
}

fn machine(meminfo: &str) -> Option<Memory> {
    let kib = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    Some(Memory { total: kib("MemTotal")? << 10, available: kib("MemAvailable")? << 10 })
}

/// Returns limit and free memory of the control group, or of its closest parent with a limit
/// (version 2 of control groups); `None` without a limit.
fn group(cgroup: &str) -> Option<Memory> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let mut here: PathBuf = root.join(path);
    while here.starts_with(root) {
        let number = |file: &str| -> Option<u64> {
            read_to_string(here.join(file)).ok()?.trim().parse().ok()
        };
        if let (Some(total), Some(used)) = (number("memory.max"), number("memory.current")) {
            return Some(Memory { total, available: total.saturating_sub(used) });
        }
        here.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let text = "MemTotal:       16384 kB\nMemFree: 12 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(machine(text), Some(Memory { total: 16 << 20, available: 8 << 20 }));
        assert_eq!(machine("MemTotal: x kB"), None);
        assert_eq!(group("1:name=systemd:/\n"), None);
        let here = memory().unwrap();
        assert!(here.total > 0 && here.available <= here.total);
    }
}
