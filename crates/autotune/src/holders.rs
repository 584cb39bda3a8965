//! The followed processes and the sockets that they have open.

use crate::process::{self, Open, Process};
use crate::refusal::{Refusal, looking_into};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::OwnedFd;

/// Maximum number of stored holders of one socket. One suffices; the others replace it when it
/// ends.
const MOST: usize = 4;

/// The followed processes, with the sockets that each has open.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    processes: BTreeMap<u32, Process>,
    by_inode: HashMap<u64, Vec<(u32, i32)>>,
    /// Processes that this process may not inspect, with the reason.
    pub(crate) refused: BTreeMap<u32, Refusal>,
}

/// Reason why a socket cannot be accessed through its holders.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No followed process has the socket open.
    Nobody,
    /// A permission is missing.
    Refused(Refusal),
}

impl Holders {
    /// Follows exactly the living processes among `pids`, and reads their open sockets.
    pub(crate) fn follow(&mut self, pids: &BTreeSet<u32>) {
        self.processes.retain(|pid, process| pids.contains(pid) && process.alive());
        self.refused.retain(|pid, _| pids.contains(pid));
        for &pid in pids {
            if !self.processes.contains_key(&pid)
                && let Ok(process) = Process::open(pid)
            {
                self.processes.insert(pid, process);
            }
        }
        self.by_inode.clear();
        for (&pid, process) in &self.processes {
            match process.sockets() {
                Ok(sockets) => {
                    self.refused.remove(&pid);
                    for open in sockets {
                        note(&mut self.by_inode, open, pid);
                    }
                }
                Err(error) if process.alive() => {
                    self.refused.entry(pid).or_insert_with(|| looking_into(pid, &error));
                }
                Err(_) => {}
            }
        }
    }

    /// Searches all visible processes, and follows those that have one of the sockets `inodes`
    /// open.
    pub(crate) fn search(&mut self, inodes: &BTreeSet<u64>) {
        self.refused.clear();
        for pid in process::all() {
            let Ok(process) = Process::open(pid) else { continue };
            match process.sockets() {
                Ok(sockets) => {
                    let mut holds = false;
                    for open in sockets.into_iter().filter(|open| inodes.contains(&open.inode)) {
                        note(&mut self.by_inode, open, pid);
                        holds = true;
                    }
                    if holds {
                        self.processes.entry(pid).or_insert(process);
                    }
                }
                Err(error) if process.alive() => {
                    self.refused.entry(pid).or_insert_with(|| looking_into(pid, &error));
                }
                Err(_) => {}
            }
        }
    }

    /// Removes processes that have ended.
    pub(crate) fn bury(&mut self) {
        self.retain(Process::alive);
    }

    /// Removes processes that are not in `pids`, or have ended.
    pub(crate) fn keep(&mut self, pids: &BTreeSet<u32>) {
        self.retain(|process| pids.contains(&process.pid) && process.alive());
    }

    fn retain(&mut self, wanted: impl Fn(&Process) -> bool) {
        let processes = &mut self.processes;
        processes.retain(|_, process| wanted(process));
        self.by_inode.retain(|_, holders| {
            holders.retain(|(pid, _)| processes.contains_key(pid));
            !holders.is_empty()
        });
    }

    /// Returns the followed processes.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// Returns whether a followed process has the socket open.
    pub(crate) fn hold(&self, inode: u64) -> bool {
        self.by_inode.contains_key(&inode)
    }

    /// Returns the first living process that has the socket open; `None` if there is no such
    /// process.
    pub(crate) fn holder(&self, inode: u64) -> Option<&Process> {
        let holders = self.by_inode.get(&inode)?;
        holders.iter().find_map(|(pid, _)| self.processes.get(pid).filter(|p| p.alive()))
    }

    /// Calls `work` with a copy of the socket's descriptor, which is closed immediately afterwards.
    pub(crate) fn with<R>(
        &self,
        inode: u64,
        work: impl FnOnce(&OwnedFd) -> io::Result<R>,
    ) -> Result<R, Failure> {
        let mut refused = None;
        for &(pid, number) in self.by_inode.get(&inode).into_iter().flatten() {
            let Some(process) = self.processes.get(&pid) else { continue };
            match process.take(Open { inode, number }) {
                Ok(copy) => {
                    let done = work(&copy);
                    drop(copy);
                    return done.map_err(|error| Failure::Refused(looking_into(pid, &error)));
                }
                // The process has ended or has closed the socket.
                Err(error) if matches!(error.raw_os_error(), Some(3 | 9)) => {}
                Err(error) => refused = Some(looking_into(pid, &error)),
            }
        }
        Err(refused.map_or(Failure::Nobody, Failure::Refused))
    }
}

fn note(by_inode: &mut HashMap<u64, Vec<(u32, i32)>>, open: Open, pid: u32) {
    let holders = by_inode.entry(open.inode).or_default();
    if holders.len() < MOST && !holders.contains(&(pid, open.number)) {
        holders.push((pid, open.number));
    }
}
