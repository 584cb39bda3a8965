//! Counter-based random streams keyed by seed, component and purpose, and samplers of
//! distributions.
//!
//! All results are fixed permanently: the generator by its published known answers, the samplers by
//! golden values, the mathematics by a pinned `libm`. A result can be reproduced on any platform.

pub mod distribution;
pub mod normal;
mod pauses;
pub mod philox;
mod span;
pub mod stream;

pub use distribution::{Distribution, Unit};
pub use pauses::{Pause, Pauses, Rhythm};
pub use span::{Measured, Span};
pub use stream::{Key, Stream};
