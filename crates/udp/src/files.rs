//! A handler that receives files into one folder and never writes outside this folder.
//!
//! A file has a single name without a path. The file is first written under a hidden, random name
//! into the folder, which was opened at the start. When the file is complete, it is synced and
//! renamed; an existing file is never replaced. Links are not followed. A quota limits the total of
//! received bytes. A server locks its incomplete files, so that a later server can recognise and
//! remove the incomplete files of a killed server.
//!
//! If a connection ends, the contiguous beginning of a file of known length is kept until the
//! server ends or newer files need its place. Another connection can resume the transfer.
//!
//! A message has a kind (1 byte), a number (8 bytes) and content:
//!
//! | kind | number | then | means |
//! |---|---|---|---|
//! | 0 | length, all ones if it is not known | name | a file from its beginning |
//! | 1 | offset | bytes | the bytes at this offset |
//! | 2 | length | name | asks which part is kept; the answer's checksum field has its length (8 bytes) and the first bytes of its SHA-256 |
//! | 3 | length | offset (8 bytes), name | resumes a kept file |

use crate::packet::{Code, DIGEST, Id};
use crate::serve::{Handler, random};
use crate::server::Message;
use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Length of a file whose length is unknown.
pub const UNKNOWN: u64 = u64::MAX;
/// Length in bytes of the head of a message with a piece of a file: its kind and the offset.
pub const PIECE_HEADER: usize = 9;
/// Maximum number of incomplete files that are kept for resumption.
const KEPT: usize = 64;
/// Maximum number of separate ranges of a file that have arrived before the bytes preceding them.
const AHEAD: usize = 8192;
/// Idle time of a connection after which another connection may resume its file.
const ABANDONED: Duration = Duration::from_secs(2);
/// Maximum length of a file name in bytes.
const LONGEST: usize = 200;
/// Prefix and suffix of the names of incomplete files. Between them are 16 hexadecimal digits.
const UNFINISHED: (&str, &str) = (".sojourn-", ".partial");

/// Returns the message that begins a file. `length` is `None` if unknown.
pub fn header(name: &str, length: Option<u64>) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(length.unwrap_or(UNKNOWN).to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes
}

/// Returns the message that asks how much of a file is kept.
pub fn question(name: &str, length: u64) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend(length.to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes
}

/// Returns the message that resumes a kept file at `offset`.
pub fn continuation(name: &str, length: u64, offset: u64) -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.extend(length.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes
}

/// Parses a server's answer to [`question`]. Returns the number of kept bytes from the file's
/// beginning, and the first 24 bytes of their SHA-256.
pub fn kept(answer: [u8; DIGEST]) -> (u64, [u8; DIGEST - 8]) {
    let (offset, sum) = answer.split_first_chunk::<8>().expect("the answer has more than 8 bytes");
    let mut first = [0; DIGEST - 8];
    first.copy_from_slice(sum);
    (u64::from_be_bytes(*offset), first)
}

/// Checks that a file name is allowed.
///
/// # Errors
/// If it is not allowed: the reason.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    match name {
        "" => Err("the name is empty"),
        _ if name.len() > LONGEST => Err("the name is longer than 200 bytes"),
        _ if name.starts_with('.') => Err("the name begins with a dot"),
        _ if name.contains(['/', '\\']) => Err("the name contains a slash or backslash"),
        _ if name.chars().any(char::is_control) => Err("the name contains control characters"),
        _ => Ok(()),
    }
}

/// A file that was received completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Name of the file in the folder.
    pub name: String,
    /// Length of the file in bytes.
    pub length: u64,
    /// SHA-256 of the file, computed from the written file.
    pub digest: [u8; DIGEST],
}

struct Partial {
    file: File,
    path: String,
    name: Option<(String, u64)>,
    /// Largest offset up to which bytes have arrived.
    end: u64,
    /// All bytes below this offset have arrived.
    whole: u64,
    /// Ranges above `whole` that have arrived: first offset, and end.
    above: BTreeMap<u64, u64>,
    /// When the last piece arrived.
    touched: Instant,
}

