//! Classes: the common part of classful disciplines.
//!
//! A description is a discipline and statements, each after a semicolon, in the words of `tc`'s commands:
//! `class` adds a class, `qdisc` puts a discipline into one, `filter` sends packets to one
//! ([`statements`]). They make a [`Tree`], in which each class may hold any discipline, a classful one too.
//! The queues of the classes are [`Children`], which keep the account of them all.
//!
//! A packet's class is the one that it names itself, else that of the first [`Filter`] that fits it, else
//! what the discipline's own rule says.

mod children;
mod classful;
pub mod filter;
pub(crate) mod rounds;
mod scheduler;
mod selectors;
pub(crate) mod statements;
mod tree;

pub(crate) use children::{Children, earlier};
pub use classful::Classful;
pub(crate) use classful::default_class;
pub use filter::Filter;
pub(crate) use scheduler::BANDS;
pub use scheduler::{Ranked, Scheduler, Turns};
pub(crate) use selectors::{FilterCommand, commands_of};
pub use statements::Name;
pub(crate) use tree::TREE;
pub use tree::{Class, ClassParams, Tree};
