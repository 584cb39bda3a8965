//! Changes of sockets. The original settings are stored on disk before the first change, and
//! restored at the end.

use super::{Core, is_same};
use crate::diag::Reading;
use crate::holders::Failure;
use crate::journal::Entry;
use crate::refusal::{Missing, Refusal};
use crate::restore::{self, Action, Outcome};
use crate::socket::{self, Setting};
use std::io;

impl Core {
    /// Adopts sizes that the program has set itself in the meantime, so that these are restored at
    /// the end.
    pub(super) fn adopt(&mut self) {
        let mut entries = Vec::new();
        for (_, socket) in self.sockets.values_mut() {
            if socket.program_has_set()
                && let (Some(size), Some(cookie)) = (socket.size, socket.cookie)
            {
                let locked = socket.before.and_then(|before| before.locked).map(|_| true);
                let before = Setting { size, locked };
                (socket.before, socket.set) = (Some(before), Some(size));
                entries.push(entry(&socket.reading, cookie, before));
            }
        }
        if let Some(journal) = &mut self.journal
            && !entries.is_empty()
            && let Err(error) = journal.add(&entries)
        {
            note(&mut self.notes, &error);
        }
    }

    pub(super) fn change(&mut self, inodes: &[u64]) {
        self.prepare(inodes);
        for inode in inodes {
            let Some((_, socket)) = self.sockets.get_mut(inode) else { continue };
            let (Some(cookie), Some(_), None) = (socket.cookie, socket.before, &socket.refusal)
            else {
                continue;
            };
            let (wanted, expected) = (socket.wanted, socket.set);
            let done = self.holders.with(*inode, |copy| {
                if socket::cookie(copy)? != cookie {
                    return Ok(None);
                }
                let now = socket::setting(copy)?.size;
                if expected.is_some_and(|size| size != now) {
                    // The program has set the size since the last reading; `adopt` handles this in
                    // the next pass.
                    return Ok(Some((now, false, false)));
                }
                let granted = socket::resize(copy, wanted)?;
                Ok(Some((granted.size, granted.bounded, true)))
            });
            match done {
                Ok(Some((size, bounded, ours))) => {
                    socket.size = Some(size);
                    if ours {
                        socket.set = Some(size);
                        socket.changes += 1;
                        socket.peak_size = socket.peak_size.max(size);
                        if bounded && size < wanted {
                            socket.most = size;
                        }
                    }
                }
                Ok(None) | Err(Failure::Nobody) => self.search_at = 0,
                Err(Failure::Refused(refusal)) => socket.refusal = Some(refusal),
            }
        }
    }

    /// Stores on disk the original settings of sockets that are to be changed for the first time.
    fn prepare(&mut self, inodes: &[u64]) {
        let mut entries = Vec::new();
        for inode in inodes {
            let Some((_, socket)) = self.sockets.get_mut(inode) else { continue };
            if socket.before.is_some() {
                continue;
            }
            let asked = self
                .holders
                .with(*inode, |copy| Ok((socket::cookie(copy)?, socket::setting(copy)?)));
            match asked {
                Ok((cookie, before)) if is_same(socket.cookie, Some(cookie)) => {
                    socket.cookie = Some(cookie);
                    if let Err(refusal) = restore::refuse_unless_restorable(before, self.most) {
                        socket.refusal = Some(refusal);
                    } else {
                        entries.push(entry(&socket.reading, cookie, before));
                    }
                }
                Ok(_) | Err(Failure::Nobody) => self.search_at = 0,
                Err(Failure::Refused(refusal)) => socket.refusal = Some(refusal),
            }
        }
        let Some(journal) = &mut self.journal else { return };
        if entries.is_empty() {
            return;
        }
        match journal.add(&entries) {
            Ok(taken) => {
                for entry in &entries {
                    let Some((_, socket)) = self.sockets.get_mut(&entry.inode) else { continue };
                    if let Some((_, pid)) = taken.iter().find(|(id, _)| *id == entry.cookie) {
                        let text = format!("process {pid} already tunes the socket");
                        socket.refusal = Some(Refusal::new(Missing::Taken, text));
                    } else {
                        socket.before = Some(entry.before);
                        socket.set = Some(entry.before.size);
                    }
                }
            }
            // No socket is changed unless its original setting is on disk.
            Err(error) => note(&mut self.notes, &error),
        }
    }

    /// Restores all sockets, and returns the outcome for each.
    pub(crate) fn finish(&mut self) -> Vec<Outcome> {
        let mut tuned = Vec::new();
        for (_, socket) in self.sockets.values() {
            if let (Some(cookie), Some(before)) = (socket.cookie, socket.before) {
                tuned.push((entry(&socket.reading, cookie, before), socket.set));
            }
        }
        let (mut outcomes, mut lost) = (Vec::new(), Vec::new());
        for (entry, ours) in tuned {
            match restore::one(&self.holders, &entry, ours) {
                // Another process, such as systemd, may have the socket open.
                None => lost.push((entry, ours)),
                Some(outcome) => outcomes.push(outcome),
            }
        }
        outcomes.extend(restore::anywhere(&lost));
        let done: Vec<u64> = outcomes
            .iter()
            .filter(|outcome| outcome.action != Action::Failed)
            .map(|outcome| outcome.cookie)
            .collect();
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.remove(&done)
        {
            note(&mut self.notes, &error);
        }
        self.sockets.clear();
        outcomes
    }
}

fn entry(reading: &Reading, cookie: u64, before: Setting) -> Entry {
    Entry { cookie, inode: reading.inode, local: reading.local, before }
}

/// Adds the note that the journal cannot be written, unless `notes` has the same note.
pub(super) fn note(notes: &mut Vec<Refusal>, error: &io::Error) {
    let said = Refusal::new(Missing::Other, format!("the journal cannot be written: {error}"));
    if !notes.contains(&said) {
        notes.push(said);
    }
}
