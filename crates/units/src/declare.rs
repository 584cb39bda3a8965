//! Declarations of parameters: the macro [`params!`](crate::params) and its helpers.
//!
//! A declaration has the form of the structure that it creates. Each field has its documentation,
//! its type, and after `=` a [`Param`], which states the parameter's text form and default.
//!
//! ```
//! use sojourn_units::declare::{Parameters, derived, integer, switch, time};
//! use sojourn_units::words::{self, Text};
//! use sojourn_units::{Nanos, params};
//!
//! params! {
//!     "example": "an example",
//!     from "ours";
//!
//!     /// Parameters of an example.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Params {
//!         /// Acceptable standing queue delay.
//!         target: Nanos = time("5ms").above_zero(),
//!         /// Number of buckets.
//!         buckets as "flows": u32 = integer(1, 65_536, "1024"),
//!         /// Marks packets instead of dropping them.
//!         ecn: bool = switch("noecn", "ecn"),
//!         /// Version of the rules.
//!         version: u8 = derived(|()| 1),
//!     }
//! }
//!
//! let (_, given) = words::describe("queue", &[&Params::TABLE], "example flows 8 noecn").unwrap();
//! let mut params = Params::default();
//! assert_eq!((params.target, params.buckets, params.ecn), (5_000_000, 1024, true));
//! params.set(&given).unwrap();
//! assert_eq!(params.write(Text::new("example")).done(), "example target 5ms flows 8 noecn");
//! ```
//!
//! A component's declaration begins with its name, its summary and its source, from which its
//! [`TABLE`](Parameters::TABLE) is made; with an empty summary, descriptions cannot name it.
//!
//! One declaration defines the field, the word of the text form, and the documentation of both; the
//! word has the field's name unless `as` gives another. It also defines the default, which is
//! parsed from its text form, and the allowed range. The JSON form is serde's: derive it, and write
//! `#[serde(...)]` on a field after its documentation.
//!
//! - If a default depends on something, such as a queue's device, write
//!   `pub struct Params on Device { ... }` and [`Param::initially`]; the text then documents the
//!   usual value.
//! - A field without a word is [`derived`].
//! - A field that is itself a structure of parameters is a [`part`]: its words become words of the
//!   whole.
//! - A user-defined type needs [`Param::word`], or [`choices!`](crate::choices) if it is a list of
//!   names.
//! - Words without a field follow the structure, `} also &[Word { ... }]`, or are a constant before
//!   its fields, `struct Params after PRESET {`. The component reads them itself, after or instead
//!   of [`Parameters::set`].

use crate::quantity::{self, Bytes, Rate};
use crate::time::Nanos;
use crate::words::{self, Given, Kind, Table, Text, Token, Value, Word, WordError};
use std::fmt::Display;

/// A structure of parameters, declared by [`params!`](crate::params).
pub trait Parameters: Sized + 'static {
    /// Type of the object on which defaults depend, such as a queue's device; `()` if they are
    /// constant.
    type On: 'static;

    /// Words of the text form.
    const WORDS: &'static [Word];

    /// Name, summary, source and words of the component; without a name if the structure is a part
    /// of a component.
    const TABLE: Table = Table { name: "", summary: "", source: "", words: Self::WORDS };

    /// Returns the parameters with their defaults.
    fn new(on: &Self::On) -> Self;

    /// Replaces the values of those words that were given.
    ///
    /// # Errors
    /// If a value is not allowed.
    fn set(&mut self, given: &Given) -> Result<(), WordError>;

    /// Appends the words for these values to a description.
    #[must_use]
    fn write(&self, text: Text) -> Text;
}

/// Declaration of one parameter: text form, default and allowed values.
#[derive(Debug)]
pub struct Param<T: 'static, On: 'static = ()> {
    name: &'static str,
    doc: &'static str,
    how: How<T, On>,
}

#[derive(Debug)]
enum How<T: 'static, On: 'static> {
    Word(Single<T, On>),
    Part(Part<T, On>),
}

#[derive(Debug)]
struct Single<T: 'static, On: 'static> {
    kind: Kind,
    default: &'static str,
    from: From<T>,
    to: fn(&T) -> Option<Value>,
    check: fn(&T) -> Result<(), &'static str>,
    adjust: fn(T) -> T,
    initially: Option<fn(&On) -> T>,
}

