//! Congestion controls: how much may be in flight, and how fast it leaves.
//!
//! A transport owns a [`Window`] and tells its [`Congestion`] what happened: an acknowledgement, a
//! congestion event, a timeout. What is common to all controls (loss detection, the steering of
//! cwnd while a loss is being repaired, undo) is the transport's; what is left is the policy.
//!
//! A control is one file, with its parameters, its entry in the list below, and its page.
//!
//! # Contract
//! Every control passes the same tests (`tests.rs`):
//! - cwnd is never below one segment, and never above [`MAX_WINDOW`].
//! - A congestion event or a timeout never raises cwnd, and ssthresh is at least two segments.
//! - An acknowledgement that may not grow the window ([`Ack::may_grow`], [`Ack::cwnd_limited`])
//!   does not grow it (controls that model the path, [`Congestion::owns_window`], are exempt).
//! - An acknowledgement lowers cwnd only if it brings marks and the control answers them itself
//!   ([`Control::answers_marks`]; the same exemption).
//! - Same calls, same results; no call overflows or panics, whatever the numbers.
#![allow(clippy::doc_markdown, reason = "HyStart and NewReno are names, not code")]
#![allow(clippy::struct_excessive_bools, reason = "independent facts of the protocols")]

use sojourn_units::modules;

/// The controls, one a line: the module, which has its `Params`, and the control, after `in` what a large one
/// is kept in: there is one at each end of a connection, and most are small.
macro_rules! controls {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! {
            $($arguments)*
            reno::Reno,
            cubic::Cubic,
            bbr::Bbr in Box<>,
            bbr3::Bbr3 in Box<>,
            dctcp::Dctcp,
            prague::Prague in Box<>,
            external::External in Box<>,
        }
    };
}

controls!(modules!);

mod bictcp;
mod classic;
mod control;
mod family;
pub mod hystart;
mod path;
mod whole;
mod window;

#[cfg(test)]
mod tests;

pub use control::{Control, ControlParams, EcnUse};
pub use family::{Congestion, Params, tables};
pub use window::{Ack, Cause, Lost, MAX_WINDOW, RateSample, SuperPacket, Window};
