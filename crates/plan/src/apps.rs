//! Applications of the plan's own, beside the flows of its groups.

use crate::store::Store;
use serde::{Deserialize, Serialize};

/// An application that is no flow of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum App {
    /// A replicated store on some of the nodes, and its clients.
    Store(Box<Store>),
}

impl App {
    /// Its name in results.
    pub fn name(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
        }
    }

    /// What it is, for people.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Store(_) => "the store",
        }
    }
}
