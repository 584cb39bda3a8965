//! Congestion controls: limits of the data in flight, and of the sending rate.
//!
//! A transport owns a [`Window`] and passes events to its [`Congestion`]: an acknowledgement, a
//! congestion event, a timeout. The transport performs the parts that all controls have in common
//! (loss detection, cwnd during loss recovery, undo); a control is the remaining policy.
//!
//! A control is a module with its parameters, and an entry in the list below.
//!
//! # Contract
//! Every control passes the same tests (`tests.rs`):
//! - cwnd is never below one segment, and never above [`MAX_WINDOW`].
//! - A congestion event or a timeout never raises cwnd, and ssthresh is at least two segments.
//! - An acknowledgement that may not grow the window ([`Ack::may_grow`], [`Ack::cwnd_limited`])
//!   does not grow it (controls that model the path, [`Congestion::owns_window`], are exempt).
//! - An acknowledgement lowers cwnd only if it carries marks and the control reacts to them itself
//!   ([`Control::answers_marks`]; the same exemption).
//! - The same calls give the same results; no call overflows or panics, for any numbers.
#![allow(clippy::doc_markdown, reason = "HyStart and NewReno are names of algorithms, not code")]
#![allow(
    clippy::struct_excessive_bools,
    reason = "the fields are independent properties of the protocols"
)]

use sojourn_units::modules;

/// The controls, one per line: the module with the control's `Params`, and the type of the control.
/// `in` names a container for a large control, since every control would otherwise have the size of
/// the largest one.
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

pub use control::{Control, ControlParams, EcnUse, Host};
pub use family::{Congestion, Params, tables};
pub use window::{Ack, Cause, Lost, MAX_WINDOW, RateSample, Start, SuperPacket, Window};
