//! The contract between a transport and its congestion control, and what a control declares.

use crate::hystart;
use crate::window::{Ack, Cause, Lost, SuperPacket, Window};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;

/// A congestion control.
pub trait Control {
    /// The control without its type, also if it is in a box.
    #[inline]
    fn seen(&self) -> &(dyn Control + 'static)
    where
        Self: Sized + 'static,
    {
        self
    }

    /// As [`Control::seen`].
    #[inline]
    fn seen_mut(&mut self) -> &mut (dyn Control + 'static)
    where
        Self: Sized + 'static,
    {
        self
    }

    /// What the control remembers, for tests and traces.
    fn state(&self, visit: &mut dyn FnMut(&str, i128));

    /// The connection is established with `window`. `draw` is a random number, for controls that begin
    /// at a random phase.
    fn on_start(&mut self, _window: &mut Window, _now: Nanos, _draw: u32) {}

    /// An acknowledgement came. It is told every one, also those that may not grow the window.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// As [`Control::on_ack`], but before the acknowledgement's echo or losses reduce the window.
    /// Called only where ECN was agreed on.
    fn before_reduction(&mut self, _window: &Window, _ack: &Ack) {}

    /// A segment was taken for lost. Called for each, before the acknowledgement or the timeout that
    /// shows it, and only for controls that want [`Ack::rate`].
    fn on_lost(&mut self, _window: &Window, _lost: &Lost) {}

    /// The window is to be reduced: the new ssthresh. `flight` is what was outstanding. The
    /// transport decides how cwnd gets there (at once, or by proportional rate reduction), and sets
    /// it to one segment after a timeout.
    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, now: Nanos) -> u64;

    /// The last reduction was a mistake. The transport has restored the window.
    fn on_undo(&mut self) {}

    /// Loss recovery is over.
    fn on_recovery_exit(&mut self, _window: &mut Window) {}

    /// Sending starts again after a silence of `idle`.
    fn on_restart(&mut self, _window: &mut Window, _now: Nanos, _idle: Nanos) {}

    /// The pacing rate in bytes per second, if the control sets one.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// How much may leave at once as a super-packet.
    fn super_packet(&self) -> SuperPacket {
        SuperPacket::default()
    }

    /// Whether the control sets cwnd also while losses are repaired.
    fn owns_window(&self) -> bool {
        false
    }

    /// Whether it answers marks in `on_ack` itself; otherwise an echo begins a reduction of the
    /// transport's, in which the window does not grow.
    fn answers_marks(&self) -> bool {
        false
    }

    /// Whether it needs [`Ack::rate`].
    fn wants_rate(&self) -> bool {
        false
    }
}

/// What of ECN a control asks for, unless the user sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// Nothing: what the host has.
    Host,
    /// An exact echo of each mark (RFC 8257).
    Exact,
    /// L4S (RFC 9331). Where no exact echo is agreed on, Reno runs instead.
    L4s,
}

/// The parameters of a control, and what the family needs to know of it.
pub trait ControlParams: Parameters<On = ()> + Default {
    /// Its name and words.
    const TABLE: Table;

    /// The control.
    type Control: Control;

    /// What of ECN it asks for.
    fn ecn(&self) -> EcnUse {
        EcnUse::Host
    }

    /// Whether slow start ends without a loss, as the host has it; otherwise only if the user says so.
    fn has_hystart(&self) -> bool {
        false
    }

    /// A control for a new connection with `window`.
    fn build(&self, slow_start: hystart::Params, window: &Window) -> Self::Control;
}
