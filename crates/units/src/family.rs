//! Families of components: one list of the members, and what follows from it.
//!
//! A list is a macro that passes its arguments on, and then its members: each one's module, which has
//! its `Params`, and its name.
//!
//! ```text
//! macro_rules! policies {
//!     ($macro:ident! $($arguments:tt)*) => {
//!         $macro! {
//!             $($arguments)*
//!             jsq::Jsq,
//!             #[serde(skip)] maglev::Maglev in Box<>,
//!         }
//!     };
//! }
//!
//! policies!(modules!);                             // pub mod jsq; pub mod maglev;
//! policies!(family! (pub enum Params ...));        // the types over all members
//! policies!(each! (Params, self, params => ...))   // an expression for whichever member it is
//! ```
//!
//! An attribute is one of the member's parameters; `in Box<>` says what a family keeps a large member in.

/// Declares the modules of a [family](crate::family).
#[macro_export]
macro_rules! modules {
    ($($(#[$meta:meta])? $module:ident::$Member:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        $(pub mod $module;)*
    };
}

/// Matches a value of a [family](crate::family): the expression is that of each member.
///
/// `(Params to Any, self, (params, any) => any(params.build()))` calls another type of the family's by
/// the member's constructor.
#[macro_export]
macro_rules! each {
    (($Any:ident, $self:expr, $member:ident => $body:expr)
    $($(#[$meta:meta])? $module:ident::$Member:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        match $self {
            $($Any::$Member($member) => $body,)*
        }
    };
    (($Any:ident to $Other:ident, $self:expr, ($member:ident, $other:ident) => $body:expr)
    $($(#[$meta:meta])? $module:ident::$Member:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        match $self {
            $($Any::$Member($member) => {
                let $other = $Other::$Member;
                $body
            })*
        }
    };
}

/// Declares the types of a [family](crate::family): one over the parameters of all members, with their
/// tables and names, and one over that which the trait of the parameters associates with them.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "members are modules of the crate that lists them")]
macro_rules! family {
    ((
        $(#[$params_meta:meta])*
        pub enum $Params:ident by $Trait:ident;

        $(#[$any_meta:meta])*
        $visibility:vis enum $Any:ident of $Associated:ident;
    )
    $($(#[$meta:meta])? $module:ident::$Member:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        $(#[$params_meta])*
        pub enum $Params {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
                $(#[$meta])?
                $Member(crate::$module::Params),
            )*
        }

        $(#[$any_meta])*
        $visibility enum $Any {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
                $Member($($Box $open)? <crate::$module::Params as $Trait>::$Associated $($close)?),
            )*
        }

        /// The names and words that descriptions have.
        pub fn tables() -> &'static [&'static $crate::words::Table] {
            static TABLES: std::sync::LazyLock<Vec<&$crate::words::Table>> =
                std::sync::LazyLock::new(|| {
                    let mut tables = vec![$(&<crate::$module::Params as $Trait>::TABLE,)*];
                    tables.retain(|table| table.is_named());
                    tables
                });
            &TABLES
        }

        impl $Params {
            /// The member that descriptions call `name`, with its defaults.
            pub fn named(name: &str) -> Option<Self> {
                $(
                    let table = <crate::$module::Params as $Trait>::TABLE;
                    if table.is_named() && table.name == name {
                        return Some(Self::$Member($crate::declare::Parameters::new(&())));
                    }
                )*
                None
            }

            /// Its name and words.
            pub fn table(&self) -> &'static $crate::words::Table {
                match self {
                    $(Self::$Member(_) => &<crate::$module::Params as $Trait>::TABLE,)*
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                self.table().name
            }
        }
    };
}
