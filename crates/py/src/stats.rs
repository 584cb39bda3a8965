//! The simulator's statistics, for values from other measurements, and Student's t distribution.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_measure::Histogram;
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// Returns moments, percentiles and histogram of integers in nanoseconds as JSON, computed as in
/// the simulator. `stats` is in seconds; each of `bins` has least and greatest value in
/// nanoseconds, and a count.
#[pyfunction(signature = (values, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn summarize(values: Vec<u64>) -> String {
    let mut histogram = Histogram::new();
    for &value in &values {
        histogram.record(value);
    }
    let summary = sojourn_endpoint::report::Summary::of(&histogram);
    serde_json::to_string(&summary).expect("all keys of a summary are strings")
}

/// Returns the probability that a variable with Student's t distribution with `df` degrees of
/// freedom exceeds `t`.
#[pyfunction(signature = (t, df, /))]
pub(crate) fn t_sf(t: f64, df: f64) -> PyResult<f64> {
    Ok(students_t(df)?.sf(t))
}

/// Returns the value that a variable with Student's t distribution with `df` degrees of freedom
/// exceeds with probability `p`.
#[pyfunction(signature = (p, df, /))]
pub(crate) fn t_isf(p: f64, df: f64) -> PyResult<f64> {
    if !(0.0..=1.0).contains(&p) {
        return Err(PyValueError::new_err(format!("the probability must be 0 to 1, found {p}")));
    }
    let t = upper(&students_t(df)?, p.min(1.0 - p));
    Ok(if p > 0.5 { -t } else { t })
}

/// Returns the value that is exceeded with the probability `p`, which must be at most 0.5.
///
/// Uses Newton's method on the tail, which is convex: from the median, each step goes up and none
/// overshoots. The library's own inverse is inaccurate for many degrees of freedom, and fails far
/// in the tail.
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

/// Maximum number of Newton steps. A probability of 1e-300 with one degree of freedom needs fewer.
const NEWTON_STEPS: u32 = 2000;

fn students_t(df: f64) -> PyResult<StudentsT> {
    StudentsT::new(0.0, 1.0, df).map_err(|_| {
        PyValueError::new_err(format!("the degrees of freedom must be above 0, found {df}"))
    })
}
