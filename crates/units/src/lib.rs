//! Time, rates and sizes as integers, and their text forms in `tc`'s syntax.
//!
//! `tc` syntax, impairments in `netem` syntax, transports and applications in the same style. Each
//! component declares its parameters once with [`params!`]; the fields, the words, the defaults,
//! `explain`, the JSON schema and the error messages all follow from that [declaration](declare).

#[allow(unused_extern_crates, reason = "the attribute `data` names this crate")]
extern crate self as sojourn_units;

pub mod clocking;
pub mod declare;
pub mod dimension;
mod errors;
pub mod external;
pub mod family;
pub mod jiffies;
pub mod quantity;
pub mod time;
pub mod words;
pub mod written;

pub use errors::quantity_error;
pub use quantity::{Bytes, Rate};
#[cfg(feature = "schema")]
pub use schemars;
pub use sojourn_data::data;
pub use time::{EPOCH, MICROSECOND, MILLISECOND, NEVER, Nanos, SECOND};
