//! `command`: programs of the user, which real hosts run.
//!
//! The sending host of a flow runs the client, the receiving host the server. The programs decide
//! what they send, so an engine without real hosts cannot run them. A plan contains both command
//! lines with their placeholders, and the folder in which the programs run. A plan also contains
//! digests of the files in this folder that the command lines name, because results depend on these
//! files.

use crate::application::AppParams;
use sojourn_units::declare::unset;
use sojourn_units::params;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Placeholder in a command line for the port of the flow.
const PORT: &str = "{port}";

params! {
    "command": "your own programs, not in the simulator: the host `from` runs `client`, the host `to` runs `server`";

    /// Command lines of the programs, as words, and the folder in which the programs run. A
    /// scenario sets each by its own key.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Words of the client's command line.
        client: Vec<String> = unset(),
        /// Words of the server's command line; empty if no server is run.
        server: Vec<String> = unset(),
        /// Absolute path of the folder in which the programs run.
        folder: String = unset(),
        /// Digests of the files that words of the command lines name, except large files.
        files: BTreeMap<String, String> = unset(),
        /// Numbers that the programs print, by metric: a regular expression with one group, or the
        /// path of a key in the last line, which is JSON.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metrics: BTreeMap<String, String> = unset(),
    }
}

impl Params {
    /// Returns whether a command line contains the placeholder of the flow's port.
    pub fn names_port(&self) -> bool {
        self.client.iter().chain(&self.server).any(|word| word.contains(PORT))
    }
}

impl AppParams for Params {
    type Source = Infallible;

    fn check(&self) -> Result<(), String> {
        if self.client.is_empty() {
            Err("`client` is empty; it must be a command line".to_owned())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::declare::Parameters;

    #[test]
    fn a_client_is_needed() {
        let app = App::parse("command").unwrap();
        assert_eq!(
            app.check().unwrap_err(),
            "`command`: `client` is empty; it must be a command line"
        );
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
