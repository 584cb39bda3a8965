//! The simulator as a WebAssembly module, for pages without a server.
//!
//! Nothing is decided here. Plans and edits come in as JSON, and records go out as JSON ([`calls`]);
//! [`exports`] passes texts between the module and its host. `sojourn.js` beside this crate's sources is
//! the other half of that interface.

pub mod calls;
pub mod exports;
mod outcome;
