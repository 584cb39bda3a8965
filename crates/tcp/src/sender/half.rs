//! The sending half of an end, which many ends never use: a receiver of data writes none.
//!
//! Idea: until the application writes or closes, the half keeps little more than the peer's window
//! and the handshake's results. The first write, or an acknowledgement that needs a sender, creates
//! the [`Sender`] from these.
//! Invariant: a quiet half has sent no data and no FIN. Its methods return what a sender created
//! together with the connection would return, so the time of the sender's creation changes no
//! result.

use super::agreed::Agreed;
use super::ecn::EcnSender;
use super::recovery::Phase;
use super::space::SendSpace;
use super::{Counters, Output, Sender, initial_window};
use crate::params::Params;
use crate::receiver::NEVER;
use crate::rtt::Rtt;
use crate::segment::{Flags, Segment};
use sojourn_congestion::Window;
use sojourn_units::Nanos;

/// Round-trip times in nanoseconds, 0 without a sample, and the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    pub(crate) smoothed: Nanos,
    pub(crate) least: Nanos,
    pub(crate) latest: Nanos,
    /// The retransmission timeout without backoff.
    pub(crate) timeout: Nanos,
}

impl From<&Rtt> for RoundTrip {
    fn from(rtt: &Rtt) -> Self {
        Self { smoothed: rtt.srtt(), least: rtt.min(), latest: rtt.latest(), timeout: rtt.rto() }
    }
}

/// A sending half without a sender.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    space: SendSpace,
    round_trip: RoundTrip,
    window: Window,
    ecn: EcnSender,
    agreed: Option<Agreed>,
    events: u32,
    rtos: u32,
    draw: u32,
    /// Whether the host's queue paces; `None` if segments do not leave through such a queue.
    host_queue: Option<(bool, bool)>,
}

/// The sending half of a connection's end.
#[derive(Clone, Debug)]
pub(crate) enum Half {
    /// There is no sender yet.
    Quiet(Box<Quiet>),
    /// There is a sender.
    Sending(Box<Sender>),
}

/// Evaluates an expression on either variant of a [`Half`].
macro_rules! either {
    ($half:expr, $form:ident => $field:expr) => {
        match $half {
            Half::Quiet($form) => $field,
            Half::Sending($form) => $field,
        }
    };
}

impl Half {
    pub(crate) fn new(params: &Params) -> Self {
        Self::Quiet(Box::new(Quiet {
            space: SendSpace::default(),
            round_trip: (&Rtt::new(params)).into(),
            window: Window::new(u64::from(params.mss), u64::from(params.initial_window)),
            ecn: EcnSender::default(),
            agreed: None,
            events: 0,
            rtos: 0,
            draw: 0,
            host_queue: None,
        }))
    }

    /// Returns the sender; `None` if it has not been created yet.
    #[inline]
    pub(crate) fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Quiet(_) => None,
            Self::Sending(sender) => Some(sender),
        }
    }

    /// Returns the sender for a change; `None` if it has not been created yet.
    #[inline]
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Self::Quiet(_) => None,
            Self::Sending(sender) => Some(sender),
        }
    }

    /// Returns the sender, which the first call creates.
    #[inline]
    pub(crate) fn wake(&mut self, params: &Params) -> &mut Sender {
        if let Self::Quiet(quiet) = self {
            *self = Self::Sending(quiet.sender(params));
        }
        match self {
            Self::Quiet(_) => unreachable!("the sender was just made"),
            Self::Sending(sender) => sender,
        }
    }

    /// Takes the results of the handshake.
    pub(crate) fn establish(&mut self, params: &Params, agreed: Agreed) {
        match self {
            Self::Quiet(quiet) => quiet.establish(params, agreed),
            Self::Sending(sender) => sender.establish(params, &agreed),
        }
    }

    /// Makes segments leave through a queue of the host. `paces`: whether this queue paces, `supers`:
    /// whether it holds super-packets as wholes. Call this before the connection is established.
    pub(crate) fn leave_by_host_queue(&mut self, paces: bool, supers: bool) {
        match self {
            Self::Quiet(quiet) => quiet.host_queue = Some((paces, supers)),
            Self::Sending(sender) => sender.leave_by_host_queue(paces, supers),
        }
    }

    /// Gives the congestion control a random number, before the connection is established.
    pub(crate) fn set_draw(&mut self, draw: u32) {
        either!(self, form => form.draw = draw);
    }

    pub(crate) fn space(&self) -> &SendSpace {
        either!(self, form => &form.space)
    }

    pub(crate) fn space_mut(&mut self) -> &mut SendSpace {
        either!(self, form => &mut form.space)
    }

    #[inline]
    pub(crate) fn round_trip(&self) -> RoundTrip {
        match self {
            Self::Quiet(quiet) => quiet.round_trip,
            Self::Sending(sender) => (&sender.rtt).into(),
        }
    }

    pub(crate) fn window(&self) -> &Window {
        either!(self, form => &form.window)
    }

    pub(crate) fn ecn_mut(&mut self) -> &mut EcnSender {
        either!(self, form => &mut form.ecn)
    }

    /// Counts an event of a trace.
    pub(crate) fn count_event(&mut self) {
        match self {
            Self::Quiet(quiet) => quiet.events += 1,
            Self::Sending(sender) => sender.frequent.events += 1,
        }
    }

    /// Counts a SYN's timeout.
    pub(crate) fn count_timeout(&mut self) {
        match self {
            Self::Quiet(quiet) => quiet.rtos += 1,
            Self::Sending(sender) => sender.others.rtos += 1,
        }
        self.count_event();
    }

    #[inline]
    pub(crate) fn events(&self) -> u64 {
        match self {
            Self::Quiet(quiet) => u64::from(quiet.events),
            Self::Sending(sender) => sender.frequent.events,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        match self {
            Self::Quiet(quiet) => quiet.counters(),
            Self::Sending(sender) => sender.counters(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.sender().map_or(Phase::Open, |sender| sender.recovery.phase)
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.sender().map_or(0, Sender::unsent)
    }

    /// Returns whether the FIN is acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.sender().is_some_and(Sender::fin_acked)
    }

    /// Returns whether the application writes no more.
    pub(crate) fn is_closing(&self) -> bool {
        self.sender().is_some_and(|sender| sender.stream.is_finished())
    }

    /// Returns whether all written data is acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Quiet(quiet) => quiet.space.una > 0 && quiet.space.outstanding() == 0,
            Self::Sending(sender) => sender.is_finished(),
        }
    }

    /// Returns the bytes in flight by the sender's estimate.
    pub(crate) fn pipe(&self) -> u64 {
        match self {
            Self::Quiet(quiet) => quiet.space.outstanding(),
            Self::Sending(sender) => sender.pipe(),
        }
    }

    /// Takes an acknowledgement, with `ack <= nxt`.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        now: Nanos,
        segment: &Segment,
        echo: Option<u32>,
        params: &Params,
    ) {
        if let Self::Quiet(quiet) = self
            && quiet.takes(segment)
        {
            return;
        }
        self.wake(params).on_ack(now, segment, echo);
    }

    /// Returns the next segment to send, if any.
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Output> {
        self.sender_mut()?.poll(now)
    }

    /// Returns when the sender's next timer expires; [`NEVER`] without one.
    pub(crate) fn deadline(&self) -> Nanos {
        self.sender().map_or(NEVER, Sender::deadline)
    }
}

