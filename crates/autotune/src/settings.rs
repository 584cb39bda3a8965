//! Settings of a tuner.

use crate::memory::Places;
use crate::target::{Target, Who};
use sojourn_buffer::Params;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::path::PathBuf;

/// Settings of a tuner.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sockets to follow.
    pub target: Target,
    /// Policy that decides the sizes.
    pub policy: Params,
    /// Time between two passes over the sockets, in nanoseconds.
    pub interval: Nanos,
    /// Time between two searches for processes and sockets, in nanoseconds.
    pub rescan: Nanos,
    /// Whether to only observe: no socket is changed.
    pub dry_run: bool,
    /// Limit on the sum of all receive buffers in bytes. It has no effect if it is above the limit
    /// given by `share`.
    pub budget: Option<Bytes>,
    /// Share of the available memory, of the control groups' memory and of UDP's limit that the
    /// receive buffers may use, 0 to 1.
    pub share: f64,
    /// Maximum number of sockets followed at the same time.
    pub sockets: usize,
    /// Folder of the journal.
    pub state: PathBuf,
    /// Root folders of the machine's memory figures.
    pub places: Places,
}

impl Settings {
    /// Returns the default settings: a pass every 10 ms, a search every second, a quarter of the
    /// memory, at most 1024 sockets. The many sockets of a whole machine are observed every second,
    /// searched for every 5 s, and at most 65536.
    pub fn new(target: Target, policy: Params, state: PathBuf) -> Self {
        let (interval, rescan, sockets) = match target.who {
            Who::Everybody => (SECOND, 5 * SECOND, 1 << 16),
            Who::Pid(_) | Who::Unit(_) | Who::Anybody => (10 * MILLISECOND, SECOND, 1024),
        };
        Self {
            target,
            policy,
            interval,
            rescan,
            dry_run: false,
            budget: None,
            share: 0.25,
            sockets,
            state,
            places: Places::default(),
        }
    }
}
