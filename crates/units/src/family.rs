//! Families of components: one list of members, from which all declarations are derived.
//!
//! A list is a macro that passes on its arguments, followed by the members. Each member has a
//! module, which contains its `Params`, and a name.
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
//! policies!(each! (Params, self, params => ...))   // an expression for every member
//! ```
//!
//! An attribute applies to the member's variant of the parameters. `in Box<>` names the container
//! of a large member.

/// Declares the modules of a [family](crate::family).
#[macro_export]
macro_rules! modules {
    ($($(#[$meta:meta])? $module:ident::$Member:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        $(pub mod $module;)*
    };
}

/// Matches a value of a [family](crate::family). The expression is compiled once for each member.
///
/// `(Params to Any, self, (params, any) => any(params.build()))` also provides the constructor of
/// the same member in another enumeration of the family.
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

/// Declares the two enumerations of a [family](crate::family). The first has the parameters of all
/// members, with their tables and names. The second has the types that the trait of the parameters
/// associates with them.
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
        #[$crate::data]
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

        /// Returns the tables of all members that descriptions can name.
        pub fn tables() -> &'static [&'static $crate::words::Table] {
            static TABLES: std::sync::LazyLock<Vec<&$crate::words::Table>> =
                std::sync::LazyLock::new(|| {
                    let mut tables = vec![$(&<crate::$module::Params as $crate::declare::Parameters>::TABLE,)*];
                    tables.retain(|table| table.is_named());
                    tables
                });
            &TABLES
        }

        impl $Params {
            /// Returns the member with this name in descriptions, with default parameters; `None`
            /// for an unknown name.
            pub fn named(name: &str) -> Option<Self> {
                $(
                    let table = <crate::$module::Params as $crate::declare::Parameters>::TABLE;
                    if table.is_named() && table.name == name {
                        return Some(Self::$Member($crate::declare::Parameters::new(&())));
                    }
                )*
                None
            }

            /// Returns the table of the member: its name and words.
            pub fn table(&self) -> &'static $crate::words::Table {
                match self {
                    $(Self::$Member(_) => &<crate::$module::Params as $crate::declare::Parameters>::TABLE,)*
                }
            }

            /// Returns the name of the member in descriptions.
            pub fn name(&self) -> &'static str {
                self.table().name
            }
        }
    };
}
