//! Traffic sources as state machines driven by time.
//!
//! A source knows neither packets nor connections nor clocks. It returns the time and amount of the
//! next data, and receives reports of completed transfers. It computes each time from its own
//! earlier times or from the end of a transfer, not from the time of a call, which may be late. The
//! simulator's endpoints and real senders use the same state machines.
//!
//! | application | state machine | use |
//! |---|---|---|
//! | `bulk` | none | the transport always has data |
//! | `transfer` | [`transfer::Transfers`] | `after(start)` returns the first transfer, `after(finished)` each next one |
//! | `cbr`, `voip`, `packets`, `replay` | [`PacketSource`] | each call of `next_packet()` returns time and payload of the next packet |
//! | `client` | an alias for a description of `cbr` or `packets` | as `cbr` or `packets` |
//! | a user's policy | [`external::External`], a [`PacketSource`] | `next_packet()` |
//! | `command` | none | real hosts run its programs |
//! | `responsiveness` | [`responsiveness::Test`] | `record(timing, took, idle)` and `evaluate(bytes)` compute the result; `gap()` returns the time between probes |
//! | `web` | [`web::Session`] | `poll(now)` returns requests until `None`; `complete(now, object)` reports an arrival and may return a complete page; `next_event()` returns the time of the next poll |
//!
//! Every source has its own [`Key`](sojourn_random::Key), from which it derives a random stream for
//! each purpose. The sizes of a session's objects, for example, do not depend on the times at which
//! they are fetched, so that queues are compared with equal requests.

use sojourn_units::modules;

/// The applications, one per line: the module that contains its `Params`, and its variant of
/// [`App`]. The name in plans is the module's name.
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

/// A packet of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Departure time of the packet.
    pub at: sojourn_units::Nanos,
    /// UDP payload in bytes.
    pub payload: u32,
}

impl Emission {
    /// The result after the last packet of a source; its time is never reached.
    pub const NONE: Self = Self { at: sojourn_units::Nanos::MAX, payload: 1 };
}
