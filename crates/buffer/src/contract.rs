//! The contract between a buffer and its policy, and what a policy declares.

use crate::observation::{Decision, GREATEST, Observation, Reason};
use sojourn_units::declare::{Param, Parameters, size, time};
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Given, Table, Text, WordError};
use sojourn_units::{Bytes, Nanos, SECOND};

/// A policy for the size of a receive buffer.
pub trait Sizing {
    /// How large the buffer is to be. Time or counters that go back count as standing still.
    fn observe(&mut self, seen: &Observation) -> Decision;

    /// What the policy remembers, for traces and views: name and value, sizes in bytes.
    fn state(&self, _visit: &mut dyn FnMut(&str, f64)) {}
}

/// The parameters of a policy, and what the family needs to know of it.
pub trait PolicyParams: Parameters<On = ()> + Default {
    /// Its name and words.
    const TABLE: Table;

    /// The policy.
    type Policy: Sizing;

    /// The policy of a buffer that begins.
    fn build(&self) -> Self::Policy;

    /// Sizes of which none may be above the next, by their words: least, first and greatest size among
    /// them.
    fn sizes(&self) -> Vec<(&'static str, Bytes)>;

    /// Size of a buffer that begins.
    fn initial(&self) -> Bytes {
        self.bounds().0
    }

    /// Least and greatest size.
    fn bounds(&self) -> (Bytes, Bytes) {
        let sizes = self.sizes();
        (sizes[0].1, sizes[sizes.len() - 1].1)
    }

    /// The size that a buffer, which has `size` for `reason`, could have at once if it were asked for.
    fn potential(&self, size: Bytes, _reason: Reason) -> Bytes {
        size
    }

    /// Takes over the values that are given.
    ///
    /// # Errors
    /// A value that is not allowed, or values that contradict each other.
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

    /// The description that reads back as these parameters.
    fn text(&self) -> String {
        self.write(Text::new(Self::TABLE.name)).done()
    }
}

/// `size` within `floor` and `ceiling`, and not below what is occupied.
#[inline]
pub(crate) fn within(size: Bytes, floor: Bytes, ceiling: Bytes, occupied: Bytes) -> Bytes {
    size.min(ceiling).max(floor).max(occupied)
}

/// A size of a buffer: 1 byte to [`GREATEST`].
pub(crate) const fn bytes(default: &'static str) -> Param<Bytes> {
    size(default).check(|&size| {
        if 0 < size && size <= GREATEST { Ok(()) } else { Err("must be above 0, up to 1048576mb") }
    })
}

/// A span of time above 0, up to an hour.
pub(crate) const fn span(default: &'static str) -> Param<Nanos> {
    time(default).check(|&span| {
        if 0 < span && span <= 3600 * SECOND { Ok(()) } else { Err("must be above 0, up to 1h") }
    })
}