impl Quiet {
    fn establish(&mut self, params: &Params, agreed: Agreed) {
        self.window = Window::new(agreed.mss, initial_window(params, agreed.lost_syns));
        self.ecn = EcnSender::new(agreed.ecn);
        self.space.establish();
        let mut rtt = Rtt::new(params);
        rtt.establish(params, agreed.at, agreed.rtt, agreed.lost_syns);
        self.round_trip = (&rtt).into();
        self.agreed = Some(agreed);
    }

    /// Creates the sender, in the state that it would have if it had been created with the
    /// connection.
    #[cold]
    fn sender(&self, params: &Params) -> Box<Sender> {
        let mut sender = Box::new(Sender::new(params));
        sender.draw = self.draw;
        if let Some((paces, supers)) = self.host_queue {
            sender.leave_by_host_queue(paces, supers);
        }
        if let Some(agreed) = &self.agreed {
            sender.establish(params, agreed);
        }
        sender.space = self.space;
        sender.ecn = self.ecn.clone();
        sender.frequent.events = self.events.into();
        if self.rtos > 0 {
            sender.others.rtos = self.rtos.into();
        }
        sender
    }

    fn counters(&self) -> Counters {
        let (rtos, events) = (self.rtos.into(), self.events.into());
        Counters { rtos, events, ..Counters::default() }
    }

    /// Takes an acknowledgement that is old or reports only the window and AccECN's counters.
    /// Returns whether it was such an acknowledgement.
    #[inline]
    fn takes(&mut self, segment: &Segment) -> bool {
        let is_old = segment.ack < self.space.una;
        let is_plain = !segment.has_sack() && (self.ecn.counts() || !segment.flags.has(Flags::ECE));
        if is_plain && !is_old {
            self.ecn.count(segment, 0, self.window.mss);
            self.space.on_window(segment.ack, segment.window);
        }
        is_plain || is_old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Ecn;
    use sojourn_units::{EPOCH, MILLISECOND, SECOND};

    const AGREED: Agreed = Agreed {
        at: EPOCH + SECOND,
        mss: 1448,
        sack: true,
        ecn: Ecn::Classic,
        lost_syns: 0,
        rtt: Some(20 * MILLISECOND),
    };

    /// Both orders of establishing and writing give the same sender.
    #[test]
    fn it_does_not_matter_when_the_sender_is_made() {
        for control in ["cubic", "bbr", "bbr3", "reno", "dctcp", "prague"] {
            let params = Params::parse(control).unwrap();
            let halves = [true, false].map(|early| {
                let mut half = Half::new(&params);
                half.set_draw(4);
                if early {
                    half.wake(&params);
                }
                half.count_timeout();
                half.establish(&params, AGREED);
                half.space_mut().on_window(1, 30_000);
                let ack = Segment::new(1, 1, Flags::ACK);
                half.on_ack(EPOCH + 2 * SECOND, &ack, None, &params);
                assert_eq!(half.sender().is_some(), early, "{control}");
                half.wake(&params);
                format!("{half:?}")
            });
            assert_eq!(halves[0], halves[1], "{control}");
        }
    }

    #[test]
    fn a_quiet_half_answers_as_a_sender_without_data_does() {
        let params = Params::default();
        let mut quiet = Half::new(&params);
        let mut sending = Half::new(&params);
        sending.wake(&params);
        let seen = |half: &Half| {
            (
                (half.phase(), half.unsent(), half.fin_acked(), half.is_closing()),
                (half.is_finished(), half.pipe(), half.deadline(), *half.window()),
                (half.counters(), half.round_trip(), half.space().usable()),
            )
        };
        assert_eq!(seen(&quiet), seen(&sending));
        for half in [&mut quiet, &mut sending] {
            half.establish(&params, AGREED);
            half.on_ack(EPOCH + 2 * SECOND, &Segment::new(1, 1, Flags::ACK), None, &params);
            assert!(half.poll(EPOCH + 2 * SECOND).is_none());
        }
        assert_eq!(seen(&quiet), seen(&sending));
    }
}
