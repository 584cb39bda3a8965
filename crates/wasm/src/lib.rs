//! The simulator as a WebAssembly module, for Web pages without a server.
//!
//! The crate contains no logic of the simulation. It reads plans and edits as JSON and returns
//! records as JSON ([`calls`]). [`exports`] passes texts between the module and its host.
//! `sojourn.js` next to this crate's sources is the JavaScript side of this interface.

pub mod calls;
pub mod exports;
mod outcome;