/// Conversion of a parsed value to the field's type.
#[derive(Debug)]
enum From<T> {
    Plain(fn(&Value) -> Result<T, String>),
    Nested(fn(&Value) -> Result<T, WordError>),
    /// The component converts the value, after the other words are read.
    Late,
}

#[derive(Debug)]
struct Part<T: 'static, On: 'static> {
    words: &'static [Word],
    defaults: &'static [(&'static str, &'static str)],
    docs: &'static [(&'static str, &'static str)],
    new: fn(&On) -> T,
    set: fn(&mut T, &Given) -> Result<(), WordError>,
    write: fn(&T, Text) -> Text,
}

impl<T, On> Param<T, On> {
    const fn unnamed(how: How<T, On>) -> Self {
        Self { name: "", doc: "", how }
    }

    /// Returns the declaration with its word and its documentation. [`params!`](crate::params)
    /// calls this.
    #[must_use]
    pub const fn named(self, name: &'static str, doc: &'static str) -> Self {
        Self { name, doc: doc.trim_ascii(), how: self.how }
    }

    /// Returns a parameter of one word. `from` converts a parsed value; its error is the rest of a
    /// sentence that begins with the word, such as "must be above 0". `to` returns the value for
    /// the text form: `Bool` for a flag or switch, otherwise usually `Text`; `None` if the word is
    /// omitted.
    pub const fn word(
        kind: Kind,
        default: &'static str,
        from: fn(&Value) -> Result<T, String>,
        to: fn(&T) -> Option<Value>,
    ) -> Self {
        Self::single(kind, default, From::Plain(from), to)
    }

    /// Like [`Param::word`], for values with their own syntax. Errors of `from` keep their list of
    /// allowed texts.
    pub const fn nested(
        kind: Kind,
        default: &'static str,
        from: fn(&Value) -> Result<T, WordError>,
        to: fn(&T) -> Option<Value>,
    ) -> Self {
        Self::single(kind, default, From::Nested(from), to)
    }

    const fn single(
        kind: Kind,
        default: &'static str,
        from: From<T>,
        to: fn(&T) -> Option<Value>,
    ) -> Self {
        Self::unnamed(How::Word(Single {
            kind,
            default,
            from,
            to,
            check: |_| Ok(()),
            adjust: |value| value,
            initially: None,
        }))
    }

    /// Sets a function that returns the default, instead of the default's text form. It is needed
    /// if the default depends on an object or has no text form.
    #[must_use]
    pub const fn initially(self, initially: fn(&On) -> T) -> Self {
        match self.how {
            How::Word(word) => {
                Self::unnamed(How::Word(Single { initially: Some(initially), ..word }))
            }
            How::Part(part) => Self::unnamed(How::Part(Part { new: initially, ..part })),
        }
    }

    /// Adds a check of the value. Its error is the rest of a sentence that begins with the word.
    #[must_use]
    pub const fn check(self, check: fn(&T) -> Result<(), &'static str>) -> Self {
        match self.how {
            How::Word(word) => Self::unnamed(How::Word(Single { check, ..word })),
            How::Part(_) => self,
        }
    }

    /// Sets a function that replaces a parsed value, for example to raise it to a minimum.
    #[must_use]
    pub const fn adjust(self, adjust: fn(T) -> T) -> Self {
        match self.how {
            How::Word(word) => Self::unnamed(How::Word(Single { adjust, ..word })),
            How::Part(_) => self,
        }
    }

    /// Adds a check that rejects zero.
    #[must_use]
    pub const fn above_zero(self) -> Self
    where
        T: Default + PartialEq,
    {
        self.check(|value| if *value == T::default() { Err("must be above 0") } else { Ok(()) })
    }

    /// Replaces the defaults of some words of a [`part`].
    #[must_use]
    pub const fn defaults(self, defaults: &'static [(&'static str, &'static str)]) -> Self {
        match self.how {
            How::Part(part) => Self::unnamed(How::Part(Part { defaults, ..part })),
            How::Word(_) => self,
        }
    }

