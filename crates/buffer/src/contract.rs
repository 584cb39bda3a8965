//! The traits of receive buffer policies and of their parameters.

use crate::observation::{Decision, GREATEST, Observation, Reason};
use sojourn_units::declare::{Param, Parameters, size, time};
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Given, Text, WordError};
use sojourn_units::{Bytes, Nanos, SECOND};

/// A policy for the size of a receive buffer.
pub trait Sizing {
    /// Returns the size that the buffer must have from now on. If the time or a counter has
    /// decreased, it counts as unchanged.
    fn observe(&mut self, seen: &Observation) -> Decision;

    /// Calls `visit` for each variable of the policy's state, with its name and value. Sizes are in
    /// bytes.
    fn state(&self, _visit: &mut dyn FnMut(&str, f64)) {}
}

/// Parameters of a policy, with everything that the family of policies needs.
pub trait PolicyParams: Parameters<On = ()> + Default {
    /// The policy.
    type Policy: Sizing;

    /// Returns the policy of a new buffer.
    fn build(&self) -> Self::Policy;

    /// Returns the parameters that are sizes, each with its word: the minimum, possibly others, and
    /// the maximum. They must be in ascending order.
    fn sizes(&self) -> Vec<(&'static str, Bytes)>;

    /// Returns the initial size of a buffer in bytes.
    fn initial(&self) -> Bytes {
        self.bounds().0
    }

    /// Returns the minimum and the maximum size in bytes.
    fn bounds(&self) -> (Bytes, Bytes) {
        let sizes = self.sizes();
        (sizes[0].1, sizes[sizes.len() - 1].1)
    }

    /// Returns the size in bytes that the buffer could have immediately. `size` is its current
    /// size, and `reason` the reason of the last decision.
    fn potential(&self, size: Bytes, _reason: Reason) -> Bytes {
        size
    }

    /// Replaces the values of the given words.
    ///
    /// # Errors
    /// If a value is outside its range, or the sizes are not in ascending order.
    fn read(&mut self, given: &Given) -> Result<(), WordError> {
        self.set(given)?;
        for pair in self.sizes().windows(2) {
            let ((low, least), (high, greatest)) = (pair[0], pair[1]);
            if least > greatest {
                let word = if given.has(low) { low } else { high };
                let (least, greatest) = (format_size(least), format_size(greatest));
                let message = format!("`{low}` ({least}) must not be above `{high}` ({greatest})");
                return Err(given.error(word, message));
            }
        }
        Ok(())
    }

    /// Returns the description of these parameters, which [`crate::Params::parse`] can parse.
    fn text(&self) -> String {
        self.write(Text::new(Self::TABLE.name)).done()
    }
}

/// Returns `size` limited to the range from `floor` to `ceiling`, but not below the bytes that are
/// `occupied`.
pub(crate) fn within(size: Bytes, floor: Bytes, ceiling: Bytes, occupied: Bytes) -> Bytes {
    size.min(ceiling).max(floor).max(occupied)
}

/// A size of a buffer, from 1 byte to [`GREATEST`].
pub(crate) const fn bytes(default: &'static str) -> Param<Bytes> {
    size(default).check(|&size| {
        if 0 < size && size <= GREATEST {
            Ok(())
        } else {
            Err("must be above 0 and at most 1048576mb")
        }
    })
}

/// A duration above 0 and at most one hour.
pub(crate) const fn span(default: &'static str) -> Param<Nanos> {
    time(default).check(|&span| {
        if 0 < span && span <= 3600 * SECOND {
            Ok(())
        } else {
            Err("must be above 0 and at most 1h")
        }
    })
}
