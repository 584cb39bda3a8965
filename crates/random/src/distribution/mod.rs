//! Probability distributions for users to choose, and their samplers.
//!
//! Every sampler inverts the distribution function and uses one uniform draw per sample; `const`
//! uses none. Therefore streams of distributions other than `const` stay aligned, and increasing
//! only a distribution's mean, median or scale never makes a sample smaller.

use crate::{Stream, normal};
use sojourn_units::words::{WordError, nearest};
use sojourn_units::{Nanos, data, quantity};

/// Unit of a distribution's values, which determines the text form of its arguments.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Number without a unit.
    Number,
    /// Time in nanoseconds, written with its unit.
    Time,
    /// Size in bytes, written with or without a unit.
    Size,
}

/// A distribution of real numbers. Times are in nanoseconds, sizes in bytes.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "snake_case", tag = "distribution", deny_unknown_fields)]
pub enum Distribution {
    /// Constant value.
    Const {
        /// The value.
        value: f64,
    },
    /// Uniform distribution between two bounds.
    Uniform {
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// Exponential distribution.
    #[serde(rename = "exp")]
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Normal distribution.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// Log-normal distribution.
    #[serde(rename = "lognormal")]
    LogNormal {
        /// Median, which is the exponential of the logarithm's mean.
        median: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// Pareto distribution, given by its mean as in ns-2. Its least value is mean (shape - 1) /
    /// shape.
    Pareto {
        /// Mean.
        mean: f64,
        /// Shape, above 1. The variance is infinite for a shape of up to 2.
        shape: f64,
    },
    /// Lomax distribution, which is ns-2's `ParetoII`: a Pareto variable minus its least value.
    #[serde(rename = "pareto2")]
    Lomax {
        /// Mean.
        mean: f64,
        /// Shape, above 1. The variance is infinite for a shape of up to 2.
        shape: f64,
    },
    /// Pareto distribution limited to an interval.
    #[serde(rename = "bpareto")]
    BoundedPareto {
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
        /// Shape.
        shape: f64,
    },
    /// Weibull distribution.
    Weibull {
        /// Scale, which 63.2 % of the values do not exceed.
        scale: f64,
        /// Shape. With 1 the distribution is exponential; below 1 its tail is heavier.
        shape: f64,
    },
    /// Geometric distribution: number of trials up to and including the first success, at least 1.
    Geometric {
        /// Probability of success, above 0 and at most 1.
        p: f64,
    },
}

/// Name of a distribution, and its arguments: for each its name, and whether it is written with the
/// [`Unit`] of the values.
type Form = (&'static str, &'static [(&'static str, bool)]);

const FORMS: &[Form] = &[
    ("const", &[("value", true)]),
    ("uniform", &[("min", true), ("max", true)]),
    ("exp", &[("mean", true)]),
    ("normal", &[("mean", true), ("deviation", true)]),
    ("lognormal", &[("median", true), ("sigma", false)]),
    ("pareto", &[("mean", true), ("shape", false)]),
    ("pareto2", &[("mean", true), ("shape", false)]),
    ("bpareto", &[("min", true), ("max", true), ("shape", false)]),
    ("weibull", &[("scale", true), ("shape", false)]),
    ("geometric", &[("p", false)]),
];

impl Distribution {
    /// Returns a constant distribution.
    pub fn constant(value: f64) -> Self {
        Self::Const { value }
    }

    /// Draws a value.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> f64 {
        if let Self::Const { value } = *self {
            return value;
        }
        self.exceeded_with(stream.uniform())
    }

    /// Draws a duration in nanoseconds: a sample rounded to the nearest integer, or 0 for a
    /// negative sample.
    #[inline]
    pub fn sample_nanos(&self, stream: &mut Stream) -> Nanos {
        // The cast turns negative values into 0. A heavy tail may give extremely long durations.
        // They are limited to 146 years, so that they can be added to a time without overflow.
        (libm::round(self.sample(stream)) as Nanos).min(1 << 62)
    }

    /// Draws a count or a size: a sample rounded up, and at least 1.
    pub fn sample_count(&self, stream: &mut Stream) -> u64 {
        (libm::ceil(self.sample(stream)) as u64).max(1)
    }

    /// Returns the value that a sample exceeds with probability `u`, for 0 < u < 1. Samples are
    /// drawn with this function instead of [`Distribution::quantile`], since floating-point numbers
    /// are denser near 0 than near 1 and the tails are at large values.
    pub fn exceeded_with(&self, u: f64) -> f64 {
        match *self {
            Self::Const { value } => value,
            Self::Uniform { min, max } => max - (max - min) * u,
            Self::Exponential { mean } => -mean * libm::log(u),
            Self::Normal { mean, deviation } => mean - deviation * normal::quantile(u),
            Self::LogNormal { median, sigma } => median * libm::exp(-sigma * normal::quantile(u)),
            Self::Pareto { mean, shape } => {
                mean * (shape - 1.0) / shape * libm::pow(u, -1.0 / shape)
            }
            Self::Lomax { mean, shape } => {
                mean * (shape - 1.0) * (libm::pow(u, -1.0 / shape) - 1.0)
            }
            Self::BoundedPareto { min, max, shape } => {
                let least = libm::pow(min / max, shape);
                (min * libm::pow(u * (1.0 - least) + least, -1.0 / shape)).clamp(min, max)
            }
            Self::Weibull { scale, shape } => scale * libm::pow(-libm::log(u), 1.0 / shape),
            Self::Geometric { p } => {
                if p >= 1.0 {
                    1.0
                } else {
                    libm::ceil(libm::log(u) / libm::log1p(-p)).max(1.0)
                }
            }
        }
    }

    /// Returns the `p`-quantile, for 0 < p < 1.
    pub fn quantile(&self, p: f64) -> f64 {
        self.exceeded_with(1.0 - p)
    }

    /// Returns the probability that a value does not exceed `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        let above = |low: f64, tail: f64| if x < low { 0.0 } else { 1.0 - tail };
        match *self {
            Self::Const { value } => f64::from(u8::from(x >= value)),
            Self::Uniform { min, max } if max > min => ((x - min) / (max - min)).clamp(0.0, 1.0),
            Self::Uniform { min, .. } => f64::from(u8::from(x >= min)),
            Self::Exponential { mean } => above(0.0, libm::exp(-x / mean)),
            Self::Normal { mean, deviation } => normal::cdf((x - mean) / deviation),
            Self::LogNormal { .. } if x <= 0.0 => 0.0,
            Self::LogNormal { median, sigma } => normal::cdf(libm::log(x / median) / sigma),
            Self::Pareto { mean, shape } => {
                let least = mean * (shape - 1.0) / shape;
                above(least, libm::pow(least / x, shape))
            }
            Self::Lomax { mean, shape } => {
                above(0.0, libm::pow(1.0 + x / (mean * (shape - 1.0)), -shape))
            }
            Self::BoundedPareto { max, .. } if x >= max => 1.0,
            Self::BoundedPareto { min, max, shape } => {
                let least = libm::pow(min / max, shape);
                above(min, (libm::pow(min / x, shape) - least) / (1.0 - least))
            }
            Self::Weibull { scale, shape } => {
                above(0.0, libm::exp(-libm::pow(x.max(0.0) / scale, shape)))
            }
            Self::Geometric { p } => above(1.0, libm::pow(1.0 - p, libm::floor(x))),
        }
    }

    /// Returns the mean of the distribution.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Const { value } => value,
            Self::Uniform { min, max } => f64::midpoint(min, max),
            Self::Exponential { mean }
            | Self::Normal { mean, .. }
            | Self::Pareto { mean, .. }
            | Self::Lomax { mean, .. } => mean,
            Self::LogNormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
            Self::BoundedPareto { min, max, shape } => {
                let ratio = min / max;
                let mass = 1.0 - libm::pow(ratio, shape);
                if (shape - 1.0).abs() < 1e-9 {
                    min * libm::log(1.0 / ratio) / mass
                } else {
                    shape * min * (1.0 - libm::pow(ratio, shape - 1.0)) / ((shape - 1.0) * mass)
                }
            }
            Self::Weibull { scale, shape } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Self::Geometric { p } => 1.0 / p,
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// If a parameter is not finite or not in its range.
    pub fn check(&self) -> Result<(), String> {
        let (_, arguments) = self.parts();
        if arguments.iter().any(|a| !a.is_finite()) {
            return Err("the distribution's numbers must be finite".to_owned());
        }
        let ok = match *self {
            Self::Const { .. } => true,
            Self::Uniform { min, max } => {
                min <= max || {
                    return Err("the minimum must not be above the maximum".to_owned());
                }
            }
            Self::Exponential { mean } => mean > 0.0,
            Self::Normal { deviation, .. } => deviation > 0.0,
            Self::LogNormal { median, sigma } => median > 0.0 && sigma > 0.0,
            Self::Pareto { mean, shape } | Self::Lomax { mean, shape } => {
                if shape <= 1.0 {
                    return Err("the shape must be above 1, since otherwise the mean is infinite"
                        .to_owned());
                }
                mean > 0.0
            }
            Self::BoundedPareto { min, max, shape } => {
                if min >= max {
                    return Err("the minimum must be below the maximum".to_owned());
                }
                min > 0.0 && shape > 0.0
            }
            Self::Weibull { scale, shape } => scale > 0.0 && shape > 0.0,
            Self::Geometric { p } => {
                if !(p > 0.0 && p <= 1.0) {
                    return Err("the probability must be above 0 and at most 1".to_owned());
                }
                true
            }
        };
        if ok { Ok(()) } else { Err("the distribution's numbers must be above 0".to_owned()) }
    }

    /// Returns the distribution's index in [`FORMS`], and its arguments in the order given there.
    fn parts(&self) -> (usize, Vec<f64>) {
        match *self {
            Self::Const { value } => (0, vec![value]),
            Self::Uniform { min, max } => (1, vec![min, max]),
            Self::Exponential { mean } => (2, vec![mean]),
            Self::Normal { mean, deviation } => (3, vec![mean, deviation]),
            Self::LogNormal { median, sigma } => (4, vec![median, sigma]),
            Self::Pareto { mean, shape } => (5, vec![mean, shape]),
            Self::Lomax { mean, shape } => (6, vec![mean, shape]),
            Self::BoundedPareto { min, max, shape } => (7, vec![min, max, shape]),
            Self::Weibull { scale, shape } => (8, vec![scale, shape]),
            Self::Geometric { p } => (9, vec![p]),
        }
    }

    fn from_parts(form: usize, a: &[f64]) -> Self {
        match form {
            0 => Self::Const { value: a[0] },
            1 => Self::Uniform { min: a[0], max: a[1] },
            2 => Self::Exponential { mean: a[0] },
            3 => Self::Normal { mean: a[0], deviation: a[1] },
            4 => Self::LogNormal { median: a[0], sigma: a[1] },
            5 => Self::Pareto { mean: a[0], shape: a[1] },
            6 => Self::Lomax { mean: a[0], shape: a[1] },
            7 => Self::BoundedPareto { min: a[0], max: a[1], shape: a[2] },
            8 => Self::Weibull { scale: a[0], shape: a[1] },
            _ => Self::Geometric { p: a[0] },
        }
    }

    /// Returns a text that [`Distribution::parse`] parses to this value. Times are rounded to
    /// nanoseconds.
    pub fn format(&self, unit: Unit) -> String {
        let (form, arguments) = self.parts();
        let (name, parameters) = FORMS[form];
        let texts: Vec<String> = arguments
            .iter()
            .zip(parameters)
            .map(|(&value, &(_, in_unit))| match unit {
                Unit::Time if in_unit => quantity::format_time(libm::round(value) as u64),
                _ => format!("{value}"),
            })
            .collect();
        format!("{name}({})", texts.join(","))
    }

    /// Parses a distribution such as `exp(15s)` or `pareto2(12,1.2)`, or a value, which is a
    /// constant.
    ///
    /// # Errors
    /// If the name is unknown, the number of arguments is wrong, or an argument is out of range or
    /// cannot be read in `unit`.
    pub fn parse(text: &str, unit: Unit) -> Result<Self, WordError> {
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
            return Ok(Self::Const { value: argument(text, ("", true), unit)? });
        }
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let Some(form) = FORMS.iter().position(|(known, _)| *known == name) else {
            let names: Vec<String> = FORMS.iter().map(|(known, _)| (*known).to_owned()).collect();
            let near = nearest(name, FORMS.iter().map(|(known, _)| *known)).map(str::to_owned);
            let list = names.join(", ");
            let tail = if near.is_some() { String::new() } else { format!("; known: {list}") };
            return Err(WordError {
                message: format!("unknown distribution `{name}`{tail}"),
                at: 0..name.len(),
                found: name.to_owned(),
                allowed: names,
                nearest: near,
            });
        };
        let shape_error = |why: &str| WordError {
            message: format!("{why}; write {}, without spaces", form_text(&FORMS[form])),
            at: 0..text.len(),
            found: text.to_owned(),
            allowed: vec![form_text(&FORMS[form])],
            nearest: None,
        };
        let Some(inside) = rest.strip_suffix(')') else {
            return Err(shape_error(&format!("`{text}` needs its arguments in parentheses")));
        };
        let texts: Vec<&str> = inside.split(',').collect();
        let parameters = FORMS[form].1;
        if texts.len() != parameters.len() {
            return Err(shape_error(&format!(
                "`{name}` takes {} argument{}, found {}",
                parameters.len(),
                if parameters.len() == 1 { "" } else { "s" },
                if inside.is_empty() { 0 } else { texts.len() },
            )));
        }
        let mut values = Vec::with_capacity(texts.len());
        for (text, parameter) in texts.into_iter().zip(parameters) {
            values.push(argument(text, *parameter, unit)?);
        }
        let result = Self::from_parts(form, &values);
        result.check().map_err(|why| shape_error(&format!("`{text}`: {why}")))?;
        Ok(result)
    }
}

fn form_text((name, parameters): &Form) -> String {
    let names: Vec<&str> = parameters.iter().map(|(parameter, _)| *parameter).collect();
    format!("{name}({})", names.join(","))
}

fn argument(
    text: &str,
    (name, in_unit): (&'static str, bool),
    unit: Unit,
) -> Result<f64, WordError> {
    let (value, what, example) = match unit {
        Unit::Time if in_unit => {
            (quantity::parse_time(text).ok().map(|t| t as f64), "a time with its unit", "15s")
        }
        Unit::Size if in_unit => (
            plain_number(text).or_else(|| quantity::parse_size(text).ok().map(|s| s as f64)),
            "a size",
            "30kb",
        ),
        _ => (plain_number(text), "a number", "1.2"),
    };
    // For a value alone there is no argument name.
    let place = if name.is_empty() { String::new() } else { format!("`{name}` ") };
    value.ok_or_else(|| WordError {
        message: format!("{place}needs {what}, such as {example}; found `{text}`"),
        at: 0..text.len(),
        found: text.to_owned(),
        allowed: vec![example.to_owned()],
        nearest: None,
    })
}

/// Parses a decimal number, which may be negative. Rejects the other forms that `f64` accepts, such
/// as `1e3`.
fn plain_number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-');
    text.parse().ok().filter(|value: &f64| plain && value.is_finite())
}

#[cfg(test)]
mod tests;
