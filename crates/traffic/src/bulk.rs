//! `bulk`: an endless transfer, which always has data to send.

use crate::application::AppParams;
use sojourn_units::declare::Parameters;
use sojourn_units::params;
use sojourn_units::words::Table;
use std::convert::Infallible;

params! {
    /// Parameters of `bulk`: none. The transfer ends at the `stop` of the scenario's flow group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl AppParams for Params {
    const TABLE: Table = Table {
        name: "bulk",
        summary: "an endless transfer",
        source: "RFC 7928, section 2",
        words: Params::WORDS,
    };

    type Source = Infallible;
}