    /// Replaces the documentation of some words of a [`part`].
    #[must_use]
    pub const fn docs(self, docs: &'static [(&'static str, &'static str)]) -> Self {
        match self.how {
            How::Part(part) => Self::unnamed(How::Part(Part { docs, ..part })),
            How::Word(_) => self,
        }
    }

    /// Returns the default value.
    #[doc(hidden)]
    pub fn initial(&self, on: &On) -> T {
        match &self.how {
            How::Word(word) => match word.initially {
                Some(initially) => initially(on),
                None => word.by_default(self.name),
            },
            How::Part(part) => {
                let mut value = (part.new)(on);
                if !part.defaults.is_empty() {
                    part.set_defaults(&mut value);
                }
                value
            }
        }
    }

    /// Replaces `field` by the given value, if there is one.
    #[doc(hidden)]
    pub fn set(&self, field: &mut T, given: &Given) -> Result<(), WordError> {
        match &self.how {
            How::Part(part) => (part.set)(field, given),
            How::Word(word) => {
                let name = self.name;
                match given.find(name) {
                    Some(value) if !matches!(word.from, From::Late) => {
                        *field = word.read(name, value, given)?;
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Appends the words for `value` to a description.
    #[doc(hidden)]
    #[must_use]
    pub fn write(&self, value: &T, text: Text) -> Text {
        let name = self.name;
        match &self.how {
            How::Part(part) => (part.write)(value, text),
            How::Word(word) => match (word.kind, (word.to)(value)) {
                (Kind::Flag, Some(Value::Bool(false))) | (_, None) => text,
                (Kind::Switch { off }, Some(Value::Bool(is_on))) => text.switch(is_on, name, off),
                (Kind::Flag, Some(_)) => text.flag(name),
                (Kind::OneOf { .. }, Some(Value::Text(word))) => text.flag(&word),
                (_, Some(value)) => text.value(name, value),
            },
        }
    }

    /// Returns the words of this parameter in a table.
    #[doc(hidden)]
    pub const fn slot(&self) -> Slot {
        let (name, doc) = (self.name, self.doc);
        match &self.how {
            How::Word(Single { kind, default, .. }) => {
                Slot::One(Word { name, kind: *kind, default, doc })
            }
            How::Part(Part { words, defaults, docs, .. }) => Slot::Many { words, defaults, docs },
        }
    }
}

impl<T, On> Single<T, On> {
    fn read(&self, name: &str, value: &Value, given: &Given) -> Result<T, WordError> {
        let plain = |why: &str| given.error(name, format!("`{name}` {why}"));
        let value = match self.from {
            From::Plain(from) => from(value).map_err(|why| plain(&why))?,
            From::Nested(from) => from(value).map_err(|error| given.nested(name, error))?,
            From::Late => return Err(plain("is read late")),
        };
        (self.check)(&value).map_err(plain)?;
        Ok((self.adjust)(value))
    }

    /// Returns the default, parsed from its text form.
    fn by_default(&self, name: &'static str) -> T {
        let word = Word { name, kind: self.kind, default: self.default, doc: "" };
        let value = words::read_value(&word, Token { text: self.default, at: 0 });
        let value = value.and_then(|value| self.read(name, &value, &Given::default()));
        value.unwrap_or_else(|why| panic!("the default of `{name}`, `{}`: {why}", self.default))
    }
}

impl<T, On> Part<T, On> {
    fn set_defaults(&self, value: &mut T) {
        let mut text = Text::new("");
        for (name, default) in self.defaults {
            text = text.value(name, default);
        }
        let text = text.done();
        let table = Table { name: "", summary: "", source: "", words: self.words };
        words::read(&table, &words::tokens(&text), text.len())
            .and_then(|given| (self.set)(value, &given))
            .unwrap_or_else(|error| panic!("the defaults `{text}`: {error}"));
    }
}

/// Returns a field without a word; `value` computes its value.
pub const fn derived<T, On>(value: fn(&On) -> T) -> Param<T, On> {
    group(&[], value, |_, _| Ok(()), |_, text| text)
}

/// Returns a field without a word, whose value is the default of its type.
pub const fn unset<T: Default, On>() -> Param<T, On> {
    derived(|_| T::default())
}

/// Returns a field that is itself a structure of parameters, whose words become words of the whole
/// structure.
pub const fn part<T: Parameters>() -> Param<T, T::On> {
    group(T::WORDS, T::new, T::set, T::write)
}

/// Returns a field that several words set.
pub const fn group<T, On>(
    words: &'static [Word],
    new: fn(&On) -> T,
    set: fn(&mut T, &Given) -> Result<(), WordError>,
    write: fn(&T, Text) -> Text,
) -> Param<T, On> {
    Param::unnamed(How::Part(Part { words, defaults: &[], docs: &[], new, set, write }))
}

/// Returns a parameter that the component itself reads after all others, because its meaning depends
/// on them. The default in the text form is only documentation; the value is that of the type.
pub const fn late<T: Default + Display, On>(kind: Kind, default: &'static str) -> Param<T, On> {
    Param::single(kind, default, From::Late, |value| Some(text(value))).initially(|_| T::default())
}

/// Returns a parameter that at most one of several flags sets; `words` are the flags. The default
/// has no flag: its name is empty.
pub const fn flags<T: Choices + Default, On>(words: &'static [Word]) -> Param<T, On> {
    group(
        words,
        |_| T::default(),
        set_flags,
        |value, text| match value.name() {
            "" => text,
            name => text.flag(name),
        },
    )
}

fn set_flags<T: Choices>(value: &mut T, given: &Given) -> Result<(), WordError> {
    let mut flags = T::NAMES.iter().filter(|name| given.has(name));
    let Some(flag) = flags.next() else { return Ok(()) };
    flags.try_for_each(|other| given.exclude(flag, other))?;
    *value = T::named(flag).unwrap_or(*value);
    Ok(())
}

/// Returns a value in its text form.
fn text(value: impl Display) -> Value {
    Value::Text(value.to_string())
}

/// Returns a flag, which is off unless the word is given.
pub const fn flag<On>() -> Param<bool, On> {
    Param::word(Kind::Flag, "", |value| Ok(value.bool()), |value| Some(Value::Bool(*value)))
        .initially(|_| false)
}

/// Returns a switch: its own word sets it, and the word in `off` clears it. `default` is one of the
/// two words.
pub const fn switch<On>(off: &'static str, default: &'static str) -> Param<bool, On> {
    let kind = Kind::Switch { off };
    Param::word(kind, default, |value| Ok(value.bool()), |value| Some(Value::Bool(*value)))
}

/// Returns a switch whose word is followed by `on` or `off`.
pub const fn on_off<On>(default: &'static str) -> Param<bool, On> {
    Param::word(
        Kind::Choice { of: &["on", "off"] },
        default,
        |value| Ok(value.text() == "on"),
        |is_on| Some(text(if *is_on { "on" } else { "off" })),
    )
}

/// Returns an integer from `min` to `max`.
pub const fn integer<T, On>(min: u64, max: u64, default: &'static str) -> Param<T, On>
where
    T: TryFrom<u64> + Display,
{
    Param::word(Kind::Integer { min, max }, default, narrow, |value| Some(text(value)))
}

/// Returns a real number from `min` to `max`.
pub const fn real<On>(min: f64, max: f64, default: &'static str) -> Param<f64, On> {
    Param::word(
        Kind::Real { min, max },
        default,
        |value| Ok(value.real()),
        |value| Some(text(value)),
    )
}

/// Returns a probability from 0 to 1.
pub const fn probability<On>(default: &'static str) -> Param<f64, On> {
    Param::word(Kind::Probability, default, |value| Ok(value.real()), |value| Some(text(value)))
}

/// Returns a duration in nanoseconds.
pub const fn time<On>(default: &'static str) -> Param<Nanos, On> {
    let to = |span: &Nanos| Some(text(quantity::format_time(*span)));
    Param::word(Kind::Time, default, |value| Ok(value.integer()), to)
}

/// Returns a size in bytes.
pub const fn size<On>(default: &'static str) -> Param<Bytes, On> {
    let to = |size: &Bytes| Some(text(quantity::format_size(*size)));
    Param::word(Kind::Size, default, |value| Ok(value.integer()), to)
}

/// Returns a rate above zero.
pub const fn rate<On>(default: &'static str) -> Param<Rate, On> {
    let from = |value: &Value| Rate::new(value.integer()).ok_or("must be above 0".to_owned());
    Param::word(Kind::Rate, default, from, |rate| Some(text(quantity::format_rate(*rate))))
}

/// An enumeration whose values have names in descriptions, declared by
/// [`choices!`](crate::choices).
pub trait Choices: Copy + PartialEq + 'static {
    /// Names of all values.
    const NAMES: &'static [&'static str];
    /// All values, in the order of [`Choices::NAMES`].
    const ALL: &'static [Self];

    /// Returns the value with this name; `None` for an unknown name.
    fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).map(|place| Self::ALL[place])
    }

    /// Returns the name of the value.
    fn name(self) -> &'static str {
        let place = Self::ALL.iter().position(|known| *known == self);
        Self::NAMES[place.expect("every value has a name")]
    }
}

fn chosen<T: Choices>(value: &Value) -> Result<T, String> {
    T::named(value.text()).ok_or_else(|| format!("must be one of {}", T::NAMES.join(", ")))
}

/// Returns a choice whose word is followed by one of several names, such as `ecn classic`.
pub const fn choice<T: Choices, On>(default: &'static str) -> Param<T, On> {
    Param::word(Kind::Choice { of: T::NAMES }, default, chosen, |value| Some(text(value.name())))
}

/// Returns a choice that is made by writing one of several words alone, such as `besteffort`.
pub const fn one_of<T: Choices, On>(default: &'static str) -> Param<T, On> {
    Param::word(Kind::OneOf { of: T::NAMES }, default, chosen, |value| Some(text(value.name())))
}

/// Converts an integer to a `T`.
///
/// # Errors
/// If the value does not fit into a `T`.
pub fn narrow<T: TryFrom<u64>>(value: &Value) -> Result<T, String> {
    let bits = 8 * size_of::<T>();
    T::try_from(value.integer()).map_err(|_| format!("must fit into {bits} bits"))
}

/// Words of one field of a declaration.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    One(Word),
    Many {
        words: &'static [Word],
        defaults: &'static [(&'static str, &'static str)],
        docs: &'static [(&'static str, &'static str)],
    },
}

