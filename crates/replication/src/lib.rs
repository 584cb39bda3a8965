//! Policies of a replicated store: where data are kept, who answers for a request, and when it has
//! succeeded.
//!
//! The store is of Cassandra's kind: keys are hashed to [`Token`]s on a [`Ring`], a [`Placement`]
//! names the replicas of a token, any node may coordinate a request ([`Chooser`]), and a consistency
//! [`Level`] says how many replicas must have answered ([`Tally`]). Tokens and placements equal
//! Cassandra's own on recorded cases (`tests/cassandra`). What a read finds out of step is mended by
//! [`repair`], what a replica misses while it is away is kept in [`Hints`].
//!
//! A request is acknowledged, failed, timed out (its outcome is then unknown) or pending, and nothing
//! else: [`Ledger`] keeps count.

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

/// Nodes of a store at most.
pub const MOST_NODES: usize = 10_000;
/// Tokens of all nodes together at most.
pub const MOST_TOKENS: usize = 1 << 20;
/// Replicas of a key at most.
pub const MOST_REPLICAS: usize = 255;
