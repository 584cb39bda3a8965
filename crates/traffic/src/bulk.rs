//! `bulk`: there is always data to send.

use serde::{Deserialize, Serialize};
use sojourn_units::words::Table;

/// The words of `bulk`.
pub const TABLE: Table = Table {
    name: "bulk",
    summary: "an endless transfer: there is always data to send",
    source: "RFC 7928, section 2",
    words: &[],
};

/// It has no parameters; a group's `stop` ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {}