/// Returns the total number of words in `slots`.
#[doc(hidden)]
pub const fn count(slots: &[Slot]) -> usize {
    let (mut n, mut at) = (0, 0);
    while at < slots.len() {
        n += match &slots[at] {
            Slot::One(_) => 1,
            Slot::Many { words, .. } => words.len(),
        };
        at += 1;
    }
    n
}

/// Returns all words in `slots`.
#[doc(hidden)]
pub const fn collect<const N: usize>(slots: &[Slot]) -> [Word; N] {
    let mut all = [Word { name: "", kind: Kind::Flag, default: "", doc: "" }; N];
    let (mut n, mut at) = (0, 0);
    while at < slots.len() {
        match &slots[at] {
            Slot::One(word) => {
                all[n] = *word;
                n += 1;
            }
            Slot::Many { words, defaults, docs } => {
                let mut each = 0;
                while each < words.len() {
                    let word = words[each];
                    let default = instead(defaults, word.name, word.default);
                    let doc = instead(docs, word.name, word.doc);
                    all[n] = Word { default, doc, ..word };
                    n += 1;
                    each += 1;
                }
            }
        }
        at += 1;
    }
    all
}

/// Returns the entry of `list` for `name`, or `own` if the list has no such entry.
const fn instead(
    list: &[(&'static str, &'static str)],
    name: &str,
    own: &'static str,
) -> &'static str {
    let mut at = 0;
    while at < list.len() {
        if is_same(list[at].0, name) {
            return list[at].1;
        }
        at += 1;
    }
    own
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Returns the name of a field's word: the name given with `as`, or otherwise the field's name.
#[doc(hidden)]
pub const fn word_name(field: &'static str, given: &[&'static str]) -> &'static str {
    if given.is_empty() { field } else { given[0] }
}

