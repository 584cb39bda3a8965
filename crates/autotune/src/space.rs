//! A network namespace with followed sockets.

use crate::diag::{Diag, Families, Reading, Source};
use crate::drops::{Counters, Split, split};
use crate::process::Process;
use crate::procfs;
use crate::refusal::{Missing, Refusal};
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::io;
use std::path::PathBuf;

/// Maximum number of ports that are queried one by one. If there are more, all sockets are read.
const PORTS: usize = 8;
/// Ports without a known socket are queried in every n-th pass, where n is this number.
const SELDOM: u64 = 5;

/// A network namespace, observed from outside.
#[derive(Debug)]
pub(crate) struct Space {
    source: Source,
    /// Folder `/proc/PID/net` of a process in the namespace.
    net: PathBuf,
    /// Observed ports, each with its known sockets.
    ports: BTreeMap<u16, Vec<Reading>>,
    families: Families,
    /// Number of passes so far.
    reads: u64,
    /// UDP's counters up to which drops have been classified.
    counted: Counters,
    /// UDP's counters, read before the sockets; `None` after their use.
    ahead: Option<Counters>,
    /// Packets dropped before they reached a socket, by CPUs' backlogs and by devices: the counts
    /// at the first observation. `latest` are the latest counts.
    before: Option<(u64, u64)>,
    latest: (u64, u64),
    /// Why `sock_diag` is not available; `None` if it is.
    pub(crate) refusal: Option<Refusal>,
}

impl Space {
    /// Returns the network namespace of this process.
    pub(crate) fn own() -> Self {
        Self::with(Diag::open(), "/proc/self/net".into(), |error| match error.raw_os_error() {
            Some(1 | 13) => Refusal::new(
                Missing::Seccomp,
                "a seccomp filter or a security module forbids sock_diag to this process",
            ),
            _ => Refusal::new(
                Missing::Kernel,
                format!(
                    "sock_diag is missing: load the module udp_diag (CONFIG_INET_UDP_DIAG): {error}"
                ),
            ),
        })
    }

    /// Returns the network namespace of a process.
    pub(crate) fn of(process: &Process) -> Self {
        let net = process.path("net");
        Self::with(Diag::open_in(&process.path("ns/net")), net, |error| {
            if matches!(error.raw_os_error(), Some(1 | 13)) {
                let text = format!(
                    "the network namespace of process {} cannot be entered: CAP_SYS_ADMIN is missing. \
                     Its tables in /proc are read instead",
                    process.pid
                );
                Refusal::new(Missing::SysAdmin, text)
            } else {
                Refusal::new(
                    Missing::Kernel,
                    format!(
                        "sock_diag is missing in the network namespace of process {}: {error}",
                        process.pid
                    ),
                )
            }
        })
    }

    fn with(diag: io::Result<Diag>, net: PathBuf, why: impl FnOnce(&io::Error) -> Refusal) -> Self {
        let (source, refusal) = match diag {
            Ok(diag) => (Source::Diag(diag), None),
            Err(error) => (Source::Table(net.clone()), Some(why(&error))),
        };
        let mut space = Self {
            source,
            net,
            ports: BTreeMap::new(),
            families: Families::default(),
            reads: 0,
            counted: Counters::default(),
            ahead: None,
            before: None,
            latest: (0, 0),
            refusal,
        };
        space.refresh();
        space.settle();
        space
    }

    /// Reads the namespace's files through the `/proc` folder of another process from now on.
    pub(crate) fn look_through(&mut self, process: &Process) {
        self.net = process.path("net");
        if let Source::Table(net) = &mut self.source {
            net.clone_from(&self.net);
        }
    }

    /// Sets the sockets to observe. If `port` is given, all sockets on this port are observed.
    pub(crate) fn expect<'a>(
        &mut self,
        port: Option<u16>,
        known: impl Iterator<Item = &'a Reading>,
    ) {
        self.ports.clear();
        self.families = Families::default();
        for reading in known {
            self.families.add(reading.local);
            self.ports.entry(reading.local.port()).or_default().push(*reading);
        }
        if let Some(port) = port {
            self.families = Families::BOTH;
            self.ports.entry(port).or_default();
        }
    }

    /// Appends the sockets on the observed ports to `out`. Ports without a known socket are
    /// queried only in some passes.
    pub(crate) fn read(&mut self, out: &mut Vec<Reading>) -> io::Result<()> {
        self.reads += 1;
        let mut all = 0;
        for (&port, known) in &self.ports {
            // Query one socket if possible, since reading a port scans the kernel's whole table.
            let found = match known.as_slice() {
                [one] => self.source.read_one(one, out)?,
                [] => !self.reads.is_multiple_of(SELDOM),
                _ => false,
            };
            if !found {
                all += 1;
                if all > PORTS {
                    break;
                }
                self.source.read(self.families, Some(port), out)?;
            }
        }
        if all > PORTS {
            out.clear();
            self.source.read(self.families, None, out)?;
            let ports = &self.ports;
            out.retain(|reading| ports.contains_key(&reading.local.port()));
        }
        Ok(())
    }

    /// Appends all sockets to `out`. If `port` is given, only sockets bound to this port are
    /// appended.
    pub(crate) fn read_all(&mut self, port: Option<u16>, out: &mut Vec<Reading>) -> io::Result<()> {
        self.source.read(Families::BOTH, port, out)
    }

    /// Returns whether readings contain sizes and cookies.
    pub(crate) fn tells_sizes(&self) -> bool {
        self.source.tells_sizes()
    }

    /// Classifies by reason the packets dropped at followed sockets since the last call.
    pub(crate) fn tell_apart(&mut self, dropped: u64) -> Split {
        let Ok(now) = Counters::read(&self.net) else {
            return Split { other: dropped, ..Split::default() };
        };
        self.ahead = None;
        let counted = now.since(self.counted);
        let split = split(dropped, counted);
        // Drops that were counted after the sockets were read will appear in the sockets' counters
        // in the next pass.
        self.counted = Counters {
            buffer: now.buffer - counted.buffer.saturating_sub(split.buffer),
            memory: now.memory - counted.memory.saturating_sub(split.memory),
            checksum: now.checksum - counted.checksum.saturating_sub(split.checksum),
            all: now.all - counted.all.saturating_sub(split.total()),
        };
        split
    }

    /// Attributes the namespace's drops up to the last [`Space::refresh`] to sockets that are not
    /// followed. Called if followed sockets have no new drops.
    pub(crate) fn settle(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.counted = ahead;
        }
    }

    /// Reads the namespace's counters. Called about once per second, before the sockets are read.
    pub(crate) fn refresh(&mut self) {
        self.ahead = Counters::read(&self.net).ok();
        let text = |name: &str| read_to_string(self.net.join(name)).unwrap_or_default();
        let softnet = procfs::softnet_dropped(&text("softnet_stat"));
        self.latest = (softnet, procfs::device_dropped(&text("dev")));
        self.before.get_or_insert(self.latest);
    }

    /// Returns the numbers of packets dropped by CPUs' backlogs and by devices since the
    /// observation began.
    pub(crate) fn dropped_before(&self) -> (u64, u64) {
        let (softnet, device) = self.before.unwrap_or_default();
        (self.latest.0.saturating_sub(softnet), self.latest.1.saturating_sub(device))
    }
}
