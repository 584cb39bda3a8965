//! Reading of RED's words that depend on each other.

use super::params::{Averaging, Params};
use crate::device::Device;
use crate::limit::Unit;
use crate::tc::probability_q32;
use sojourn_units::quantity::{format_rate, parse_size};
use sojourn_units::words::{Given, WordError};

impl Params {
    /// Reads the amounts, whose unit must be known, and computes the values that depend on them. A
    /// description with `limit` states all numbers anew.
    pub(super) fn depend(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        let fresh = given.has("limit");
        let amount = |word: &'static str| -> Result<Option<u32>, WordError> {
            let Some(text) = given.text(word) else { return Ok(None) };
            let value = match self.unit {
                Unit::Bytes => parse_size(text).ok().and_then(|v| u32::try_from(v).ok()),
                Unit::Packets => text.strip_suffix('p').unwrap_or(text).parse().ok(),
            };
            value.map(Some).ok_or_else(|| {
                let (kind, example) = match self.unit {
                    Unit::Bytes => ("a size", "30kb"),
                    Unit::Packets => ("a number of packets", "300p"),
                };
                given.error(
                    word,
                    format!("`{word}` needs {kind}, such as {example}; found `{text}`"),
                )
            })
        };
        let (limit, min, max) = (amount("limit")?, amount("min")?, amount("max")?);
        self.limit = limit.unwrap_or(self.limit);
        if self.limit == 0 {
            return Err(given.error("limit", "`red` needs `limit`, such as limit 60kb"));
        }
        if self.nodrop && !self.ecn {
            return Err(given.error(
                "nodrop",
                "`nodrop` has no effect without `ecn`; add `ecn` or remove `nodrop`",
            ));
        }
        // `max_p` keeps `tc`'s rounding unless the kernel lacks the discipline.
        if let Some(p) = given.real("probability")
            && self.kernel_lacks().is_err()
        {
            self.max_p = probability_q32(p);
        }
        let min = min.filter(|&v| v > 0);
        let max = max.filter(|&v| v > 0);
        if fresh {
            self.max =
                max.unwrap_or_else(|| min.map_or(self.limit / 4, |min| min.saturating_mul(3)));
            self.min = min.unwrap_or(self.max / 3);
        } else {
            self.max = max.unwrap_or(self.max);
            self.min = min.unwrap_or(self.min);
        }
        self.set_averaging(given, fresh)?;
        // `tc` does not know the link and assumes 10mbit. A discipline that the kernel lacks uses
        // the rate of the link.
        if let Some(rate) = device.rate
            && fresh
            && !given.has("bandwidth")
            && self.kernel_lacks().is_err()
        {
            self.bandwidth = rate;
        }
        self.check().map_err(|(word, message)| given.error(word, message))
    }

    fn set_averaging(&mut self, given: &Given, fresh: bool) -> Result<(), WordError> {
        if given.has("weight") && given.has("burst") {
            return Err(given.error("weight", "`weight` and `burst` exclude each other"));
        }
        if let Some(weight) = given.real("weight") {
            self.averaging = self.as_burst(weight).unwrap_or(Averaging::Weight(weight));
        } else if let Some(burst) = given.integer("burst") {
            self.averaging = Averaging::Burst(burst as u32);
        } else if fresh && matches!(self.averaging, Averaging::Burst(_)) {
            let sum = 2 * u64::from(self.min) + u64::from(self.max);
            let divisor = match self.unit {
                Unit::Bytes => 3 * u64::from(self.avpkt),
                Unit::Packets => 3,
            };
            self.averaging = Averaging::Burst((sum / divisor) as u32);
        }
        Ok(())
    }

    /// Returns the warnings that `tc` prints, and one about the assumed bandwidth.
    pub(crate) fn assumptions(&self, given: &Given) -> Vec<String> {
        let mut warnings = Vec::new();
        if !given.has("bandwidth") {
            warnings.push(format!(
                "`bandwidth` is not given: {} is assumed",
                format_rate(self.bandwidth)
            ));
        }
        if let (Averaging::Burst(burst), Ok(options)) = (self.averaging, self.options())
            && options.wlog >= 10
        {
            warnings.push(format!("`burst` {burst} may be too large"));
        }
        warnings
    }
}
