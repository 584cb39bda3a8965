//! Contract between a transport and its congestion control, and declarations of controls.

use crate::hystart;
use crate::window::{Ack, Cause, Lost, Start, SuperPacket, Window};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use std::fmt::Debug;

/// Settings of a host for all its controls.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Parameters of slow start.
    pub slow_start: hystart::Params,
    /// Ticks of the kernel's clock per second (`HZ`); 0 without ticks.
    pub hz: u32,
}

/// A congestion control.
pub trait Control {
    /// Returns the control as a trait object. For a boxed control, returns the control in the box.
    fn seen(&self) -> &(dyn Control + 'static)
    where
        Self: Sized + 'static,
    {
        self
    }

    /// Returns the control as a mutable trait object. For a boxed control, returns the control in
    /// the box.
    fn seen_mut(&mut self) -> &mut (dyn Control + 'static)
    where
        Self: Sized + 'static,
    {
        self
    }

    /// Returns the phase of a control with phases of its own, such as BBR's, for traces.
    fn mode(&self) -> Option<&dyn Debug> {
        None
    }

    /// Visits the control's state, for tests and traces.
    fn state(&self, visit: &mut dyn FnMut(&str, i128));

    /// Called when the connection is established with `window`.
    fn on_start(&mut self, _window: &mut Window, _start: &Start) {}

    /// Called for every acknowledgement, including those that may not grow the window.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// Called for each acknowledgement before its echo of marks or its losses reduce the window,
    /// and before [`Control::on_ack`]; only if ECN was negotiated.
    fn before_reduction(&mut self, _window: &Window, _ack: &Ack) {}

    /// Called for each segment newly considered lost, before [`Control::on_ack`] if an
    /// acknowledgement reveals the loss; only for controls that need [`Ack::rate`].
    fn on_lost(&mut self, _window: &Window, _lost: &Lost) {}

    /// Returns the new ssthresh in bytes for a reduction of the window. `flight` is the number of
    /// outstanding bytes. The transport decides how cwnd reaches it (at once, or by proportional
    /// rate reduction), and sets cwnd to one segment above the flight after a timeout.
    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, now: Nanos) -> u64;

    /// Called when the last reduction proves spurious, after the transport has restored the window.
    fn on_undo(&mut self) {}

    /// Called at the end of loss recovery.
    fn on_recovery_exit(&mut self, _window: &mut Window) {}

    /// Called when sending restarts after an idle period of `idle` nanoseconds.
    fn on_restart(&mut self, _window: &mut Window, _now: Nanos, _idle: Nanos) {}

    /// Returns the pacing rate in bytes per second; `None` if the transport chooses it.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Returns the limits from which the transport computes the size of super-packets.
    fn super_packet(&self) -> SuperPacket {
        SuperPacket::default()
    }

    /// Returns whether the control sets cwnd also during loss recovery.
    fn owns_window(&self) -> bool {
        false
    }

    /// Returns whether the control reacts to marks in `on_ack`. Otherwise an echo starts a
    /// reduction by the transport, during which the window does not grow.
    fn answers_marks(&self) -> bool {
        false
    }

    /// Returns whether the control needs [`Ack::rate`].
    fn wants_rate(&self) -> bool {
        false
    }
}

/// Use of ECN that a control requests, unless the user sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// The host's setting (`net.ipv4.tcp_ecn`) determines whether ECN is used.
    Host,
    /// ECN with an exact echo of each mark (RFC 8257).
    Exact,
    /// ECN with the L4S identifier (RFC 9331). If no exact echo is negotiated, Reno replaces the
    /// control.
    L4s,
}

/// Parameters of a control, and the facts about it that code for all controls needs.
pub trait ControlParams: Parameters<On = ()> + Default {
    /// Type of the control.
    type Control: Control;

    /// Returns the use of ECN that the control requests.
    fn ecn(&self) -> EcnUse {
        EcnUse::Host
    }

    /// Returns whether the host's setting for HyStart applies; otherwise HyStart is used only if
    /// the user sets it.
    fn has_hystart(&self) -> bool {
        false
    }

    /// Returns a control for a new connection of `host` with `window`.
    fn build(&self, host: Host, window: &Window) -> Self::Control;
}
