//! The tuner without its thread: finds sockets, calls their policies and changes their sizes.

mod change;

use crate::budget::{Claim, divide};
use crate::diag::Reading;
use crate::drops::Split;
use crate::holders::{Failure, Holders};
use crate::journal::Journal;
use crate::memory::Room;
use crate::process::{self, Process};
use crate::refusal::{Missing, Refusal};
use crate::settings::Settings;
use crate::socket;
use crate::space::Space;
use crate::target::{Finder, Who, ephemeral_range, is_ephemeral, own_network};
use crate::tracked::Tracked;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Instant;

/// Maximum time from the first observation of an unknown socket to the next search, in nanoseconds.
const SOON: Nanos = 50 * MILLISECOND;
/// Minimum time between two regular searches, in multiples of a search's duration.
const PART: Nanos = 50;
/// Length of one moment of a socket's history, in nanoseconds.
const MOMENT: Nanos = 250 * MILLISECOND;
/// Number of successive passes without a socket after which the socket counts as closed. The kernel
/// may omit a socket while many others open and close, and a socket that counts as closed is not
/// restored.
const ABSENT: u64 = 3;
/// Maximum number of network namespaces observed at the same time.
const SPACES: usize = 1024;
/// Fraction (numerator, denominator) to which the sum of all sizes shrinks every second while
/// memory is short.
const SQUEEZE: (Bytes, Bytes) = (3, 4);

/// State of a tuner.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    finder: Finder,
    pub(crate) holders: Holders,
    pub(crate) spaces: BTreeMap<u64, Space>,
    /// Followed sockets with their namespaces, by inode.
    pub(crate) sockets: BTreeMap<u64, (u64, Tracked)>,
    /// Inodes of observed sockets that are not followed.
    strangers: BTreeSet<u64>,
    /// Inodes of sockets on ephemeral ports that only the last search has found. They are followed
    /// if the next search finds them again.
    fresh: BTreeSet<u64>,
    journal: Option<Journal>,
    pub(crate) room: Room,
    /// Maximum size of a receive buffer in bytes that this process may set; without `CAP_NET_ADMIN`
    /// it depends on `net.core.rmem_max`.
    most: Bytes,
    /// Number of sockets that are not followed because the limit [`Settings::sockets`] was reached.
    pub(crate) left_out: usize,
    pub(crate) notes: Vec<Refusal>,
    ephemeral: (u16, u16),
    readings: Vec<Reading>,
    pass: u64,
    search_at: Nanos,
    refresh_at: Nanos,
    moment_at: Nanos,
    /// Whether all processes of the target have ended.
    pub(crate) over: bool,
    /// Largest sums so far over all sockets, in bytes: of the occupancies, and of the sizes.
    pub(crate) peaks: (Bytes, Bytes),
}