impl Partial {
    /// Records the arrival of a piece. Returns false if there are more than [`AHEAD`] ranges above
    /// `whole`.
    fn cover(&mut self, start: u64, end: u64) -> bool {
        self.end = self.end.max(end);
        self.touched = Instant::now();
        if start > self.whole {
            let known = self.above.entry(start).or_insert(end);
            *known = end.max(*known);
            return self.above.len() <= AHEAD;
        }
        self.whole = self.whole.max(end);
        while let Some(entry) = self.above.first_entry() {
            if *entry.key() > self.whole {
                break;
            }
            self.whole = self.whole.max(entry.remove());
        }
        true
    }
}

/// A handler that receives files into a folder.
pub struct Files {
    folder: OwnedFd,
    quota: u64,
    used: u64,
    partial: BTreeMap<Id, Partial>,
    /// Incomplete files of ended connections, oldest first.
    kept: Vec<Partial>,
    /// For each connection that asked how much of a file is kept: name and length of the file.
    asked: BTreeMap<Id, (String, u64)>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Files {
    /// Returns a handler that receives files into an existing folder, at most `quota` bytes in
    /// total.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub fn new(folder: &Path, quota: u64) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
        sweep(&folder)?;
        let received = Arc::default();
        let (partial, asked) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { folder, quota, used: 0, partial, kept: Vec::new(), asked, received })
    }

    /// Returns the list of received files. A reader may remove entries from it.
    pub fn received(&self) -> Arc<Mutex<Vec<Received>>> {
        Arc::clone(&self.received)
    }

    fn partial(&mut self, id: Id) -> io::Result<&mut Partial> {
        use std::collections::btree_map::Entry;
        match self.partial.entry(id) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let (file, path) = unfinished(&self.folder)?;
                let above = BTreeMap::new();
                let touched = Instant::now();
                Ok(entry.insert(Partial {
                    file,
                    path,
                    name: None,
                    end: 0,
                    whole: 0,
                    above,
                    touched,
                }))
            }
        }
    }

    fn take(&mut self, id: Id, data: &[u8]) -> Result<(), Code> {
        let failed = |_| Code::Failed;
        let (&kind, rest) = data.split_first().ok_or(Code::Refused)?;
        let (number, rest) = rest.split_first_chunk::<8>().ok_or(Code::Refused)?;
        let number = u64::from_be_bytes(*number);
        match kind {
            0 => {
                let name = std::str::from_utf8(rest).map_err(|_| Code::Refused)?;
                check_name(name).map_err(|_| Code::Refused)?;
                if number != UNKNOWN && number > self.quota {
                    return Err(Code::Quota);
                }
                self.check_free(name)?;
                let partial = self.partial(id).map_err(failed)?;
                if partial.name.replace((name.to_owned(), number)).is_some() {
                    return Err(Code::Refused);
                }
                Ok(())
            }
            1 => {
                let length = rest.len() as u64;
                let end = number.checked_add(length).ok_or(Code::Refused)?;
                let before = self.partial.get(&id).map_or(0, |partial| partial.end);
                let more = end.saturating_sub(before);
                while more > self.quota - self.used && !self.kept.is_empty() {
                    let oldest = self.kept.remove(0);
                    self.remove(&oldest);
                }
                if more > self.quota - self.used {
                    return Err(Code::Quota);
                }
                let partial = self.partial(id).map_err(failed)?;
                partial.file.write_all_at(rest, number).map_err(failed)?;
                let few = partial.cover(number, end);
                self.used += more;
                if few { Ok(()) } else { Err(Code::Refused) }
            }
            2 => {
                let name = std::str::from_utf8(rest).map_err(|_| Code::Refused)?;
                check_name(name).map_err(|_| Code::Refused)?;
                let asked = (name.to_owned(), number);
                let again = self.asked.insert(id, asked).is_some();
                if again || self.partial.contains_key(&id) { Err(Code::Refused) } else { Ok(()) }
            }
            3 => {
                let (offset, name) = rest.split_first_chunk::<8>().ok_or(Code::Refused)?;
                let name = std::str::from_utf8(name).map_err(|_| Code::Refused)?;
                self.check_free(name)?;
                if self.partial.contains_key(&id) {
                    return Err(Code::Refused);
                }
                let place = self.find_kept(name, number).ok_or(Code::Refused)?;
                if self.kept[place].whole != u64::from_be_bytes(*offset) {
                    return Err(Code::Refused);
                }
                let partial = self.kept.remove(place);
                self.partial.insert(id, Partial { touched: Instant::now(), ..partial });
                Ok(())
            }
            _ => Err(Code::Refused),
        }
    }

    fn check_free(&self, name: &str) -> Result<(), Code> {
        match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Code::Exists),
            Err(_) => Ok(()),
        }
    }

    /// Returns the index of a file in the list of kept files. Before the search, a file with this
    /// name and length whose connection is idle is moved to the list.
    fn find_kept(&mut self, name: &str, length: u64) -> Option<usize> {
        let is_it = |partial: &Partial| {
            partial.name.as_ref().is_some_and(|known| (known.0.as_str(), known.1) == (name, length))
        };
        let left = self
            .partial
            .iter()
            .find(|(_, partial)| is_it(partial) && partial.touched.elapsed() > ABANDONED);
        if let Some((&id, _)) = left {
            self.keep(id);
        }
        self.kept.iter().rposition(is_it)
    }

    /// Returns the answer to the question how much of a file is kept.
    fn answer(&mut self, name: &str, length: u64) -> io::Result<[u8; DIGEST]> {
        let mut answer = [0; DIGEST];
        if let Some(place) = self.find_kept(name, length) {
            let partial = &self.kept[place];
            let sum = digest(&partial.file, partial.whole)?;
            answer[..8].copy_from_slice(&partial.whole.to_be_bytes());
            answer[8..].copy_from_slice(&sum[..DIGEST - 8]);
        }
        Ok(answer)
    }

    fn complete(&mut self, id: Id) -> Result<Received, Code> {
        let partial = self.partial.get(&id).ok_or(Code::Refused)?;
        let (name, length) = partial.name.clone().ok_or(Code::Refused)?;
        let whole = partial.whole == partial.end && (length == UNKNOWN || length == partial.end);
        if !whole {
            return Err(Code::Refused);
        }
        let keep = || -> io::Result<[u8; DIGEST]> {
            let digest = digest(&partial.file, partial.end)?;
            partial.file.sync_all()?;
            rename(&self.folder, &partial.path, &name)?;
            rustix::fs::fsync(&self.folder)?;
            Ok(digest)
        };
        let digest = keep().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Code::Exists,
            _ => Code::Failed,
        })?;
        let length = partial.end;
        // The length of the file still counts towards the quota.
        self.partial.remove(&id);
        Ok(Received { name, length, digest })
    }

    fn discard(&mut self, id: Id) {
        if let Some(partial) = self.partial.remove(&id) {
            self.remove(&partial);
        }
    }

    fn remove(&mut self, partial: &Partial) {
        self.used -= partial.end;
        let _ = rustix::fs::unlinkat(&self.folder, partial.path.as_str(), AtFlags::empty());
    }

    /// Keeps the contiguous beginning of a file if the transfer can be resumed; otherwise removes
    /// the file.
    fn keep(&mut self, id: Id) {
        let Some(mut partial) = self.partial.remove(&id) else { return };
        let known = partial.name.as_ref().is_some_and(|(_, length)| *length != UNKNOWN);
        if !known || partial.whole == 0 || partial.file.set_len(partial.whole).is_err() {
            return self.remove(&partial);
        }
        self.used -= partial.end - partial.whole;
        partial.end = partial.whole;
        partial.above.clear();
        // An earlier attempt to send the same file is obsolete.
        if let Some(place) = self.kept.iter().position(|other| other.name == partial.name) {
            let other = self.kept.remove(place);
            self.remove(&other);
        }
        if self.kept.len() >= KEPT {
            let oldest = self.kept.remove(0);
            self.remove(&oldest);
        }
        self.kept.push(partial);
    }
}

