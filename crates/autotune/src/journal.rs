//! Journals: files with the original settings of sockets, from which these are restored however the
//! process ends.
//!
//! Each tuner has one file. The file is written completely (temporary file, fsync, rename, fsync of
//! the folder) before the first change of a socket, and removed with its last entry. Cookies are
//! unique only since the last boot, so entries of an earlier boot refer to no socket.

use crate::process::{Process, namespace_number};
use crate::socket::Setting;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, read_dir, remove_file, rename};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum size of a journal in bytes. A journal of the maximum number of sockets is smaller.
const SIZE: u64 = 64 << 20;
const VERSION: u32 = 1;
const PREFIX: &str = "rcvbuf-";
/// Number of the next journal of this process, which may have several tuners.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A socket that a tuner has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Cookie of the socket, which is unique among all sockets since the boot.
    pub cookie: u64,
    /// Inode of the socket.
    pub inode: u64,
    /// Local address and port.
    pub local: SocketAddr,
    /// Setting of the receive buffer before the first change.
    pub before: Setting,
}

/// Process of a tuner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// PID of the process.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub start: u64,
    /// Number of the PID namespace to which `pid` belongs.
    pub namespace: u64,
    /// Identifier of the boot in which the process runs.
    pub boot: String,
}

impl Owner {
    fn me() -> io::Result<Self> {
        let me = Process::open(std::process::id())?;
        Ok(Self {
            pid: me.pid,
            start: me.start,
            namespace: namespace_number("/proc/self/ns/pid".as_ref())?,
            boot: boot()?,
        })
    }

    /// Returns whether the process is still running. Returns true if this cannot be determined, for
    /// example in another PID namespace.
    pub fn alive(&self) -> bool {
        if boot().is_ok_and(|boot| boot != self.boot) {
            return false;
        }
        if namespace_number("/proc/self/ns/pid".as_ref()).ok() != Some(self.namespace) {
            return true;
        }
        Process::open(self.pid).is_ok_and(|process| process.start == self.start)
    }
}

fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    owner: Owner,
    sockets: Vec<Entry>,
}

/// Returns the default folder of journals. For a systemd service it is in the folder that systemd
/// created for the service (`$RUNTIME_DIRECTORY`). For root it is `/run/sojourn/rcvbuf`, for other
/// users `$XDG_STATE_HOME/sojourn/rcvbuf`.
///
/// # Errors
/// If the folder depends on `XDG_STATE_HOME` and `HOME`, and neither is an absolute path.
pub fn default_folder() -> io::Result<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(folder) = absolute("RUNTIME_DIRECTORY") {
        return Ok(folder.join("rcvbuf"));
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/run/sojourn/rcvbuf".into());
    }
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|folder| folder.join("sojourn/rcvbuf"))
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME is set")
        })
}

/// Journal of this tuner.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    path: PathBuf,
    owner: Owner,
    entries: BTreeMap<u64, Entry>,
}

/// Journal of any tuner, which may be running or have ended.
#[derive(Debug)]
pub struct Found {
    /// Path of the journal.
    pub path: PathBuf,
    /// Process of the tuner that wrote the journal.
    pub owner: Owner,
    /// Sockets that the tuner has changed.
    pub sockets: Vec<Entry>,
}

/// Exclusive lock of a folder. While it exists, no other process uses the folder's journals.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held")] File);

