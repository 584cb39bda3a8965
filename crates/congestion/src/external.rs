//! External congestion controls: controls from outside this crate.
//!
//! A [`Policy`] decides. [`External`] applies its decisions and enforces the contract of a control.
//! A policy that violates the contract, or returns a [`Fault`], is informed once
//! ([`Policy::on_fault`]) and not called again. From then on the window no longer grows and is
//! halved on congestion, so that the run can complete.
//!
//! `examples/policies/` has a complete policy with its own `main`.

use crate::control::{Control, ControlParams, EcnUse, Host};
use crate::reno;
use crate::window::{Ack, Cause, MAX_WINDOW, Start, SuperPacket, Window};
use sojourn_units::declare::unset;
pub use sojourn_units::external::Fault;
use sojourn_units::external::{Code, Spec};
use sojourn_units::{Nanos, params};
use std::sync::Arc;

/// The decisions of an external congestion control.
///
/// # Contract
/// - cwnd is between one segment and [`MAX_WINDOW`], and ssthresh is at least two segments.
/// - `on_ack` raises cwnd only if [`Ack::may_grow`] and [`Ack::cwnd_limited`] permit it. It does
///   not lower cwnd during loss recovery, unless it reacts to a mark ([`Params::answers_marks`]).
/// - If `reduce` returns more than cwnd, cwnd is used: congestion never raises it.
/// - Only the transport sets the segment size.
/// - The same calls and the same draw give the same decisions.
///
/// A control that models the path ([`Params::owns_window`]) is exempt from the rules on raising and
/// lowering cwnd.
pub trait Policy: Send + Sync {
    /// Called for each acknowledgement, including those that may not grow the window.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) -> Result<(), Fault>;

    /// Returns the new ssthresh in bytes for a reduction of the window. `flight` is the number of
    /// outstanding bytes. The transport decides how cwnd reaches it, and sets cwnd to one segment
    /// after a timeout.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn reduce(
        &mut self,
        window: &Window,
        flight: u64,
        cause: Cause,
        now: Nanos,
    ) -> Result<u64, Fault>;

    /// Called when the last reduction proves spurious, after the transport has restored the window.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn on_undo(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Called at the end of loss recovery.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn on_recovery_exit(&mut self, _window: &mut Window) -> Result<(), Fault> {
        Ok(())
    }

    /// Called when sending restarts after an idle period of `idle` nanoseconds.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn on_restart(&mut self, _window: &Window, _now: Nanos, _idle: Nanos) -> Result<(), Fault> {
        Ok(())
    }

    /// Returns the pacing rate in bytes per second; `None` if the policy sets none. With
    /// `pacing auto`, a connection is paced if the policy sets a rate from the start.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Returns the size of super-packets.
    fn super_packet(&self) -> SuperPacket {
        SuperPacket::default()
    }

    /// Visits the state on which decisions depend; the policy decides which values it reports.
    fn state(&self, visit: &mut dyn FnMut(&str, i128));

    /// Returns a copy of the policy with its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Called once, after the first fault; the policy is not called again.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Creates policies of one class with one set of parameters, one policy for each end of a
/// connection.
pub trait Factory: Send + Sync {
    /// Returns the policy of a connection that is established with `window`. `draw` is a random
    /// number of the run.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn create(&self, window: &mut Window, now: Nanos, draw: u32) -> Result<Box<dyn Policy>, Fault>;

    /// Called after [`Factory::create`] has failed.
    fn on_fault(&self, now: Nanos, fault: &Fault);
}

params! {
    "external": "";

    /// Parameters of an external control.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Name, source and parameters of the policy.
        spec: Spec = unset(),
        /// Whether the policy sets cwnd also during loss recovery.
        #[serde(default)]
        owns_window: bool = unset(),
        /// Whether the policy itself reacts to marks in `on_ack`, and requests an exact echo of
        /// each mark. If false, the transport starts a reduction when the peer echoes a mark.
        #[serde(default)]
        answers_marks: bool = unset(),
        /// Code of the policy.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns parameters with default values for a policy in Rust; `name` identifies the policy.
    pub fn bound(name: &str, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), code: Code::new(factory), ..Self::default() }
    }
}

impl ControlParams for Params {
    type Control = External;

    fn ecn(&self) -> EcnUse {
        if self.answers_marks { EcnUse::Exact } else { EcnUse::Host }
    }

    fn build(&self, _host: Host, _window: &Window) -> External {
        External::new(self)
    }
}

/// A control with an external policy.
pub struct External {
    owns_window: bool,
    answers_marks: bool,
    code: Code<dyn Factory>,
    policy: Option<Box<dyn Policy>>,
    failed: bool,
    /// Time of the latest call that had a time, in nanoseconds.
    now: Nanos,
}