impl Handler for Files {
    fn message(&mut self, message: &Message) -> Result<(), Code> {
        let taken = self.take(message.connection, &message.data);
        if taken.is_err() {
            self.discard(message.connection);
        }
        taken
    }

    fn finish(&mut self, connection: Id) -> (Code, [u8; DIGEST]) {
        if let Some((name, length)) = self.asked.remove(&connection) {
            return match self.answer(&name, length) {
                Ok(answer) => (Code::Done, answer),
                Err(_) => (Code::Failed, [0; DIGEST]),
            };
        }
        match self.complete(connection) {
            Ok(received) => {
                let digest = received.digest;
                self.received.lock().unwrap_or_else(PoisonError::into_inner).push(received);
                (Code::Done, digest)
            }
            Err(code) => {
                self.discard(connection);
                (code, [0; DIGEST])
            }
        }
    }

    fn gone(&mut self, connection: Id) {
        self.asked.remove(&connection);
        self.keep(connection);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let unfinished: Vec<Id> = self.partial.keys().copied().collect();
        for id in unfinished {
            self.discard(id);
        }
        for partial in std::mem::take(&mut self.kept) {
            self.remove(&partial);
        }
    }
}

/// Creates a locked file with a hidden, random name.
fn unfinished(folder: &OwnedFd) -> io::Result<(File, String)> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    loop {
        let number = u64::from_be_bytes(random()?);
        let path = format!("{}{number:016x}{}", UNFINISHED.0, UNFINISHED.1);
        let file = rustix::fs::openat(folder, path.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
        // On a file system without locks, no server removes the file: removal requires a lock.
        let _ = rustix::fs::flock(&file, FlockOperation::LockExclusive);
        // Another server may have removed the file before it was locked. If so, create a new file.
        if rustix::fs::fstat(&file)?.st_nlink > 0 {
            return Ok((File::from(file), path));
        }
    }
}

