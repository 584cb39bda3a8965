//! Rows of named values, and the tables made of them.

use sojourn_measure::{Histogram, Table, Values, metrics};
use sojourn_units::SECOND;

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A real number.
    Real(f64),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(String),
}

/// A row: metrics with their values. All rows of a table have the same metrics in the same order.
#[derive(Clone, Debug, Default)]
pub struct Row(pub Vec<(&'static str, Cell)>);

impl Row {
    /// Appends a real number.
    pub fn real(&mut self, name: &'static str, value: f64) {
        self.0.push((name, Cell::Real(value)));
    }

    /// Appends a whole number.
    pub fn integer(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Cell::Integer(value as i64)));
    }

    /// Appends a text.
    pub fn text(&mut self, name: &'static str, value: &str) {
        self.0.push((name, Cell::Text(value.to_owned())));
    }

    /// Appends quantiles, in seconds, of a histogram of times in nanoseconds.
    pub fn quantiles(&mut self, of: &Histogram, names: &[(&'static str, f64)]) {
        for &(name, q) in names {
            self.real(name, of.quantile(q) / SECOND as f64);
        }
    }
}

/// Returns the unit of a metric, which must be registered.
fn unit(name: &str) -> &'static str {
    metrics::of_column(name).unwrap_or_else(|| panic!("metric {name} is not registered")).unit
}

/// Returns a table of these rows.
pub fn table(rows: Vec<Row>) -> Table {
    let mut table = Table::default();
    let Some(first) = rows.first() else { return table };
    let names: Vec<_> = first.0.iter().map(|(name, _)| *name).collect();
    let mut columns: Vec<Values> = first
        .0
        .iter()
        .map(|(_, cell)| match cell {
            Cell::Real(_) => Values::Real(Vec::with_capacity(rows.len())),
            Cell::Integer(_) => Values::Integer(Vec::with_capacity(rows.len())),
            Cell::Text(_) => Values::Text(Vec::with_capacity(rows.len())),
        })
        .collect();
    for row in rows {
        assert_eq!(row.0.len(), names.len(), "rows of one table differ in length");
        for ((column, name), (metric, cell)) in columns.iter_mut().zip(&names).zip(row.0) {
            assert_eq!(metric, *name, "rows of one table differ in order");
            match (column, cell) {
                (Values::Real(v), Cell::Real(x)) => v.push(x),
                (Values::Integer(v), Cell::Integer(x)) => v.push(x),
                (Values::Text(v), Cell::Text(x)) => v.push(x),
                _ => panic!("metric {name} changes its type"),
            }
        }
    }
    for (name, values) in names.into_iter().zip(columns) {
        table.push(name, unit(name), values);
    }
    table
}

/// Appends each value of a row as a column called `<prefix>.<metric>`, or `<metric>` without a
/// prefix.
pub fn append(table: &mut Table, prefix: Option<&str>, row: Row) {
    for (metric, cell) in row.0 {
        let values = match cell {
            Cell::Real(x) => Values::Real(vec![x]),
            Cell::Integer(x) => Values::Integer(vec![x]),
            Cell::Text(x) => Values::Text(vec![x]),
        };
        let name = prefix.map_or_else(|| metric.to_owned(), |p| format!("{p}.{metric}"));
        table.push(name, unit(metric), values);
    }
}
