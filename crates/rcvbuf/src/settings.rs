//! Settings of a tuner.

use crate::memory::Places;
use crate::target::Target;
use sojourn_buffer::Params;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::path::PathBuf;

/// Settings of a tuner.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sockets to follow.
    pub target: Target,
    /// Policy.
    pub policy: Params,
    /// Time between two passes, in nanoseconds.
    pub interval: Nanos,
    /// Time between two searches for processes and sockets, in nanoseconds.
    pub rescan: Nanos,
    /// Whether to change no socket.
    pub dry_run: bool,
    /// Limit of the sum of all sizes in bytes, if below the limit by `share`.
    pub budget: Option<Bytes>,
    /// Share of the available memory, of the control groups' memory and of UDP's limit that sockets
    /// may use.
    pub share: f64,
    /// Largest number of sockets followed at a time.
    pub sockets: usize,
    /// Folder of the journal.
    pub state: PathBuf,
    /// Folders with the machine's memory figures.
    pub places: Places,
}

impl Settings {
    /// Returns default settings: every 10 ms, a quarter of the memory, 1024 sockets.
    pub fn new(target: Target, policy: Params, state: PathBuf) -> Self {
        Self {
            target,
            policy,
            interval: 10 * MILLISECOND,
            rescan: SECOND,
            dry_run: false,
            budget: None,
            share: 0.25,
            sockets: 1024,
            state,
            places: Places::default(),
        }
    }
}