impl Clone for External {
    fn clone(&self) -> Self {
        Self {
            code: self.code.clone(),
            policy: self.policy.as_ref().map(|policy| policy.copy()),
            ..*self
        }
    }
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl External {
    /// Returns the control of a new connection. Its policy is created when the connection is
    /// established.
    ///
    /// # Panics
    /// Panics if the parameters are not bound to their code.
    pub fn new(params: &Params) -> Self {
        let _ = params.code.of(&params.spec);
        Self {
            owns_window: params.owns_window,
            answers_marks: params.answers_marks,
            code: params.code.clone(),
            policy: None,
            failed: false,
            now: 0,
        }
    }

    /// Calls the policy through `ask`, and applies its changes to `window` if the contract permits
    /// them. Returns the result of `ask`; `None` after a fault.
    fn ask<T>(
        &mut self,
        window: &mut Window,
        ask: impl FnOnce(&mut dyn Policy, &mut Window) -> Result<T, Fault>,
        allow: impl FnOnce(&T, &Window) -> Result<(), Fault>,
    ) -> Option<T> {
        let policy = self.policy.as_deref_mut().filter(|_| !self.failed)?;
        let mut changed = *window;
        let answer = ask(policy, &mut changed).and_then(|answer| {
            within(window, &changed)?;
            allow(&answer, &changed)?;
            Ok(answer)
        });
        match answer {
            Ok(answer) => {
                *window = changed;
                Some(answer)
            }
            Err(fault) => {
                self.failed = true;
                policy.on_fault(self.now, &fault);
                None
            }
        }
    }
}

/// Checks the rules of the contract for a changed window.
fn within(before: &Window, window: &Window) -> Result<(), Fault> {
    let Window { cwnd, ssthresh, mss } = *window;
    if mss != before.mss {
        return fault("mss was changed; only the transport may set the segment size");
    }
    if cwnd < mss || cwnd > MAX_WINDOW.max(mss) {
        return fault(format!(
            "cwnd was set to {cwnd} bytes; it must be at least one segment ({mss}) and at most \
             {MAX_WINDOW}"
        ));
    }
    if ssthresh < window.floor() {
        return fault(format!(
            "ssthresh was set to {ssthresh} bytes; it must be at least two segments ({})",
            window.floor()
        ));
    }
    Ok(())
}

/// Checks the rules of the contract for a change of cwnd by an acknowledgement.
fn answers(before: u64, after: u64, ack: &Ack, answers_marks: bool) -> Result<(), Fault> {
    let (did, why) = if after > before && !ack.cwnd_limited {
        ("raised", "the window did not limit the sender (`ack.cwnd_limited` is false, RFC 7661)")
    } else if after > before && !ack.may_grow {
        ("raised", "the transport permits no growth (`ack.may_grow` is false)")
    } else if after < before && ack.in_recovery && !(answers_marks && ack.marked > 0) {
        ("lowered", "the transport sets cwnd while it recovers from losses (`ack.in_recovery`)")
    } else {
        return Ok(());
    };
    fault(format!("cwnd was {did} from {before} to {after} bytes, but {why}"))
}

fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(message.into()))
}

impl Control for External {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        if let Some(policy) = &self.policy {
            policy.state(visit);
        }
    }

    fn on_start(&mut self, window: &mut Window, start: &Start) {
        let Start { now, draw, .. } = *start;
        self.now = now;
        let Some(factory) = self.code.get() else { return };
        let mut initial = *window;
        match factory.create(&mut initial, now, draw) {
            Ok(policy) => {
                self.policy = Some(policy);
                let begin = |_: &mut dyn Policy, window: &mut Window| {
                    *window = initial;
                    Ok(())
                };
                self.ask(window, begin, |(), _| Ok(()));
            }
            Err(fault) => {
                self.failed = true;
                factory.on_fault(now, &fault);
            }
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.now = ack.now;
        let (cwnd, exempt, marks) = (window.cwnd, self.owns_window, self.answers_marks);
        self.ask(
            window,
            |policy, window| policy.on_ack(window, ack),
            |(), after| if exempt { Ok(()) } else { answers(cwnd, after.cwnd, ack, marks) },
        );
    }

    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, now: Nanos) -> u64 {
        self.now = now;
        let (cwnd, floor) = (window.cwnd, window.floor());
        let answer = self.ask(
            &mut window.clone(),
            |policy, window| policy.reduce(window, flight, cause, now),
            |&ssthresh, _| match ssthresh {
                ssthresh if ssthresh >= floor => Ok(()),
                _ => fault(format!(
"`reduce` returned {ssthresh} bytes; the new ssthresh must be at least two segments \
                     ({floor})"
                )),
            },
        );
        match answer {
            Some(ssthresh) if self.owns_window => ssthresh,
            Some(ssthresh) => ssthresh.min(cwnd.max(floor)),
            None => reno::half(window, flight),
        }
    }

    fn on_undo(&mut self) {
        let any = &mut Window::new(1, 1);
        self.ask(any, |policy, _| policy.on_undo(), |(), _| Ok(()));
    }

    fn on_recovery_exit(&mut self, window: &mut Window) {
        self.ask(window, |policy, window| policy.on_recovery_exit(window), |(), _| Ok(()));
    }

    fn on_restart(&mut self, window: &mut Window, now: Nanos, idle: Nanos) {
        self.now = now;
        let ask =
            |policy: &mut dyn Policy, window: &mut Window| policy.on_restart(window, now, idle);
        self.ask(&mut window.clone(), ask, |(), _| Ok(()));
    }

    fn pacing_rate(&self) -> Option<u64> {
        let policy = self.policy.as_deref().filter(|_| !self.failed)?;
        policy.pacing_rate().map(|rate| rate.max(1))
    }

    fn super_packet(&self) -> SuperPacket {
        let policy = self.policy.as_deref().filter(|_| !self.failed);
        policy.map_or_else(SuperPacket::default, Policy::super_packet)
    }

    fn owns_window(&self) -> bool {
        self.owns_window
    }

    fn answers_marks(&self) -> bool {
        self.answers_marks
    }

    fn wants_rate(&self) -> bool {
        true
    }
}
