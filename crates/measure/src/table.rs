//! Tables of a run's record: named, typed columns with units.

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Real numbers; NaN if a value was not measured.
    Real(Vec<f64>),
    /// Integers.
    Integer(Vec<i64>),
    /// Texts.
    Text(Vec<String>),
    /// Truth values.
    Bool(Vec<bool>),
}

impl Values {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Real(v) => v.len(),
            Self::Integer(v) => v.len(),
            Self::Text(v) => v.len(),
            Self::Bool(v) => v.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column, as in the reference of metrics.
    pub name: String,
    /// Unit (`s`, `bit/s`, `B`, `1`); empty for texts.
    pub unit: &'static str,
    /// Values of all rows.
    pub values: Values,
}

/// A table of a record. All columns have the same number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Columns of the table, in their order.
    pub columns: Vec<Column>,
}

impl Table {
    /// Appends a column.
    ///
    /// # Panics
    /// Panics if the column's length differs from that of the existing columns, or its name exists
    /// already.
    pub fn push(&mut self, name: impl Into<String>, unit: &'static str, values: Values) {
        let name = name.into();
        if let Some(first) = self.columns.first() {
            assert_eq!(
                first.values.len(),
                values.len(),
                "the column {name} must have as many rows as the others"
            );
        }
        assert!(self.column(&name).is_none(), "the table already has a column {name}");
        self.columns.push(Column { name, unit, values });
    }

    /// Returns the column with this name; `None` if there is no such column.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }
}
