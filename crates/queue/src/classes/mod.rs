//! Classes: code that classful disciplines share.
//!
//! A description consists of a discipline and statements ([`statements`]), each after a semicolon,
//! in the words of `tc`'s commands. `class` adds a class, `qdisc` puts a discipline into a class,
//! and `filter` sends packets to a class. The statements form a [`Tree`], whose classes may contain
//! any discipline, including classful ones. The queues of the classes are [`Children`], which also
//! have the counters.
//!
//! The class of a packet is the class that the packet names itself, else the class of the first
//! matching [`Filter`], else a class chosen by the discipline.

mod builder;
mod children;
mod classful;
pub mod filter;
pub(crate) mod rounds;
mod scheduler;
mod selectors;
pub(crate) mod statements;
mod tree;

pub use builder::{ClassBuilder, classes_mut, hold};
pub(crate) use children::{Children, Constant, earlier};
pub use classful::Classful;
pub(crate) use classful::{default_class, tree_of};
pub use filter::Filter;
pub(crate) use scheduler::BANDS;
pub use scheduler::{Ranked, Scheduler, Turns};
pub(crate) use selectors::{FilterCommand, commands_of};
pub use statements::Name;
pub(crate) use tree::TREE;
pub use tree::{About, Class, ClassParams, Fault, Tree};