/// Removes incomplete files of killed servers from the folder.
fn sweep(folder: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        let number = name
            .to_str()
            .ok()
            .and_then(|n| n.strip_prefix(UNFINISHED.0)?.strip_suffix(UNFINISHED.1));
        if !number.is_some_and(|n| n.len() == 16 && n.bytes().all(|b| b.is_ascii_hexdigit())) {
            continue;
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::RDONLY | OFlags::CLOEXEC;
        // A file that cannot be locked may be in use by a running server.
        let Ok(file) = rustix::fs::openat(folder, &name, flags, Mode::empty()) else { continue };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
        }
    }
    Ok(())
}

/// Renames a file if the new name is not in use.
fn rename(folder: &OwnedFd, from: &str, to: &str) -> io::Result<()> {
    match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support `RENAME_NOREPLACE`. A hard link also fails if the name
        // exists.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
            rustix::fs::unlinkat(folder, from, AtFlags::empty())?;
            Ok(())
        }
        other => Ok(other?),
    }
}

fn digest(file: &File, length: u64) -> io::Result<[u8; DIGEST]> {
    let mut hash = Sha256::new();
    let (mut at, mut buffer) = (0, vec![0; 1 << 20]);
    while at < length {
        let most = buffer.len().min((length - at) as usize);
        let n = file.read_at(&mut buffer[..most], at)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hash.update(&buffer[..n]);
        at += n as u64;
    }
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::{Files, unfinished};
    use std::fs;

    #[test]
    fn partial_files_of_killed_servers_are_removed() {
        let folder = std::env::temp_dir().join(format!("sojourn-files-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let living = Files::new(&folder, 100).unwrap();
        let (held, theirs) = unfinished(&living.folder).unwrap();
        for name in [".sojourn-0123456789abcdef.partial", ".sojourn-x.partial", "a.partial"] {
            fs::write(folder.join(name), "half").unwrap();
        }
        let next = Files::new(&folder, 100).unwrap();
        let mut left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = vec![theirs, ".sojourn-x.partial".into(), "a.partial".into()];
        expected.sort();
        assert_eq!(left, expected);
        drop((held, living, next));
        fs::remove_dir_all(&folder).unwrap();
    }
}