/// Creates the folder if necessary, and checks that only the current user can write to it.
fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = std::fs::symlink_metadata(folder)?;
    let me = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != me || found.mode() & 0o022 != 0 {
        let what = format!(
            "{} must be a folder that belongs to this user and that no other user can write to",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// Locks the folder. Waits as long as another process holds the lock.
///
/// # Errors
/// If the folder does not exist.
pub fn lock(folder: &Path) -> io::Result<Lock> {
    let file = File::open(folder)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(Lock(file))
}

impl Journal {
    /// Returns a journal in `folder` without entries, and therefore without a file.
    ///
    /// # Errors
    /// If the folder cannot be created, belongs to another user, or other users can write to it.
    pub fn new(folder: &Path) -> io::Result<Self> {
        prepare(folder)?;
        let owner = Owner::me()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{}-{number}.json", owner.pid, owner.start);
        Ok(Self { folder: folder.into(), path: folder.join(name), owner, entries: BTreeMap::new() })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds entries, which are on disk when this function returns. Entries of sockets that another
    /// running tuner has changed are not added; their cookies are returned with that tuner's PID.
    ///
    /// # Errors
    /// If a journal cannot be read or written. In this case no entry is added.
    pub fn add(&mut self, entries: &[Entry]) -> io::Result<Vec<(u64, u32)>> {
        let _lock = lock(&self.folder)?;
        let others: Vec<Found> = all(&self.folder)?
            .into_iter()
            .filter(|found| found.path != self.path && found.owner.alive())
            .collect();
        let owner_of = |cookie| {
            let has = |found: &&Found| found.sockets.iter().any(|entry| entry.cookie == cookie);
            others.iter().find(has).map(|found| found.owner.pid)
        };
        let (mut taken, before) = (Vec::new(), self.entries.clone());
        for entry in entries {
            match owner_of(entry.cookie) {
                Some(pid) => taken.push((entry.cookie, pid)),
                None => {
                    self.entries.insert(entry.cookie, *entry);
                }
            }
        }
        if let Err(error) = self.write() {
            self.entries = before;
            return Err(error);
        }
        Ok(taken)
    }

    /// Removes the entries of sockets that are closed or restored.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remove(&mut self, cookies: &[u64]) -> io::Result<()> {
        let before = self.entries.len();
        self.entries.retain(|cookie, _| !cookies.contains(cookie));
        if self.entries.len() == before {
            return Ok(());
        }
        let _lock = lock(&self.folder)?;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let sockets: Vec<Entry> = self.entries.values().copied().collect();
        write(&self.path, &self.owner, sockets)
    }
}

/// Writes a complete journal; removes the file if there are no sockets.
fn write(path: &Path, owner: &Owner, sockets: Vec<Entry>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    if sockets.is_empty() {
        match remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => return Ok(()),
        }
    }
    let contents = Contents { version: VERSION, owner: owner.clone(), sockets };
    let text = serde_json::to_vec(&contents).map_err(io::Error::other)?;
    let temporary = path.with_extension("tmp");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&text)?;
    file.sync_all()?;
    rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

/// Returns all journals in `folder`, sorted by path; none if the folder does not exist.
///
/// # Errors
/// If a journal cannot be read. The error names the file and the fault.
pub fn all(folder: &Path) -> io::Result<Vec<Found>> {
    let entries = match read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = path.extension().unwrap_or_default();
        if name.starts_with(PREFIX) && extension == "json" {
            found.push(read(&path)?);
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn read(path: &Path) -> io::Result<Found> {
    let wrong = |what: String| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
    };
    let mut text = Vec::new();
    File::open(path)?.take(SIZE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > SIZE {
        return Err(wrong(format!("a journal must not exceed {SIZE} bytes")));
    }
    let contents: Contents = serde_json::from_slice(&text)
        .map_err(|error| wrong(format!("not a journal of receive buffers: {error}")))?;
    if contents.version != VERSION {
        return Err(wrong(format!("the version must be {VERSION}, found {}", contents.version)));
    }
    Ok(Found { path: path.into(), owner: contents.owner, sockets: contents.sockets })
}

impl Found {
    /// Removes all entries except those with the cookies in `cookies`; removes the file if no entry
    /// remains.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&mut self, cookies: &[u64]) -> io::Result<()> {
        self.sockets.retain(|entry| cookies.contains(&entry.cookie));
        write(&self.path, &self.owner, self.sockets.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("sojourn-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn entry(cookie: u64) -> Entry {
        Entry {
            cookie,
            inode: 3,
            local: "[::]:514".parse().unwrap(),
            before: Setting { size: 212_992, locked: Some(false) },
        }
    }

    #[test]
    fn written_and_read() {
        let folder = folder("written");
        let mut journal = Journal::new(&folder).unwrap();
        assert!(all(&folder).unwrap().is_empty());
        assert_eq!(journal.add(&[entry(1), entry(2)]).unwrap(), []);
        let found = all(&folder).unwrap();
        assert_eq!(found[0].sockets, [entry(1), entry(2)]);
        assert!(found[0].owner.alive());
        // A second tuner cannot add a socket that the first one has changed.
        let mut second = Journal::new(&folder).unwrap();
        assert_eq!(second.add(&[entry(2), entry(9)]).unwrap(), [(2, std::process::id())]);
        journal.remove(&[1]).unwrap();
        assert_eq!(all(&folder).unwrap().len(), 2);
        journal.remove(&[2]).unwrap();
        second.remove(&[9]).unwrap();
        assert!(all(&folder).unwrap().is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_dead_are_known() {
        let me = Owner::me().unwrap();
        assert!(me.alive());
        assert!(!Owner { start: me.start + 1, ..me.clone() }.alive());
        assert!(!Owner { boot: "another".into(), ..me.clone() }.alive());
        assert!(Owner { namespace: 1, start: 0, ..me }.alive());
    }

    #[test]
    fn an_invalid_journal_is_reported_and_kept() {
        let folder = folder("broken");
        Journal::new(&folder).unwrap();
        let path = folder.join("rcvbuf-1-2-0.json");
        std::fs::write(&path, "{\"version\":1}").unwrap();
        let error = all(&folder).unwrap_err().to_string();
        assert!(error.contains("rcvbuf-1-2-0.json") && path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn others_cannot_write_it() {
        let folder = folder("open");
        std::fs::create_dir_all(&folder).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&folder, open).unwrap();
        assert!(Journal::new(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let folder = folder("any");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("rcvbuf-x.json"), bytes).unwrap();
            prop_assert!(all(&folder).is_err());
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
