//! Targets: the processes and sockets that a tuner follows.

use crate::process::{self, Process};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum number of processes followed at the same time.
pub const PROCESSES: usize = 4096;

/// The processes of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A process and its descendants.
    Pid(u32),
    /// All processes of a systemd unit, including those after a restart of the unit.
    Unit(String),
    /// All processes with a socket on the target's port.
    Anybody,
    /// All processes of this machine, in all network namespaces that have a process. Their sockets
    /// can only be observed.
    Everybody,
}

impl Who {
    /// Returns whether the processes are unknown, so that the search begins with sockets and then
    /// finds their processes.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Anybody | Self::Everybody)
    }
}

/// The sockets that a tuner follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Processes that have the sockets open.
    pub who: Who,
    /// Port of the sockets; `None` for all ports.
    pub port: Option<u16>,
}

/// Repeated search for the processes of a target.
#[derive(Debug)]
pub(crate) enum Finder {
    /// The given process and its descendants. A descendant stays even if its parent ends.
    Family {
        known: Vec<Process>,
    },
    Unit {
        name: String,
        group: Option<PathBuf>,
        main: Option<u32>,
    },
    Anybody,
}

fn refused(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

impl Finder {
    pub(crate) fn new(who: &Who) -> io::Result<Self> {
        match who {
            Who::Anybody | Who::Everybody => Ok(Self::Anybody),
            Who::Pid(pid) => {
                let process = Process::open(*pid).map_err(|error| match error.raw_os_error() {
                    Some(3) => refused(format!(
                        "there is no process {pid} (a container sees only its own processes)"
                    )),
                    Some(38) => refused("pidfd_open is missing: it needs Linux 5.3 or later"),
                    _ => refused(format!("process {pid} cannot be opened: {error}")),
                })?;
                Ok(Self::Family { known: vec![process] })
            }
            Who::Unit(name) => {
                check_unit(name)?;
                let mut finder = Self::Unit { name: name.clone(), group: None, main: None };
                finder.ask_systemd()?;
                Ok(finder)
            }
        }
    }

    /// Returns the target's processes, as far as they are known without a search of sockets;
    /// `None` if all have ended and no further ones can follow.
    pub(crate) fn processes(&mut self) -> Option<BTreeSet<u32>> {
        match self {
            Self::Anybody => Some(BTreeSet::new()),
            Self::Family { known } => {
                family(known);
                (!known.is_empty()).then(|| known.iter().map(|process| process.pid).collect())
            }
            Self::Unit { group, main, .. } => {
                let mut found = BTreeSet::new();
                if let Some(group) = group {
                    members(group, &mut found);
                } else if let Some(main) = main
                    && let Ok(process) = Process::open(*main)
                {
                    let mut known = vec![process];
                    family(&mut known);
                    found.extend(known.iter().map(|process| process.pid));
                }
                if found.is_empty() {
                    // The unit has stopped or has a new control group. If systemd does not answer,
                    // it may be restarting itself, so the search continues.
                    let _ = self.ask_systemd();
                }
                Some(found)
            }
        }
    }

    fn ask_systemd(&mut self) -> io::Result<()> {
        let Self::Unit { name, group, main } = self else { return Ok(()) };
        let output = Command::new("systemctl")
            .args(["show", "--property=LoadState,MainPID,ControlGroup", "--", name])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| refused(format!("systemctl cannot be run: {error}")))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().next().unwrap_or("no reason given").trim();
            return Err(refused(format!("systemd cannot show {name}: {why}")));
        }
        let answer = Answer::read(&String::from_utf8_lossy(&output.stdout));
        if answer.state != "loaded" {
            return Err(refused(format!("systemd has no unit {name} ({})", answer.state)));
        }
        *main = answer.main;
        *group = answer.group.and_then(|path| {
            let path = path.trim_start_matches('/');
            ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"]
                .iter()
                .map(|root| Path::new(root).join(path))
                .find(|folder| !path.is_empty() && folder.join("cgroup.procs").exists())
        });
        Ok(())
    }
}

/// Answer of `systemctl show`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    state: String,
    main: Option<u32>,
    group: Option<String>,
}

