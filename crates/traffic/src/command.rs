//! `command`: programs of the user's own, which real hosts run.
//!
//! The flow's sender runs the client, its receiver the server. The programs decide what they send,
//! so there is no model: an engine without real hosts cannot run them. A plan has the words of both
//! command lines with their placeholders, the folder in which they run, and digests of the files
//! there that the words name, because results depend on these.

use crate::application::AppParams;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, unset};
use sojourn_units::params;
use sojourn_units::words::Table;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Placeholder of the flow's own port in a command line.
const PORT: &str = "{port}";

params! {
    /// Command lines as words, and their folder; a scenario states them by keys of their own.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Words of the client's command line.
        client: Vec<String> = unset(),
        /// Words of the server's command line; empty without a server.
        server: Vec<String> = unset(),
        /// Absolute path of the folder in which they run.
        folder: String = unset(),
        /// Digests of the files in that folder that the words name, by these words.
        files: BTreeMap<String, String> = unset(),
    }
}

impl Params {
    /// Returns whether the command lines contain the flow's own port.
    pub fn names_port(&self) -> bool {
        self.client.iter().chain(&self.server).any(|word| word.contains(PORT))
    }
}

impl AppParams for Params {
    const TABLE: Table = Table {
        name: "command",
        summary: "your own programs, on real hosts only: `from` runs `client`, `to` runs `server`",
        source: "",
        words: Params::WORDS,
    };

    type Source = Infallible;

    fn check(&self) -> Result<(), String> {
        if self.client.is_empty() { Err("there is no `client`".to_owned()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;

    #[test]
    fn a_client_is_needed() {
        let app = App::parse("command").unwrap();
        assert_eq!(app.check().unwrap_err(), "`command`: there is no `client`");
        assert!(!app.sends_packets());
    }

    #[test]
    fn its_own_port_is_known_by_its_placeholder() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let mut params = Params { client: words(&["ping", "{to}"]), ..Params::new(&()) };
        assert!(!params.names_port());
        params.server = words(&["serve", "--port={port}"]);
        assert!(params.names_port());
    }
}
