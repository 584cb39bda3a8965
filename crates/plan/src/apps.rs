//! Applications of the plan itself, in addition to the flows of its groups.

use crate::store::Store;
use sojourn_units::data;

/// An application that is not a flow of a group.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum App {
    /// A replicated store on some of the nodes, with its clients.
    Store(Box<Store>),
}

impl App {
    /// Returns the application's name in results.
    pub fn name(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
        }
    }

    /// Returns the kind of the application for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Store(_) => "the store",
        }
    }
}
