//! The simulator's statistics of values that were measured elsewhere, and Student's t distribution.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_measure::Histogram;
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// Moments, percentiles and histogram of whole numbers of nanoseconds, as the simulator works them
/// out, as JSON: `stats` in seconds, `bins` of least and greatest value in nanoseconds and count.
#[pyfunction]
#[pyo3(signature = (values, /))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over a list of its own")]
pub(crate) fn summarize(values: Vec<u64>) -> String {
    let mut histogram = Histogram::new();
    for &value in &values {
        histogram.record(value);
    }
    let summary = sojourn_endpoint::report::Summary::of(&histogram);
    serde_json::to_string(&summary).expect("numbers have no keys that are no texts")
}

/// Returns the probability that Student's t with `df` degrees of freedom is greater than `t`.
#[pyfunction]
#[pyo3(signature = (t, df, /))]
pub(crate) fn t_sf(t: f64, df: f64) -> PyResult<f64> {
    Ok(students_t(df)?.sf(t))
}

/// Returns the value that Student's t with `df` degrees of freedom exceeds with probability `p`.
#[pyfunction]
#[pyo3(signature = (p, df, /))]
pub(crate) fn t_isf(p: f64, df: f64) -> PyResult<f64> {
    if !(0.0..=1.0).contains(&p) {
        return Err(PyValueError::new_err(format!("a probability is from 0 to 1, not {p}")));
    }
    let t = upper(&students_t(df)?, p.min(1.0 - p));
    Ok(if p > 0.5 { -t } else { t })
}

/// Returns the value that is exceeded with a probability of at most a half.
///
/// By Newton's method on the tail, which is convex: from the median each step goes up, and none goes too far. The
/// library's own inverse loses digits where there are many degrees of freedom, and has no far tail.
fn upper(distribution: &StudentsT, p: f64) -> f64 {
    if p == 0.0 {
        return f64::INFINITY;
    }
    let mut t = 0.0;
    for _ in 0..NEWTON_STEPS {
        let step = (distribution.sf(t) - p) / distribution.pdf(t);
        t += step;
        if step <= f64::EPSILON * t {
            break;
        }
    }
    t
}

/// More than a probability of 1e-300 takes with one degree of freedom.
const NEWTON_STEPS: u32 = 2000;

fn students_t(df: f64) -> PyResult<StudentsT> {
    StudentsT::new(0.0, 1.0, df)
        .map_err(|_| PyValueError::new_err(format!("degrees of freedom are above 0, not {df}")))
}
