//! Every metric: its name, unit and definition, once. Docs, report and `explain` are made from this.

use serde::Serialize;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its name: a column's name, without the group or link before the point.
    pub name: &'static str,
    /// Its unit: `s`, `bit/s`, `B`, `1`; empty for texts.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub definition: &'static str,
}

/// All metrics.
pub const METRICS: &[Metric] = &[];

/// The metric that a column shows: what follows the last point of its name.
pub fn of_column(column: &str) -> Option<&'static Metric> {
    let name = column.rsplit('.').next()?;
    METRICS.iter().find(|m| m.name == name)
}
