//! The reader of everything that configures queues of Linux: commands of `tc`, batch files, shell
//! scripts, printed output (text and JSON), filters, and rules of `iptables` and `nft`.
//!
//! [`read()`] turns texts into a [`Reading`] of devices, and [`Reading::build`] a device into the
//! parameters of its queue. Nothing is executed. Each word of the texts has its place: it acts, or
//! a [`Notice`] says what acts instead, or a [`Problem`] says why it cannot be read. All problems
//! are returned at once.
//!
//! [`queue`] reads the description of a single queue, in this project's words or as one of the
//! texts above.

#![allow(clippy::doc_markdown, reason = "names of programs are not code")]

mod bucket;
mod cbq;
mod command;
mod description;
mod device;
mod filter;
mod firewall;
mod iptables;
mod json;
mod mq;
mod name;
mod neighbours;
mod nft;
mod nft_json;
mod place;
mod read;
mod reading;
mod rules;
mod script;
mod shell;
mod shown;
mod table;
mod tree;
mod values;
mod wrapper;
mod written;

pub use description::{Described, iproute2, netem, queue};
pub use name::Name;
pub use place::{Notice, Place, Problem, Word};
pub use read::read;
pub use reading::{DeviceFacts, Reading};
pub use rules::Hosts;
pub use tree::{Built, Selection};
