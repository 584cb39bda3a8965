//! Traffic sources as state machines driven by time.
//!
//! A source knows neither packets nor connections nor clocks. It returns when something is to be
//! sent and how much, takes reports of completion, and gives every time as a *theoretical* one:
//! computed from its own earlier times, never from a late caller's. The simulator's endpoints and
//! real senders drive the same machines.
//!
//! | application | machine | how it is driven |
//! |---|---|---|
//! | `bulk` | none | the transport always has data |
//! | `transfer` | [`transfer::Transfers`] | `after(start)` gives the first job, `after(finished)` each next one |
//! | `cbr`, `voip`, `packets`, `replay` | [`PacketSource`] | `next_packet()` gives time and payload of one packet after the other |
//! | `client` | a name for `cbr` or `packets` with certain words | as these |
//! | a user's own | [`external::External`], a [`PacketSource`] too | as these |
//! | `command` | none | real hosts run its programs |
//! | `responsiveness` | [`responsiveness::Test`] | `record(timing, took, idle)` and `evaluate(bytes)` make the result; `gap()` says how often to probe |
//! | `web` | [`web::Session`] | `poll(now)` gives requests until `None`; `complete(now, object)` reports one and may give a finished page; `next_event()` says when to poll |
//!
//! Every source takes its own [`Key`](sojourn_random::Key), from which it makes a stream for each
//! purpose. The sizes of a session's objects, for instance, do not depend on when they were
//! fetched: queues are compared under the same requests.

use sojourn_units::modules;

/// The applications, one a line: its module, which has its `Params`, and its name in plans.
macro_rules! applications {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! {
            $($arguments)*
            bulk::Bulk,
            transfer::Transfer,
            cbr::Cbr,
            packets::Packets,
            replay::Replay,
            voip::Voip,
            #[serde(skip)] client::Client,
            web::Web,
            command::Command,
            external::External,
            responsiveness::Responsiveness,
        }
    };
}

applications!(modules!);

pub mod app;
mod application;
pub mod emodel;
mod kinds;
pub mod length;
pub mod playout;
pub mod receiver;
pub mod spurts;

pub use app::{App, PacketSource, tables};
pub use application::{AppParams, Carrier, Source};
pub use length::{Counts, UDP_HEADERS};
pub use playout::Playout;
pub use receiver::Receiver;

/// One packet of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// When it is sent.
    pub at: sojourn_units::Nanos,
    /// Its UDP payload in bytes.
    pub payload: u32,
}

impl Emission {
    /// The packet of a source that sends no more: at the end of time.
    pub const NONE: Self = Self { at: sojourn_units::Nanos::MAX, payload: 1 };
}
