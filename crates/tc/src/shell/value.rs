//! Variables of a script, and where their values come from.

use std::collections::BTreeMap;

/// Largest number of characters of a value or output.
pub(crate) const LENGTH: usize = 1 << 20;
/// Placeholder for an unknown part of a text.
pub(super) const UNKNOWN: &str = "?";

/// The variables and outputs of unknown value from which a text was made, in the order of their use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Origins {
    /// Names of variables without a value.
    pub missing: Vec<String>,
    /// Commands whose output is unknown.
    pub unknown: Vec<String>,
}

impl Origins {
    pub fn add(&mut self, other: &Self) {
        for (own, others) in
            [(&mut self.missing, &other.missing), (&mut self.unknown, &other.unknown)]
        {
            for name in others {
                if !own.contains(name) {
                    own.push(name.clone());
                }
            }
        }
    }
}

/// A text and its origins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Value {
    pub text: String,
    pub origins: Origins,
}

impl Value {
    pub fn new(text: impl Into<String>, origins: Origins) -> Self {
        Self { text: text.into(), origins }
    }

    pub fn of(text: impl Into<String>) -> Self {
        Self::new(text, Origins::default())
    }

    fn missing(name: &str) -> Self {
        let missing = vec![name.to_owned()];
        Self::new("", Origins { missing, ..Origins::default() })
    }
}

/// The elements of an array with their indices; a variable that is no array has the element 0.
type Elements = Vec<(String, Value)>;

fn single(value: Value) -> Elements {
    vec![("0".to_owned(), value)]
}

/// Variables by name. A value that the user gives overrides the script's, as on `make`'s command
/// line.
#[derive(Debug)]
pub(super) struct Variables {
    pub given: BTreeMap<String, String>,
    values: BTreeMap<String, Elements>,
    pub positional: Vec<Value>,
    scopes: Vec<BTreeMap<String, Option<Elements>>>,
    pub status: i64,
    /// Names of used variables without a value, in the order of their first use.
    pub asked: Vec<String>,
}

/// State of the variables before a subshell.
pub(super) type Saved = (BTreeMap<String, Elements>, Vec<Value>);

impl Variables {
    pub fn new(given: &BTreeMap<String, String>) -> Self {
        let number = |name: &String| name.parse::<usize>().ok().filter(|n| (1..1000).contains(n));
        let last = given.keys().filter_map(number).max().unwrap_or(0);
        let positional = |n: usize| match given.get(&n.to_string()) {
            Some(text) => Value::of(text.clone()),
            None => Value::missing(&n.to_string()),
        };
        Self {
            given: given.clone(),
            values: given
                .iter()
                .map(|(name, text)| (name.clone(), single(Value::of(text.clone()))))
                .collect(),
            positional: (1..=last).map(positional).collect(),
            scopes: Vec::new(),
            status: 0,
            asked: Vec::new(),
        }
    }

    /// Returns the value of a variable or parameter; `None` if it has none.
    pub fn get(&self, name: &str) -> Option<Value> {
        if let Ok(number) = name.parse::<usize>() {
            if number == 0 {
                return Some(Value::of("sh"));
            }
            let found = self.positional.get(number - 1)?;
            return (*found != Value::missing(name)).then(|| found.clone());
        }
        match name {
            "?" => Some(Value::of(self.status.to_string())),
            "#" => Some(Value::of(self.positional.len().to_string())),
            "$" | "!" => Some(Value::of("1")),
            "-" => Some(Value::default()),
            // Scripts that set up queues run as root.
            "UID" | "EUID" => Some(Value::of("0")),
            "@" | "*" => {
                let mut joined = Value::default();
                for (n, value) in self.positional.iter().enumerate() {
                    joined.text += if n == 0 { "" } else { " " };
                    joined.text += &value.text;
                    joined.origins.add(&value.origins);
                }
                Some(joined)
            }
            _ => self.element(name, "0"),
        }
    }

    /// Returns an element of an array.
    pub fn element(&self, name: &str, index: &str) -> Option<Value> {
        let mut elements = self.values.get(name)?.iter();
        elements.find(|(key, _)| key == index).map(|(_, value)| value.clone())
    }

    /// Returns the elements of an array with their indices.
    pub fn elements(&self, name: &str) -> Elements {
        self.values.get(name).cloned().unwrap_or_default()
    }

    /// Returns the value of a variable. A variable without a value is recorded in `asked`, and is
    /// empty.
    pub fn need(&mut self, name: &str) -> Value {
        self.get(name).unwrap_or_else(|| {
            if !self.asked.iter().any(|asked| asked == name) {
                self.asked.push(name.to_owned());
            }
            Value::missing(name)
        })
    }

    /// Sets a variable, unless the user gave its value; of an array, it sets the element 0.
    pub fn put(&mut self, name: &str, value: Value) {
        self.put_element(name, "0", value);
    }

    /// Sets the elements of an array, which are in the order of their indices.
    pub fn put_array(&mut self, name: &str, mut elements: Elements) {
        if !self.given.contains_key(name) {
            elements.sort_by_key(|(index, _)| index.parse::<u64>().ok());
            self.values.insert(name.to_owned(), elements);
        }
    }

    /// Sets an element of an array.
    pub fn put_element(&mut self, name: &str, index: &str, value: Value) {
        let mut elements = self.elements(name);
        match elements.iter_mut().find(|(key, _)| key == index) {
            Some((_, old)) => *old = value,
            None => elements.push((index.to_owned(), value)),
        }
        self.put_array(name, elements);
    }

    pub fn unset(&mut self, name: &str) {
        if !self.given.contains_key(name) {
            self.values.remove(name);
        }
    }

    /// Makes a variable local to the function that is called.
    pub fn local(&mut self, name: &str) {
        if self.given.contains_key(name) {
            return;
        }
        if let Some(scope) = self.scopes.last_mut()
            && !scope.contains_key(name)
        {
            scope.insert(name.to_owned(), self.values.remove(name));
        }
    }

    /// Begins the call of a function; returns the parameters of the caller.
    pub fn begin_call(&mut self, arguments: Vec<Value>) -> Vec<Value> {
        self.scopes.push(BTreeMap::new());
        std::mem::replace(&mut self.positional, arguments)
    }

    pub fn end_call(&mut self, outer: Vec<Value>) {
        self.positional = outer;
        for (name, old) in self.scopes.pop().unwrap_or_default() {
            match old {
                Some(old) => self.values.insert(name, old),
                None => self.values.remove(&name),
            };
        }
    }

    pub fn save(&self) -> Saved {
        (self.values.clone(), self.positional.clone())
    }

    pub fn restore(&mut self, (values, positional): Saved) {
        (self.values, self.positional) = (values, positional);
    }
}
