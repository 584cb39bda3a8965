//! Counter-based random streams keyed by seed, component and purpose, and samplers of
//! distributions.
//!
//! Results never change: the generator is checked against published known answers, the samplers
//! against golden values, and mathematical functions come from a pinned `libm`. Therefore a result
//! is the same on every platform.

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
