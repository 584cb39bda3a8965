//! Policies of a replicated database: placement of data, choice of coordinators, and success of
//! requests.
//!
//! The database is similar to Cassandra. Keys are hashed to [`Token`]s on a [`Ring`], and a
//! [`Placement`] determines the replicas of a token. Any node may coordinate a request
//! ([`Chooser`]), and a consistency [`Level`] determines how many replicas must answer ([`Tally`]).
//! Tokens and placements equal those of Cassandra in recorded cases (`tests/cassandra`). [`repair`]
//! updates replicas that a read finds outdated; [`Hints`] store the writes that a replica misses
//! while it is down.
//!
//! Each request is in exactly one state: acknowledged, failed, timed out (its effect is unknown) or
//! pending. [`Ledger`] counts requests by state.

pub mod consistency;
pub mod coordinator;
pub mod hints;
pub mod murmur3;
pub mod placement;
pub mod repair;
pub mod request;
pub mod ring;

pub use consistency::{Level, Need};
pub use coordinator::{Chooser, Policy};
pub use hints::Hints;
pub use murmur3::Token;
pub use placement::Placement;
pub use request::{Ledger, Outcome, Tally};
pub use ring::{Member, Ring};

/// Number of a node in its store, from 0.
pub type NodeId = u32;

/// Maximum number of nodes of a store.
pub const MOST_NODES: usize = 10_000;
/// Maximum number of tokens of all nodes of a store.
pub const MOST_TOKENS: usize = 1 << 20;
/// Maximum number of replicas of a key.
pub const MOST_REPLICAS: usize = 255;
