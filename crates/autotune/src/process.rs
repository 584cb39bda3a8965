//! Processes, identified by pidfds, and the sockets that each has open.

use crate::{procfs, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs::{read_dir, read_link, read_to_string};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Maximum number of descriptors of one process that are inspected.
const DESCRIPTORS: usize = 1 << 20;

/// A process, identified by a pidfd. The kernel reuses PIDs, but a pidfd always refers to the same
/// process.
#[derive(Debug)]
pub struct Process {
    /// PID of the process.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub start: u64,
    descriptor: OwnedFd,
}

/// A socket that a process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Inode of the socket.
    pub inode: u64,
    /// Number of the descriptor in the process.
    pub number: i32,
}

fn ended() -> io::Error {
    io::Error::from_raw_os_error(Errno::SRCH.raw_os_error())
}

impl Process {
    /// Opens the process that currently has the PID `pid`.
    ///
    /// # Errors
    /// `ESRCH` if no process has this PID, `ENOSYS` before Linux 5.3.
    pub fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(ended)?;
        let descriptor = pidfd_open(number, PidfdFlags::empty())?;
        let start = read_to_string(format!("/proc/{pid}/stat"))
            .ok()
            .and_then(|stat| procfs::start_time(&stat))
            .ok_or_else(ended)?;
        let process = Self { pid, start, descriptor };
        // If the process is still alive, the start time belongs to it.
        if process.alive() { Ok(process) } else { Err(ended()) }
    }

    /// Returns whether the process is alive.
    pub fn alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }

    /// Returns the path of the file `name` in the process's folder under `/proc`.
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// Returns the name of the process (`comm`); empty if it cannot be read.
    pub fn name(&self) -> String {
        read_to_string(self.path("comm")).map(|name| name.trim().to_owned()).unwrap_or_default()
    }

    /// Returns the systemd unit and the container of the process.
    pub fn place(&self) -> procfs::Place {
        procfs::Place::read(&read_to_string(self.path("cgroup")).unwrap_or_default())
    }

    /// Returns the number of the process's network namespace.
    ///
    /// # Errors
    /// `EACCES` if this process may not inspect the other one.
    pub fn network(&self) -> io::Result<u64> {
        namespace_number(&self.path("ns/net"))
    }

    /// Returns the sockets that the process has open.
    ///
    /// # Errors
    /// `EACCES` if this process may not inspect the other one, `ESRCH` if the other one has ended.
    pub fn sockets(&self) -> io::Result<Vec<Open>> {
        let found = match self.links() {
            // With `CAP_SYS_PTRACE` alone, another user's `fd` cannot be listed, but `fdinfo` is
            // readable.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.infos(),
            other => other,
        };
        if self.alive() { found } else { Err(ended()) }
    }

    fn links(&self) -> io::Result<Vec<Open>> {
        let folder = self.path("fd");
        self.numbers("fd", |number| {
            let link = read_link(folder.join(number))?;
            Ok(procfs::socket_inode(&link.to_string_lossy()))
        })
    }

    fn infos(&self) -> io::Result<Vec<Open>> {
        let folder = self.path("fdinfo");
        self.numbers("fdinfo", |number| {
            Ok(procfs::fdinfo_inode(&read_to_string(folder.join(number))?))
        })
    }

    fn numbers(
        &self,
        folder: &str,
        inode: impl Fn(&str) -> io::Result<Option<u64>>,
    ) -> io::Result<Vec<Open>> {
        let mut found = Vec::new();
        for entry in read_dir(self.path(folder))?.take(DESCRIPTORS) {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let inode = match inode(name) {
                // In another user namespace, the folder may be readable but its entries may not.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                // The descriptor was closed in the meantime.
                Err(_) => None,
                Ok(inode) => inode,
            };
            if let (Some(inode), Ok(number)) = (inode, name.parse()) {
                found.push(Open { inode, number });
            }
        }
        Ok(found)
    }

    /// Returns a copy of a descriptor of the process, if it still refers to the expected UDP
    /// socket. The copy keeps the socket open, even after the process has ended, so it must be
    /// closed immediately after use.
    ///
    /// # Errors
    /// `EBADF` if the descriptor refers to another file, `EPERM` if this process may not copy it,
    /// `ENOSYS` before Linux 5.6.
    pub fn take(&self, open: Open) -> io::Result<OwnedFd> {
        let copy = pidfd_getfd(&self.descriptor, open.number, PidfdGetfdFlags::empty())?;
        if socket::inode(&copy)? == open.inode && socket::is_udp(&copy).unwrap_or(false) {
            Ok(copy)
        } else {
            Err(io::Error::from_raw_os_error(Errno::BADF.raw_os_error()))
        }
    }

    /// Returns `Ok` if this process may copy descriptors from the other one. The test copies
    /// nothing, since the requested descriptor does not exist.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn may_take(&self) -> io::Result<()> {
        match pidfd_getfd(&self.descriptor, i32::MAX, PidfdGetfdFlags::empty()) {
            Ok(_) | Err(Errno::BADF) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the PIDs of the process's running children.
    pub fn children(&self) -> Vec<u32> {
        let Ok(tasks) = read_dir(self.path("task")) else { return Vec::new() };
        let mut children = Vec::new();
        for task in tasks.flatten() {
            let Ok(text) = read_to_string(task.path().join("children")) else {
                return children_of(self.pid);
            };
            children.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
        children
    }
}

/// Returns the PIDs of all processes with the parent `parent`, for kernels without
/// `CONFIG_PROC_CHILDREN`.
fn children_of(parent: u32) -> Vec<u32> {
    all()
        .into_iter()
        .filter(|pid| {
            let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            procfs::parent(&stat) == Some(parent)
        })
        .collect()
}

/// Returns the PIDs of all visible processes.
pub fn all() -> Vec<u32> {
    let Ok(entries) = read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the number of the namespace to which a link such as `/proc/self/ns/net` refers.
///
/// # Errors
/// If the link cannot be read, or does not refer to a namespace.
pub fn namespace_number(link: &std::path::Path) -> io::Result<u64> {
    let target = read_link(link)?;
    let text = target.to_string_lossy();
    let number = text.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']')?.parse().ok());
    number
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{text}: no namespace")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    #[test]
    fn finds_and_takes_its_own_socket() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let me = Process::open(std::process::id()).unwrap();
        assert!(me.alive() && me.start > 0);
        let inode = socket::inode(&socket).unwrap();
        let open = Open { inode, number: socket.as_raw_fd() };
        assert!(me.sockets().unwrap().contains(&open));
        assert!(me.infos().unwrap().contains(&open));
        me.may_take().unwrap();
        let copy = me.take(open).unwrap();
        assert_eq!(socket::cookie(&copy).unwrap(), socket::cookie(&socket).unwrap());
        let wrong = me.take(Open { inode: inode + 1, ..open }).unwrap_err();
        assert_eq!(wrong.raw_os_error(), Some(9));
        assert_eq!(me.network().unwrap(), namespace_number("/proc/self/ns/net".as_ref()).unwrap());
    }

    #[test]
    fn an_ended_process_stays_ended() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let me = Process::open(std::process::id()).unwrap();
        assert!(me.children().contains(&child.id()) && children_of(me.pid).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.alive());
        assert_eq!(process.sockets().unwrap_err().raw_os_error(), Some(3));
        assert_eq!(process.take(Open { inode: 1, number: 0 }).unwrap_err().raw_os_error(), Some(3));
        assert!(Process::open(child.id()).is_err() && Process::open(0).is_err());
    }
}