impl Core {
    pub(crate) fn new(settings: Settings) -> io::Result<Self> {
        let finder = Finder::new(&settings.target.who)?;
        if settings.target.who == Who::Anybody && settings.target.port.is_none() {
            let what = "name the sockets to tune: a process, a unit or a port";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if settings.target.who == Who::Everybody && !settings.dry_run {
            let what = "the sockets of a whole machine cannot be tuned, only watched";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let journal = if settings.dry_run { None } else { Some(Journal::new(&settings.state)?) };
        let room = settings.places.room(&[], settings.budget, settings.share, 0)?;
        let (most, note) = largest();
        Ok(Self {
            settings,
            finder,
            holders: Holders::default(),
            spaces: BTreeMap::new(),
            sockets: BTreeMap::new(),
            strangers: BTreeSet::new(),
            fresh: BTreeSet::new(),
            journal,
            room,
            most,
            left_out: 0,
            notes: note.into_iter().collect(),
            ephemeral: ephemeral_range(),
            readings: Vec::new(),
            pass: 0,
            search_at: 0,
            refresh_at: 0,
            moment_at: 0,
            over: false,
            peaks: (0, 0),
        })
    }

    /// Performs one pass at the time `now`, in nanoseconds of any monotonic clock.
    pub(crate) fn step(&mut self, now: Nanos) {
        if now >= self.search_at {
            let begun = Instant::now();
            self.search();
            let cost = begun.elapsed().as_nanos() as Nanos;
            self.search_at = now + self.settings.rescan.max(cost * PART);
        }
        if now >= self.refresh_at {
            self.refresh_at = now + SECOND;
            self.refresh();
        }
        let strange = self.look();
        if strange && self.settings.target.who != Who::Everybody {
            // The server may have a new worker or have restarted, so search soon.
            self.search_at = self.search_at.min(now + SOON);
        }
        self.decide(now);
        if now >= self.moment_at {
            self.moment_at = now + MOMENT;
            self.sockets.values_mut().for_each(|(_, socket)| socket.turn());
        }
    }

    /// Computes the budget from the available memory, and reads the counters of all namespaces.
    fn refresh(&mut self) {
        let pids: Vec<u32> = self.holders.processes().map(|process| process.pid).collect();
        let sum = |of: fn(&Tracked) -> Bytes| self.sockets.values().map(|(_, s)| of(s)).sum();
        let (occupied, sizes, least): (Bytes, Bytes, Bytes) =
            (sum(|s| s.reading.occupied), sum(|s| s.size.unwrap_or(0)), sum(Tracked::least));
        let Settings { budget, share, ref places, .. } = self.settings;
        if let Ok(mut room) = places.room(&pids, budget, share, occupied) {
            if room.short {
                room.budget = room.budget.min((sizes / SQUEEZE.1 * SQUEEZE.0).max(least));
            }
            self.room = room;
        }
        self.spaces.values_mut().for_each(Space::refresh);
    }

    /// Searches for the target's processes and sockets.
    fn search(&mut self) {
        let Some(pids) = self.finder.processes() else {
            self.over = true;
            return;
        };
        let anybody = self.settings.target.who.is_unknown();
        if anybody {
            self.holders.bury();
        } else {
            self.holders.follow(&pids);
            // A PID may have been reused between the search and the opening of the process, so
            // search again.
            if let Some(again) = self.finder.processes() {
                self.holders.keep(&again);
            }
        }
        self.enter_spaces(anybody);
        self.strangers.clear();
        self.left_out = 0;
        let fresh = std::mem::take(&mut self.fresh);
        if anybody {
            self.search_holders();
        }
        let ids: Vec<u64> = self.spaces.keys().copied().collect();
        for id in ids {
            self.search_space(id, anybody, &fresh);
        }
        for (id, space) in &mut self.spaces {
            let here = self.sockets.values().filter(|(at, _)| at == id);
            space.expect(self.settings.target.port, here.map(|(_, socket)| &socket.reading));
        }
    }

    /// Opens the network namespaces of the target's processes, and this process's own if the
    /// processes are unknown or, with a port, one of them may not be inspected.
    fn enter_spaces(&mut self, anybody: bool) {
        let own = own_network().unwrap_or(0);
        let mut wanted = BTreeSet::new();
        // If a process may not be inspected, its sockets are still found by the port.
        let blind = !self.holders.refused.is_empty() && self.settings.target.port.is_some();
        if anybody || blind {
            wanted.insert(own);
            self.spaces.entry(own).or_insert_with(Space::own);
        }
        if self.settings.target.who == Who::Everybody {
            for pid in process::all() {
                let link = format!("/proc/{pid}/ns/net");
                let Ok(id) = process::namespace_number(Path::new(&link)) else { continue };
                if wanted.len() < SPACES
                    && wanted.insert(id)
                    && id != own
                    && let Ok(process) = Process::open(pid)
                {
                    let space = self.spaces.entry(id).or_insert_with(|| Space::of(&process));
                    space.look_through(&process);
                }
            }
        }
        if !anybody {
            for process in self.holders.processes() {
                let Ok(id) = process.network() else { continue };
                if wanted.insert(id) {
                    let make = || if id == own { Space::own() } else { Space::of(process) };
                    let space = self.spaces.entry(id).or_insert_with(make);
                    if id != own {
                        space.look_through(process);
                    }
                }
            }
        }
        // Keep namespaces with followed sockets: systemd may hold the sockets of a stopped service.
        wanted.extend(self.sockets.values().map(|(id, _)| *id));
        // Remove other namespaces, since a reference would keep a namespace alive as long as the
        // tuner.
        self.spaces.retain(|id, _| wanted.contains(id));
    }

    /// Searches for the processes of all sockets without a known holder, in all namespaces
    /// together.
    fn search_holders(&mut self) {
        let mut all = Vec::new();
        for space in self.spaces.values_mut() {
            // After an error, the next search reads the namespace again.
            let _ = space.read_all(self.settings.target.port, &mut all);
        }
        let inodes = all.iter().map(|reading| reading.inode);
        let lost: BTreeSet<u64> = inodes.filter(|&inode| !self.holders.hold(inode)).collect();
        if !lost.is_empty() {
            self.holders.search(&lost);
        }
    }

    fn search_space(&mut self, id: u64, anybody: bool, fresh: &BTreeSet<u64>) {
        let port = self.settings.target.port;
        let Some(space) = self.spaces.get_mut(&id) else { return };
        let mut all = Vec::new();
        if space.read_all(port, &mut all).is_err() {
            return;
        }
        let tells_sizes = space.tells_sizes();
        let blind = port.is_some() && !self.holders.refused.is_empty();
        for reading in all {
            let inode = reading.inode;
            if self.sockets.contains_key(&inode) {
                continue;
            }
            // Skip the kernel's own sockets (WireGuard, VXLAN), which have no inode, and sockets
            // without a port.
            let nameless = inode == 0 || reading.local.port() == 0;
            if !(anybody || blind || self.holders.hold(inode)) || nameless {
                self.strangers.insert(inode);
                continue;
            }
            // Sockets on ephemeral ports are usually short-lived: follow them after another search.
            let passing = port.is_none() && is_ephemeral(reading.local.port(), self.ephemeral);
            if passing && !fresh.contains(&inode) {
                self.fresh.insert(inode);
                self.strangers.insert(inode);
                continue;
            }
            if self.sockets.len() >= self.settings.sockets {
                self.left_out += 1;
                self.strangers.insert(inode);
                continue;
            }
            let tracked = self.begin(reading, tells_sizes);
            self.sockets.insert(inode, (id, tracked));
        }
    }

    /// Returns the initial state of a socket that is followed from now on.
    fn begin(&self, reading: Reading, tells_sizes: bool) -> Tracked {
        let inode = reading.inode;
        let mut tracked = Tracked::new(reading, &self.settings.policy);
        tracked.seen = self.pass;
        tracked.most = self.most;
        let refusal = match self.holders.holder(inode) {
            None => Some(self.unheld()),
            Some(process) => process
                .may_take()
                .err()
                .map(|error| crate::refusal::looking_into(process.pid, &error)),
        };
        tracked.refusal = refusal;
        if !tells_sizes && tracked.refusal.is_none() {
            let asked = self
                .holders
                .with(inode, |copy| Ok((socket::cookie(copy)?, socket::setting(copy)?.size)));
            match asked {
                Ok((cookie, size)) => {
                    (tracked.cookie, tracked.size) = (Some(cookie), Some(size));
                }
                Err(Failure::Refused(refusal)) => tracked.refusal = Some(refusal),
                Err(Failure::Nobody) => {}
            }
        }
        tracked
    }

    /// Returns the reason why the holder of a socket is unknown.
    fn unheld(&self) -> Refusal {
        match self.holders.refused.values().next() {
            Some(one) => Refusal::new(
                one.missing,
                format!("no process that may be inspected has this socket open: {one}"),
            ),
            None => Refusal::new(
                Missing::Process,
                "no visible process has this socket open; its process may be in another PID namespace",
            ),
        }
    }

    /// Reads all followed sockets. Returns whether an unknown socket was found.
    fn look(&mut self) -> bool {
        self.pass += 1;
        let mut strange = false;
        let mut dropped: Vec<(u64, u64)> = Vec::new();
        for (&id, space) in &mut self.spaces {
            self.readings.clear();
            dropped.clear();
            if space.read(&mut self.readings).is_err() {
                // After a failed read, the namespace's sockets count as present.
                let here = self.sockets.values_mut().filter(|(at, _)| *at == id);
                here.for_each(|(_, socket)| socket.seen = self.pass);
                continue;
            }
            for reading in &self.readings {
                match self.sockets.get_mut(&reading.inode) {
                    Some((_, socket)) if is_same(socket.cookie, reading.cookie) => {
                        let packets = socket.update(*reading, self.pass);
                        if packets > 0 {
                            dropped.push((reading.inode, packets));
                        }
                    }
                    Some(_) => strange = true,
                    None => strange |= !self.strangers.contains(&reading.inode),
                }
            }
            if dropped.is_empty() {
                space.settle();
                continue;
            }
            let total = dropped.iter().map(|(_, packets)| packets).sum();
            let whole = space.tell_apart(total);
            for &(inode, packets) in &dropped {
                if let Some((_, socket)) = self.sockets.get_mut(&inode) {
                    socket.drops.add(share(whole, packets, total));
                }
            }
        }
        self.forget_gone();
        let sum = |of: fn(&Tracked) -> Bytes| self.sockets.values().map(|(_, s)| of(s)).sum();
        self.peaks.0 = self.peaks.0.max(sum(|s| s.reading.occupied));
        self.peaks.1 = self.peaks.1.max(sum(|s| s.size.unwrap_or(0)));
        strange
    }

    fn forget_gone(&mut self) {
        let pass = self.pass;
        let mut gone = Vec::new();
        self.sockets.retain(|_, (_, socket)| {
            let here = socket.seen + ABSENT > pass;
            if !here && socket.before.is_some() {
                gone.extend(socket.cookie);
            }
            here
        });
        if let Some(journal) = &mut self.journal
            && !gone.is_empty()
            && let Err(error) = journal.remove(&gone)
        {
            change::note(&mut self.notes, &error);
        }
    }

    /// Calls the policies, divides the budget, and changes the sizes.
    fn decide(&mut self, now: Nanos) {
        let memory = self.room.memory;
        self.adopt();
        let (mut inodes, mut claims) = (Vec::new(), Vec::new());
        for (&inode, (_, socket)) in &mut self.sockets {
            let Some(wanted) = socket.decide(now, memory) else { continue };
            let holds = socket.reading.occupied.min(socket.size.unwrap_or(0));
            let least = socket.least().max(holds);
            inodes.push(inode);
            claims.push(Claim { least, wanted: wanted.max(least) });
        }
        let sizes = divide(self.room.budget, &claims);
        let mut changes = Vec::new();
        for ((&inode, claim), size) in inodes.iter().zip(&claims).zip(sizes) {
            let Some((_, socket)) = self.sockets.get_mut(&inode) else { continue };
            socket.curbed = size < claim.wanted;
            socket.wanted = size & !1;
            let now = socket.size.unwrap_or(0);
            // A change by at most 1/64 is not worth a system call, unless it is to the minimum
            // size.
            let worth = socket.wanted.abs_diff(now) > now / 64 || socket.wanted == socket.least();
            if socket.wanted != now && worth && socket.refusal.is_none() {
                changes.push(inode);
            }
        }
        if !self.settings.dry_run && !changes.is_empty() {
            self.change(&changes);
        }
    }
}

/// Returns whether two cookies may belong to the same socket. An unknown cookie may belong to any
/// socket.
fn is_same(a: Option<u64>, b: Option<u64>) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// Returns the part of `whole` for one socket, which has `packets` of the `total` drops of several
/// sockets. The drops due to the full buffer are rounded up.
fn share(whole: Split, packets: u64, total: u64) -> Split {
    let part = |some: u64| u128::from(some) * u128::from(packets);
    let total = u128::from(total.max(1));
    let buffer = (part(whole.buffer).div_ceil(total) as u64).min(packets);
    let rest = packets - buffer;
    let memory = ((part(whole.memory) / total) as u64).min(rest);
    let checksum = ((part(whole.checksum) / total) as u64).min(rest - memory);
    Split { buffer, memory, checksum, other: rest - memory - checksum }
}

/// Returns the maximum size of a receive buffer in bytes that this process may set, and the missing
/// permission for larger sizes.
fn largest() -> (Bytes, Option<Refusal>) {
    const CAP_NET_ADMIN: u32 = 12;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capable = crate::procfs::status(&status, "CapEff")
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        .is_some_and(|bits| bits >> CAP_NET_ADMIN & 1 == 1);
    // The kernel checks the capability in the initial user namespace.
    if capable && crate::refusal::Facts::of(std::process::id()).first_namespace {
        return (socket::GREATEST, None);
    }
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max")
        .ok()
        .and_then(|text| text.trim().parse::<Bytes>().ok())
        .unwrap_or(212_992)
        .saturating_mul(2)
        .min(socket::GREATEST);
    let text = format!(
        "CAP_NET_ADMIN in the machine's initial user namespace is missing: no buffer can exceed \
         {most} bytes, twice net.core.rmem_max"
    );
    (most, Some(Refusal::new(Missing::NetAdmin, text)))
}
