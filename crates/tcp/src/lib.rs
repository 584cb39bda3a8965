//! TCP as a state machine driven by time: no clock, no sockets, no payload.

pub mod params;
pub mod profile;
pub mod segment;
pub use params::Params;
pub use profile::Profile;
pub use segment::{Flags, Segment};
