//! The tables that a run's record consists of: named, typed columns with units.

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Real numbers; NaN stands for "not measured".
    Real(Vec<f64>),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Texts.
    Text(Vec<String>),
    /// Truth values.
    Bool(Vec<bool>),
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Real(v) => v.len(),
            Self::Integer(v) => v.len(),
            Self::Text(v) => v.len(),
            Self::Bool(v) => v.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, as in the metrics reference.
    pub name: String,
    /// Its unit (`s`, `bit/s`, `B`, `1`), empty for texts.
    pub unit: &'static str,
    /// Its values.
    pub values: Values,
}

/// One table of a record; all columns have the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<Column>,
}

impl Table {
    /// Appends a column.
    ///
    /// # Panics
    /// If its length differs from the columns' already there, or its name is taken.
    pub fn push(&mut self, name: impl Into<String>, unit: &'static str, values: Values) {
        let name = name.into();
        if let Some(first) = self.columns.first() {
            assert_eq!(first.values.len(), values.len(), "column {name}: length");
        }
        assert!(self.column(&name).is_none(), "column {name} is there already");
        self.columns.push(Column { name, unit, values });
    }

    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }
}
