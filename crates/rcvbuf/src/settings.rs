//! Settings of a tuner.

use crate::memory::Places;
use crate::target::Target;
use sojourn_buffer::Params;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::path::PathBuf;

/// What a tuner is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose sockets.
    pub target: Target,
    /// Who decides.
    pub policy: Params,
    /// Time between two looks.
    pub interval: Nanos,
    /// Time between two searches for processes and sockets.
    pub rescan: Nanos,
    /// Change nothing.
    pub dry_run: bool,
    /// Bytes that all sockets together may be sized for, if less than `share` allows.
    pub budget: Option<Bytes>,
    /// Share of available memory, of the control groups' and of UDP's limit.
    pub share: f64,
    /// Sockets followed at a time.
    pub sockets: usize,
    /// Folder of the journal.
    pub state: PathBuf,
    /// Where the machine tells of its memory.
    pub places: Places,
}

impl Settings {
    /// The usual ones: every 10 ms, a quarter of the memory, 1024 sockets.
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
