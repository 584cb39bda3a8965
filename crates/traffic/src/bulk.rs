//! `bulk`: an endless transfer, which always has data to send.

use crate::application::AppParams;
use sojourn_units::params;
use std::convert::Infallible;

params! {
    "bulk": "an endless transfer",
    from "RFC 7928, section 2";

    /// Parameters of `bulk`: none. The transfer ends at the `stop` of the scenario's flow group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl AppParams for Params {
    type Source = Infallible;
}
