//! Contract between a receive buffer and its policy, and declarations of policies.

use crate::observation::{Decision, GREATEST, Observation, Reason};
use sojourn_units::declare::{Param, Parameters, size, time};
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Given, Table, Text, WordError};
use sojourn_units::{Bytes, Nanos, SECOND};

/// Policy for the size of a receive buffer.
pub trait Sizing {
    /// Returns the size of the buffer from now on. If time or counters go back, they count as
    /// unchanged.
    fn observe(&mut self, seen: &Observation) -> Decision;

    /// Visits the policy's state for traces and views: names and values, sizes in bytes.
    fn state(&self, _visit: &mut dyn FnMut(&str, f64)) {}
}

/// Parameters of a policy, and what the family needs from them.
pub trait PolicyParams: Parameters<On = ()> + Default {
    /// Name and words of the policy.
    const TABLE: Table;

    /// The policy.
    type Policy: Sizing;

    /// Returns the policy of a new buffer.
    fn build(&self) -> Self::Policy;

    /// Returns sizes in ascending order with their words; the least, initial and greatest size are
    /// among them.
    fn sizes(&self) -> Vec<(&'static str, Bytes)>;

    /// Returns the initial size of a buffer in bytes.
    fn initial(&self) -> Bytes {
        self.bounds().0
    }

    /// Returns the least and the greatest size in bytes.
    fn bounds(&self) -> (Bytes, Bytes) {
        let sizes = self.sizes();
        (sizes[0].1, sizes[sizes.len() - 1].1)
    }

    /// Returns the size in bytes that a buffer of `size`, held for `reason`, could have at once.
    fn potential(&self, size: Bytes, _reason: Reason) -> Bytes {
        size
    }

    /// Adopts the given values.
    ///
    /// # Errors
    /// A value outside its range, or values that contradict each other.
    fn read(&mut self, given: &Given) -> Result<(), WordError> {
        self.set(given)?;
        for pair in self.sizes().windows(2) {
            let ((low, least), (high, greatest)) = (pair[0], pair[1]);
            if least > greatest {
                let word = if given.has(low) { low } else { high };
                let (least, greatest) = (format_size(least), format_size(greatest));
                let message = format!("`{low}` ({least}) is above `{high}` ({greatest})");
                return Err(given.error(word, message));
            }
        }
        Ok(())
    }

    /// Returns a description that parses to these parameters.
    fn text(&self) -> String {
        self.write(Text::new(Self::TABLE.name)).done()
    }
}

/// Returns `size` limited to `floor` and `ceiling`, but not below the occupied size.
#[inline]
pub(crate) fn within(size: Bytes, floor: Bytes, ceiling: Bytes, occupied: Bytes) -> Bytes {
    size.min(ceiling).max(floor).max(occupied)
}

/// Size of a buffer: 1 byte to [`GREATEST`].
pub(crate) const fn bytes(default: &'static str) -> Param<Bytes> {
    size(default).check(|&size| {
        if 0 < size && size <= GREATEST { Ok(()) } else { Err("must be above 0, up to 1048576mb") }
    })
}

/// Duration above 0, at most an hour.
pub(crate) const fn span(default: &'static str) -> Param<Nanos> {
    time(default).check(|&span| {
        if 0 < span && span <= 3600 * SECOND { Ok(()) } else { Err("must be above 0, up to 1h") }
    })
}
