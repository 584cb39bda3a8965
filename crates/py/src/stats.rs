//! The simulator's statistics of values that were measured elsewhere.

use pyo3::prelude::*;
use sojourn_measure::Histogram;

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
