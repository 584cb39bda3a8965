//! The sending half of an end, which many ends never use: a receiver of data writes none.
//!
//! Idea: until the application writes or closes, the half keeps only the peer's window and the handshake's results.
//! The first write makes the [`Sender`] from them.
//! Invariant: a quiet half has sent nothing but its SYN. Every question then has the answer that a sender would give
//! which was made with the connection, so when the sender is made changes no result.

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
    #[inline]
    fn from(rtt: &Rtt) -> Self {
        Self { smoothed: rtt.srtt(), least: rtt.min(), latest: rtt.latest(), timeout: rtt.rto() }
    }
}

/// A half that has had nothing to send.
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
    /// Segments leave by a queue of the host, and whether that paces.
    host_queue: Option<bool>,
}

/// The sending half of a connection's end.
#[derive(Clone, Debug)]
pub(crate) enum Half {
    /// Nothing has been written.
    Quiet(Box<Quiet>),
    /// Data or a FIN has been written.
    Sending(Box<Sender>),
}

/// The field of either form.
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

    /// The sender, if there is one.
    #[inline]
    pub(crate) fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Quiet(_) => None,
            Self::Sending(sender) => Some(sender),
        }
    }

    /// See [`Half::sender`].
    #[inline]
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Self::Quiet(_) => None,
            Self::Sending(sender) => Some(sender),
        }
    }

    /// The sender, which is made if there is none.
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

    /// The handshake is done.
    pub(crate) fn establish(&mut self, params: &Params, agreed: Agreed) {
        match self {
            Self::Quiet(quiet) => quiet.establish(params, agreed),
            Self::Sending(sender) => sender.establish(params, &agreed),
        }
    }

    /// Segments leave by a queue of the host, which `paces` or does not. Called before the connection is established.
    pub(crate) fn leave_by_host_queue(&mut self, paces: bool) {
        match self {
            Self::Quiet(quiet) => quiet.host_queue = Some(paces),
            Self::Sending(sender) => sender.leave_by_host_queue(paces),
        }
    }

    /// Gives the congestion control a random number, before the connection is established.
    pub(crate) fn set_draw(&mut self, draw: u32) {
        either!(self, form => form.draw = draw);
    }

    #[inline]
    pub(crate) fn space(&self) -> &SendSpace {
        either!(self, form => &form.space)
    }

    #[inline]
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

    #[inline]
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
            Self::Sending(sender) => sender.events += 1,
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
            Self::Sending(sender) => sender.events,
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

    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.sender().map_or(0, Sender::unsent)
    }

    /// Whether the FIN is acknowledged.
    #[inline]
    pub(crate) fn fin_acked(&self) -> bool {
        self.sender().is_some_and(Sender::fin_acked)
    }

    /// Whether the application writes no more.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.sender().is_some_and(|sender| sender.stream.is_finished())
    }

    /// Whether everything written is acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Quiet(quiet) => quiet.space.una > 0 && quiet.space.outstanding() == 0,
            Self::Sending(sender) => sender.is_finished(),
        }
    }

    /// Bytes in flight by the sender's estimate.
    pub(crate) fn pipe(&self) -> u64 {
        match self {
            Self::Quiet(quiet) => quiet.space.outstanding(),
            Self::Sending(sender) => sender.pipe(),
        }
    }

    /// An acceptable acknowledgement: `ack <= nxt`.
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

    /// The next departure, if any.
    #[inline]
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Output> {
        self.sender_mut()?.poll(now)
    }

    /// The earliest of its timers.
    #[inline]
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

    /// The sender that the connection would have had from the start.
    #[cold]
    fn sender(&self, params: &Params) -> Box<Sender> {
        let mut sender = Box::new(Sender::new(params));
        sender.draw = self.draw;
        if let Some(paces) = self.host_queue {
            sender.leave_by_host_queue(paces);
        }
        if let Some(agreed) = &self.agreed {
            sender.establish(params, agreed);
        }
        sender.space = self.space;
        sender.ecn = self.ecn.clone();
        sender.events = self.events.into();
        if self.rtos > 0 {
            sender.others.rtos = self.rtos.into();
        }
        sender
    }

    fn counters(&self) -> Counters {
        let (rtos, events) = (self.rtos.into(), self.events.into());
        Counters { rtos, events, ..Counters::default() }
    }

    /// Takes an acknowledgement that can tell no more than the window and the marks on bare acknowledgements. Returns
    /// whether it was one.
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
