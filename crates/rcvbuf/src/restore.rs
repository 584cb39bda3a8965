//! Puts sockets back as they were: at a tuner's end, and for tuners that were killed.

use crate::diag::{Families, Reading, Source};
use crate::holders::{Failure, Holders};
use crate::journal::{self, Entry};
use crate::refusal::{Missing, Refusal};
use crate::socket;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// What became of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is exactly as it was.
    Restored,
    /// Its program has set a size of its own meanwhile, which stays.
    Left,
    /// It has been closed.
    Gone,
    /// A tuner that runs has it.
    InUse,
    /// It is not as it was; why not is in the text.
    Failed,
}

/// A socket that was tuned, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Number that no other socket of this boot ever has.
    pub cookie: u64,
    /// Address and port it is bound to.
    pub local: SocketAddr,
    /// What became of it.
    pub action: Action,
    /// The size it had, in bytes as the kernel counts.
    pub size: u64,
    /// The same for people.
    pub text: String,
}

impl Outcome {
    pub(crate) fn new(entry: &Entry, action: Action, text: impl Into<String>) -> Self {
        let (cookie, local, size) = (entry.cookie, entry.local, entry.before.size);
        Self { cookie, local, action, size, text: text.into() }
    }
}

/// Puts one socket back, if one of `holders` has it. `ours` is the size that we set last, if known:
/// another one is the program's own and stays.
pub(crate) fn one(holders: &Holders, entry: &Entry, ours: Option<u64>) -> Option<Outcome> {
    let done = holders.with(entry.inode, |copy| {
        if socket::cookie(copy)? != entry.cookie {
            return Ok(None);
        }
        let now = socket::setting(copy)?.size;
        if ours.is_some_and(|ours| ours != now) {
            let text = format!("its program has set {now} bytes meanwhile, which stay");
            return Ok(Some(Outcome::new(entry, Action::Left, text)));
        }
        let exactly = socket::restore(copy, entry.before)?;
        let size = entry.before.size;
        Ok(Some(if exactly {
            Outcome::new(entry, Action::Restored, format!("{size} bytes again"))
        } else {
            let now = socket::setting(copy)?.size;
            let text = format!(
                "{now} bytes instead of {size}: CAP_NET_ADMIN is missing, without which \
                 net.core.rmem_max bounds it"
            );
            Outcome::new(entry, Action::Failed, text)
        }))
    });
    match done {
        Ok(Some(outcome)) => Some(outcome),
        // The inode is another socket's by now.
        Ok(None) => Some(Outcome::new(entry, Action::Gone, "closed")),
        Err(Failure::Refused(refusal)) => Some(Outcome::new(entry, Action::Failed, refusal.text)),
        Err(Failure::Nobody) => None,
    }
}

/// Puts back what `holders` do not have, by looking at all processes and all sockets that we can see.
pub(crate) fn anywhere(entries: &[(Entry, Option<u64>)]) -> Vec<Outcome> {
    if entries.is_empty() {
        return Vec::new();
    }
    let mut holders = Holders::default();
    holders.search(&entries.iter().map(|(entry, _)| entry.inode).collect::<BTreeSet<_>>());
    let seen = sockets_of(&holders);
    entries
        .iter()
        .map(|(entry, ours)| {
            one(&holders, entry, *ours).unwrap_or_else(|| lost(entry, &holders, &seen))
        })
        .collect()
}

/// A socket that nobody has whom we may look into.
fn lost(entry: &Entry, holders: &Holders, seen: &[Reading]) -> Outcome {
    let open = seen.iter().any(|reading| {
        reading.cookie.map_or(reading.inode == entry.inode, |cookie| cookie == entry.cookie)
    });
    match (open, holders.refused.values().next()) {
        (true, Some(refusal)) => {
            let text = format!("somebody has it whom we may not look into: {refusal}");
            Outcome::new(entry, Action::Failed, text)
        }
        (true, None) => Outcome::new(
            entry,
            Action::Failed,
            "no process that can be seen from here has it (it may be in another PID namespace)",
        ),
        (false, _) => Outcome::new(entry, Action::Gone, "closed"),
    }
}

/// All UDP sockets of our network namespace and of those of the processes found.
fn sockets_of(holders: &Holders) -> Vec<Reading> {
    let mut seen = Vec::new();
    let mut look = |mut source: Source| {
        let _ = source.read(Families::BOTH, None, &mut seen);
    };
    look(
        crate::diag::Diag::open()
            .map_or_else(|_| Source::Table("/proc/self/net".into()), Source::Diag),
    );
    for process in holders.processes() {
        look(Source::Table(process.path("net")));
    }
    // Those that we may not look into still show their namespace's sockets, without cookies.
    for pid in holders.refused.keys() {
        look(Source::Table(format!("/proc/{pid}/net").into()));
    }
    seen
}

/// Puts back what tuners that were killed had changed, as their journals in `folder` tell. What cannot
/// be put back stays in the journal.
///
/// # Errors
/// If a journal cannot be read or written.
pub fn restore(folder: &Path) -> io::Result<Vec<Outcome>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let _lock = journal::lock(folder)?;
    let mut outcomes = Vec::new();
    for mut found in journal::all(folder)? {
        if found.owner.alive() {
            let pid = found.owner.pid;
            outcomes.extend(found.sockets.iter().map(|entry| {
                Outcome::new(entry, Action::InUse, format!("process {pid} is at it"))
            }));
            continue;
        }
        let same_boot = boot_is(&found.owner.boot);
        let done = if same_boot {
            anywhere(&found.sockets.iter().map(|entry| (*entry, None)).collect::<Vec<_>>())
        } else {
            let gone = |entry| Outcome::new(entry, Action::Gone, "of another boot");
            found.sockets.iter().map(gone).collect()
        };
        let failed = done.iter().filter(|outcome| outcome.action == Action::Failed);
        found.keep(&failed.map(|outcome| outcome.cookie).collect::<Vec<_>>())?;
        outcomes.extend(done);
    }
    Ok(outcomes)
}

fn boot_is(boot: &str) -> bool {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").is_ok_and(|now| now.trim() == boot)
}

/// Whether a socket that is like this could be put back exactly, if we may give `most` at most.
pub(crate) fn refuse_unless_restorable(before: socket::Setting, most: u64) -> Result<(), Refusal> {
    let size = before.size;
    if !size.is_multiple_of(2) {
        let text = format!(
            "its size, {size} bytes, is odd, as only net.core.rmem_default makes it, and could not be \
             put back exactly"
        );
        return Err(Refusal::new(Missing::Restorable, text));
    }
    if size > most {
        let text = format!(
            "its size, {size} bytes, could not be put back: CAP_NET_ADMIN is missing, without which \
             net.core.rmem_max bounds it"
        );
        return Err(Refusal::new(Missing::NetAdmin, text));
    }
    Ok(())
}