impl Answer {
    fn read(text: &str) -> Self {
        let mut answer = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match name {
                "LoadState" => value.clone_into(&mut answer.state),
                "MainPID" => answer.main = value.parse().ok().filter(|&pid| pid > 0),
                "ControlGroup" if !value.is_empty() => answer.group = Some(value.to_owned()),
                _ => {}
            }
        }
        answer
    }
}

/// Checks the name of a unit, or a part of a name that systemd completes.
fn check_unit(name: &str) -> io::Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ":_.\\@-".contains(c);
    if name.is_empty() || name.len() > 255 || name.starts_with('-') || !name.chars().all(fits) {
        return Err(refused(format!(
            "`{name}` is not a unit: a name has up to 255 letters, digits and : _ . \\ @ - (- not first)"
        )));
    }
    Ok(())
}

/// Adds the children of all known processes, then removes processes that have ended.
fn family(known: &mut Vec<Process>) {
    let mut at = 0;
    // Children are added first, since the children of a process that has ended cannot be found.
    while at < known.len() && known.len() < PROCESSES {
        for child in known[at].children() {
            if known.iter().all(|process| process.pid != child)
                && let Ok(process) = Process::open(child)
                && known[at].children().contains(&child)
                && process.alive()
            {
                known.push(process);
            }
        }
        at += 1;
    }
    known.retain(Process::alive);
}

/// Adds the processes of a control group and of all groups below it to `found`.
fn members(group: &Path, found: &mut BTreeSet<u32>) {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|&pid| pid > 0));
    let Ok(entries) = std::fs::read_dir(group) else { return };
    for entry in entries.flatten() {
        if found.len() >= PROCESSES {
            return;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            members(&entry.path(), found);
        }
    }
}

/// Returns whether a port is in the range from which the kernel selects the port of an unbound
/// socket.
pub(crate) fn is_ephemeral(port: u16, range: (u16, u16)) -> bool {
    (range.0..=range.1).contains(&port)
}

/// Returns the range from which the kernel selects the port of an unbound socket.
pub(crate) fn ephemeral_range() -> (u16, u16) {
    let text =
        std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap_or(32_768), numbers.next().unwrap_or(60_999))
}

/// Returns the number of this process's network namespace.
pub(crate) fn own_network() -> io::Result<u64> {
    process::namespace_number("/proc/self/ns/net".as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_systemctl() {
        let text = "LoadState=loaded\nMainPID=42\nControlGroup=/system.slice/x.service\n";
        let answer = Answer::read(text);
        assert_eq!(answer.main, Some(42));
        assert_eq!(answer.group.as_deref(), Some("/system.slice/x.service"));
        let stopped = Answer::read("LoadState=loaded\nMainPID=0\nControlGroup=\n");
        assert_eq!((stopped.main, stopped.group), (None, None));
    }

    #[test]
    fn names_of_units() {
        for good in ["rsyslog", "a@b.service", "dev-disk\\x2d1.device"] {
            check_unit(good).unwrap();
        }
        for bad in ["", "-p", "a b", "a/b", "é", &"a".repeat(256)] {
            assert!(check_unit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_process_and_its_children() {
        let mut finder = Finder::new(&Who::Pid(std::process::id())).unwrap();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        assert!(finder.processes().unwrap().contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!finder.processes().unwrap().contains(&child.id()));
        let mut finder = Finder::Family { known: Vec::new() };
        assert_eq!(finder.processes(), None);
        let error = Finder::new(&Who::Pid(child.id())).unwrap_err().to_string();
        assert!(error.contains("there is no process"), "{error}");
    }

    #[test]
    fn members_of_groups_below() {
        let root = std::env::temp_dir().join(format!("sojourn-members-{}", std::process::id()));
        std::fs::create_dir_all(root.join("worker")).unwrap();
        std::fs::write(root.join("cgroup.procs"), "7\n8\n").unwrap();
        std::fs::write(root.join("worker/cgroup.procs"), "9\n0\nx\n").unwrap();
        let mut found = BTreeSet::new();
        members(&root, &mut found);
        assert_eq!(found, BTreeSet::from([7, 8, 9]));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
