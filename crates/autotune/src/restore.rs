//! Restoration of sockets: at the end of a tuner, and after tuners that were killed.

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

/// Outcome of restoring a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The original setting is restored exactly.
    Restored,
    /// The program itself has set a size in the meantime; this size is not changed.
    Left,
    /// The socket has been closed.
    Gone,
    /// A running tuner still tunes the socket.
    InUse,
    /// The setting differs from the original one; the text states the reason.
    Failed,
}

/// A socket that a tuner has changed, and the outcome of restoring it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Cookie of the socket, which is unique among all sockets since the boot.
    pub cookie: u64,
    /// Local address and port.
    pub local: SocketAddr,
    /// Outcome of restoring the socket.
    pub action: Action,
    /// Original size of the receive buffer in bytes, as the kernel counts it.
    pub size: u64,
    /// Explanation for the user.
    pub text: String,
}

impl Outcome {
    pub(crate) fn new(entry: &Entry, action: Action, text: impl Into<String>) -> Self {
        let (cookie, local, size) = (entry.cookie, entry.local, entry.before.size);
        Self { cookie, local, action, size, text: text.into() }
    }
}

/// Restores one socket through a process in `holders`; `None` if no process there has the socket
/// open. `ours` is the size in bytes that the tuner set last, if known. If the current size differs
/// from `ours`, the program has set the current size, and it is kept.
pub(crate) fn one(holders: &Holders, entry: &Entry, ours: Option<u64>) -> Option<Outcome> {
    let done = holders.with(entry.inode, |copy| {
        if socket::cookie(copy)? != entry.cookie {
            return Ok(None);
        }
        let now = socket::setting(copy)?.size;
        if ours.is_some_and(|ours| ours != now) {
            let text = format!("not restored: its program has set {now} bytes in the meantime");
            return Ok(Some(Outcome::new(entry, Action::Left, text)));
        }
        let exactly = socket::restore(copy, entry.before)?;
        let size = entry.before.size;
        Ok(Some(if exactly {
            Outcome::new(entry, Action::Restored, format!("restored to {size} bytes"))
        } else {
            let now = socket::setting(copy)?.size;
            let text = format!(
                "{now} bytes instead of {size}: without CAP_NET_ADMIN, \
                 net.core.rmem_max limits the size"
            );
            Outcome::new(entry, Action::Failed, text)
        }))
    });
    match done {
        Ok(Some(outcome)) => Some(outcome),
        // The inode now belongs to another socket.
        Ok(None) => Some(Outcome::new(entry, Action::Gone, "closed")),
        Err(Failure::Refused(refusal)) => Some(Outcome::new(entry, Action::Failed, refusal.text)),
        Err(Failure::Nobody) => None,
    }
}

/// Restores sockets that no followed process has open, by a search of all visible processes and
/// sockets.
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

/// Returns the outcome for a socket that is open in no process that may be inspected.
fn lost(entry: &Entry, holders: &Holders, seen: &[Reading]) -> Outcome {
    let open = seen.iter().any(|reading| {
        reading.cookie.map_or(reading.inode == entry.inode, |cookie| cookie == entry.cookie)
    });
    match (open, holders.refused.values().next()) {
        (true, Some(refusal)) => {
            let text = format!(
                "not restored: it is open in a process that cannot be inspected: {refusal}"
            );
            Outcome::new(entry, Action::Failed, text)
        }
        (true, None) => Outcome::new(
            entry,
            Action::Failed,
            "not restored: no visible process has it open; its process may be in another PID namespace",
        ),
        (false, _) => Outcome::new(entry, Action::Gone, "closed"),
    }
}

/// Returns all UDP sockets in this network namespace and in the namespaces of the processes in
/// `holders`.
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
    // Processes that may not be inspected still show the sockets of their namespace, without
    // cookies.
    for pid in holders.refused.keys() {
        look(Source::Table(format!("/proc/{pid}/net").into()));
    }
    seen
}

/// Restores the sockets whose tuner was killed, from the journals in `folder`. Sockets that cannot
/// be restored stay in the journal.
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
                Outcome::new(
                    entry,
                    Action::InUse,
                    format!("not restored: process {pid} still tunes it"),
                )
            }));
            continue;
        }
        let same_boot = boot_is(&found.owner.boot);
        let done = if same_boot {
            anywhere(&found.sockets.iter().map(|entry| (*entry, None)).collect::<Vec<_>>())
        } else {
            let gone = |entry| {
                Outcome::new(entry, Action::Gone, "closed: the machine has restarted since")
            };
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

/// Returns an error if a socket's setting could not be restored exactly. `most` is the largest size
/// in bytes that this process may set.
pub(crate) fn refuse_unless_restorable(before: socket::Setting, most: u64) -> Result<(), Refusal> {
    let size = before.size;
    if !size.is_multiple_of(2) {
        let text = format!(
            "its size of {size} bytes could not be restored exactly: the size is odd, which only \
             net.core.rmem_default can set"
        );
        return Err(Refusal::new(Missing::Restorable, text));
    }
    if size > most {
        let text = format!(
            "its size of {size} bytes could not be restored: without CAP_NET_ADMIN, \
             net.core.rmem_max limits the size"
        );
        return Err(Refusal::new(Missing::NetAdmin, text));
    }
    Ok(())
}