/// Declares a structure of parameters and implements [`Parameters`](crate::declare::Parameters); see
/// [`declare`](crate::declare).
#[macro_export]
macro_rules! params {
    ($name:literal: $summary:literal $(, from $source:literal)?; $($structure:tt)*) => {
        $crate::text_params! {
            $name: $summary $(, from $source)?;
            #[$crate::data] $($structure)*
        }
    };
    ($($structure:tt)*) => {
        $crate::text_params! { #[$crate::data] $($structure)* }
    };
}

/// Declares a structure of parameters like [`params!`](crate::params), but without a JSON form.
#[macro_export]
macro_rules! text_params {
    // If no default depends on an object, the structure also implements `Default`.
    (
        @[$($table:tt)*]
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident $(after $first:ident)? { $($fields:tt)* } $(also $words:expr)?
    ) => {
        $crate::text_params! {
            @[$($table)*]
            $(#[$meta])*
            $visibility struct $Name on () $(after $first)? { $($fields)* } $(also $words)?
        }

        impl Default for $Name {
            fn default() -> Self {
                $crate::declare::Parameters::new(&())
            }
        }
    };
    (
        @[$($table:tt)*]
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident on $On:tt $(after $first:ident)? {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde $serde:tt])?
                $field:ident $(as $word:literal)?: $Type:ty = $param:expr
            ),* $(,)?
        } $(also $words:expr)?
    ) => {
        $(#[$meta])*
        $visibility struct $Name {
            $(
                $(#[doc = $doc])+
                $(#[serde $serde])?
                pub $field: $Type,
            )*
        }

        const _: () = {
            struct Declared;

            #[allow(non_upper_case_globals, reason = "each constant has the name of its field")]
            impl Declared {
                $(
                    const $field: $crate::declare::Param<$Type, $On> =
                        <$crate::declare::Param<$Type, $On>>::named(
                            $param,
                            $crate::declare::word_name(stringify!($field), &[$($word)?]),
                            concat!($($doc),+),
                        );
                )*
                const SLOTS: &[$crate::declare::Slot] = &[
                    $($crate::declare::Slot::Many { words: $first, defaults: &[], docs: &[] },)?
                    $(Self::$field.slot(),)*
                    $($crate::declare::Slot::Many { words: $words, defaults: &[], docs: &[] },)?
                ];
                const WORDS: &'static [$crate::words::Word] =
                    &$crate::declare::collect::<{ $crate::declare::count(Self::SLOTS) }>(Self::SLOTS);
            }

            impl $crate::declare::Parameters for $Name {
                type On = $On;

                const WORDS: &'static [$crate::words::Word] = Declared::WORDS;

                $($table)*

                fn new(on: &$On) -> Self {
                    Self { $($field: Declared::$field.initial(on),)* }
                }

                fn set(&mut self, given: &$crate::words::Given) -> Result<(), $crate::words::WordError> {
                    $(Declared::$field.set(&mut self.$field, given)?;)*
                    Ok(())
                }

                fn write(&self, text: $crate::words::Text) -> $crate::words::Text {
                    $(let text = Declared::$field.write(&self.$field, text);)*
                    text
                }
            }
        };
    };
    ($name:literal: $summary:literal $(, from $source:literal)?; $($structure:tt)*) => {
        $crate::text_params! {
            @[const TABLE: $crate::words::Table = $crate::words::Table {
                name: $name,
                summary: $summary,
                source: concat!($($source)?),
                words: Self::WORDS,
            };]
            $($structure)*
        }
    };
    ($($structure:tt)*) => {
        $crate::text_params! { @[] $($structure)* }
    };
}

/// Declares an enumeration whose values have names in descriptions, and implements
/// [`Choices`](crate::declare::Choices).
///
/// ```
/// use sojourn_units::declare::Choices;
///
/// sojourn_units::choices! {
///     /// Persons who may enter.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Access {
///         /// All persons.
///         Open = "open",
///         /// Members.
///         Members = "members-only",
///     }
/// }
///
/// assert_eq!(Access::named("members-only"), Some(Access::Members));
/// assert_eq!(Access::Open.name(), "open");
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $Name:ident {
            $($(#[$value_meta:meta])* $Value:ident = $name:literal),* $(,)?
        }
    ) => {
        #[$crate::data]
        $(#[$meta])*
        $visibility enum $Name {
            $($(#[$value_meta])* $Value,)*
        }

        impl $crate::declare::Choices for $Name {
            const NAMES: &'static [&'static str] = &[$($name),*];
            const ALL: &'static [Self] = &[$(Self::$Value),*];
        }
    };
}
