//! Policies of a replicated database: placement of data, choice of coordinators, and success of
//! requests.
//!
//! The database is of Cassandra's kind: keys are hashed to [`Token`]s on a [`Ring`], a
//! [`Placement`] determines the replicas of a token, any node may coordinate a request
//! ([`Chooser`]), and a consistency [`Level`] determines how many replicas must answer ([`Tally`]).
//! Tokens and placements equal Cassandra's own on recorded cases (`tests/cassandra`). [`repair`]
//! updates replicas that a read finds outdated; [`Hints`] keep the writes that a replica misses
//! while it is down.
//!
//! A request is in exactly one of these states: acknowledged, failed, timed out (its effect is then
//! unknown) or pending. [`Ledger`] counts them.

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

/// Number of a node in its store.
pub type NodeId = u32;

/// Largest number of nodes of a store.
pub const MOST_NODES: usize = 10_000;
/// Largest number of tokens of all nodes together.
pub const MOST_TOKENS: usize = 1 << 20;
/// Largest number of replicas of a key.
pub const MOST_REPLICAS: usize = 255;
