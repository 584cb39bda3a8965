//! The simulator as a WebAssembly module, for pages without a server.
//!
//! This crate makes no decisions. Plans and edits are read as JSON, and records are returned as
//! JSON ([`calls`]). [`exports`] passes texts between the module and its host. `sojourn.js` next to
//! this crate's sources is the other half of this interface.

pub mod calls;
pub mod exports;
mod outcome;
