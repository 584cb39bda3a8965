//! TBF: token bucket filter.
//!
//! Source: Linux `sch_tbf.c`.
//!
//! A bucket fills with time at `rate`, up to the transmission time of `burst` bytes. A packet
//! leaves immediately if the bucket holds its transmission time. Otherwise it waits until the
//! bucket does, and all packets after it wait too. With `peakrate`, a second bucket, which fills at
//! this rate and holds `mtu` bytes, spreads bursts over time. Packets wait in a child discipline,
//! by default a FIFO with a limit in bytes.
//!
//! The length of the child's next packet must be known before it leaves ([`Peek`]). FIFOs, RED,
//! CHOKe, SFB and SKBPRIO show the packet in the queue. Other children dequeue it, with all effects
//! of a departure, and it waits outside the child.
//!
//! Invariants: until parameters change, the bytes sent in a period are at most the rate times the
//! period plus one `burst`; packets leave in the child's order; a change drops no packets itself.

mod params;

pub use crate::speed::{LinkLayer, Speed};
pub use params::{Constants, Params};

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, Leaf, Return, Sink, Totals, View, offer,
};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use crate::peek::Peek;
use crate::queue::Queue;
use crate::tc::{Inside, Nested};
use sojourn_units::clocking::rounded;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, Text, WordError};
use sojourn_units::{Nanos, Rate};

impl DisciplineParams for Params {
    /// Returns the limit of the child. If the child must dequeue its next packet for inspection,
    /// the token bucket may hold one packet more.
    fn limit(&self) -> Option<(Unit, u32)> {
        match &self.child {
            Some(child) => child.limit(),
            None => Some((Unit::Bytes, self.limit)),
        }
    }

    fn settle(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.complete(given, device)?;
        self.drop_idle_limit();
        Ok(())
    }

    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        self.after(given, device)
    }

    fn has_handle(&self, handle: u16) -> bool {
        self.child.as_ref().is_some_and(|child| child.has_handle(handle))
    }

    fn paces(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.paces())
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        let constants = self.constants();
        let rate = rounded("rate", self.rate.bits(), |length| constants.rate.time(length));
        let peak = self
            .peakrate
            .zip(constants.peak)
            .and_then(|(rate, peak)| rounded("peakrate", rate.bits(), |length| peak.time(length)));
        let [child, peakrate] = [self.child.is_some(), self.peakrate.is_some()];
        let idle = [
            ("limit", child, "the limit of its child acts"),
            ("latency", child, "the limit of its child acts"),
            ("mtu", !peakrate, "it acts only with `peakrate`"),
            ("minburst", !peakrate, "it acts only with `peakrate`"),
        ];
        let idle = idle.into_iter().filter(|(word, is_idle, _)| *is_idle && given.has(word));
        let idle = idle.map(|(word, _, why)| format!("`{word}` has no effect: {why}"));
        idle.chain(self.small_bucket()).chain(rate).chain(peak).collect()
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn inside(&self) -> Option<Inside<'_>> {
        let child = self.child.as_deref();
        let children = child.map(|child| (1, child as &dyn Nested)).into_iter().collect();
        Some(Inside { children, ..Inside::default() })
    }

    /// Writes the words for `tc`. They include a limit, which `tc` requires even with a child,
    /// where it has no effect.
    fn to_tc(&self) -> String {
        let limit = if self.limit == 0 { self.burst } else { self.limit };
        Self { child: None, limit, ..self.clone() }.write(Text::new(Self::TABLE.name)).done()
    }
}

/// A token bucket and its child discipline.
#[derive(Clone, Debug)]
pub struct Tbf<P> {
    params: Params,
    constants: Constants,
    child: Peek<Queue<P>, P>,
    /// Content of the bucket at the time `checked`, as transmission time in nanoseconds.
    tokens: i64,
    /// Content of the peak rate's bucket at the time `checked`, as transmission time in
    /// nanoseconds.
    peak_tokens: i64,
    /// Time at which the last packet left.
    checked: Nanos,
    /// Time of the next `dequeue` that the last call requested; `None` without a request.
    wake: Option<Nanos>,
    /// Number of packets offered since creation.
    offered: u64,
    totals: Totals,
}

impl<P: Packet> Tbf<P> {
    /// Returns a token bucket with these constants, created at `now`.
    pub fn with_constants(params: Params, constants: Constants, now: Nanos) -> Self {
        Self {
            child: Peek::new(params.child().build(now)),
            params,
            constants,
            tokens: constants.buffer,
            peak_tokens: constants.mtu,
            checked: now,
            wake: None,
            offered: 0,
            totals: Totals::default(),
        }
    }

    /// Replaces parameters and constants, and fills the buckets. The child keeps its discipline;
    /// parameters of another discipline are ignored.
    pub fn change_constants(
        &mut self,
        params: &Params,
        constants: Constants,
        now: Nanos,
        sink: &mut impl Sink<P>,
    ) {
        let child = match self.child.inner_mut().change(&params.child(), now, sink) {
            Ok(()) => params.child.clone(),
            Err(_) => self.params.child.take(),
        };
        self.params = Params { child, ..params.clone() };
        self.constants = constants;
        self.tokens = constants.buffer;
        self.peak_tokens = constants.mtu;
    }

    /// Returns the content of both buckets, in nanoseconds, after a departure of a packet of
    /// `length` bytes at `now`. With a negative content the packet may not leave yet.
    #[inline]
    fn tokens_after(&self, now: Nanos, length: u32) -> (i64, i64) {
        let Constants { buffer, mtu, rate, peak, .. } = &self.constants;
        let since = (now.wrapping_sub(self.checked) as i64).min(*buffer);
        let take = |held: i64, depth: i64, speed: &Speed| {
            held.wrapping_add(since).min(depth).wrapping_sub(speed.time(length) as i64)
        };
        let peak = peak.as_ref().map_or(0, |peak| take(self.peak_tokens, *mtu, peak));
        (take(self.tokens, *buffer, rate), peak)
    }
}

impl<P: Packet> Configured<P, Params> for Tbf<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let constants = params.constants();
        Self::with_constants(params, constants, now)
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters and fills the buckets. Queued packets are kept, unless the child
    /// drops them.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        let constants = params.constants();
        self.change_constants(&params, constants, now, sink);
    }
}

viewed!(Tbf in child);

impl<P: Packet> Discipline<P> for Tbf<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.wake = None;
        if packet.is_super() && packet.len() > self.constants.max_size {
            let frames = call.sink.split(packet);
            let given = frames.into_iter().map(|frame| self.enqueue(frame, call));
            let queued = given.filter(|given| *given == Return::Success).count();
            return if queued > 0 { Return::Success } else { Return::Drop };
        }
        if packet.len() > self.constants.max_size {
            self.offered += 1;
            call.sink.dropped(packet, DropReason::Overflow, false);
            return Return::Drop;
        }
        let (given, packets) = offer(&mut self.child, packet, call);
        self.offered += packets;
        given
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.wake = None;
        let length = match self.child.peek(call) {
            Dequeue::Packet(packet) => packet.len(),
            Dequeue::Empty => return Dequeue::Empty,
            Dequeue::NotBefore(time) => {
                self.wake = Some(time);
                return Dequeue::NotBefore(time);
            }
        };
        let (tokens, peak_tokens) = self.tokens_after(call.now, length);
        if tokens < 0 || peak_tokens < 0 {
            let missing = tokens.wrapping_neg().max(peak_tokens.wrapping_neg());
            let time = call.now.wrapping_add(missing as Nanos);
            self.totals.overlimits += 1;
            self.wake = Some(time);
            return Dequeue::NotBefore(time);
        }
        let given = self.child.dequeue(call);
        if let Dequeue::Packet(packet) = &given {
            self.checked = call.now;
            self.tokens = tokens;
            self.peak_tokens = peak_tokens;
            self.totals.sent(packet.len());
        }
        given
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.wake
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.child.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.child.on_timer(now);
    }

    /// Visits the child's state, if a child is given, and the state of the buckets.
    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        if self.params.child.is_some() {
            self.child.state(visit);
        }
        visit("tokens", self.tokens.into());
        visit("ptokens", self.peak_tokens.into());
        visit("t_c", self.checked.into());
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        self.child.flow_state(flow, visit);
    }

    /// Visits the classes of the child; the token bucket itself has no classes.
    fn leaves(&self, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        self.child.leaves(visit);
    }

    fn restart(&mut self) {
        self.child.restart();
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.child.lists(visit);
    }

    /// Visits the counters of the token bucket, and the counters of the child beyond those that all
    /// disciplines have.
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        // A drop in the child counts as a drop of the token bucket.
        let drops = self.offered - self.totals.packets - self.packets() as u64;
        Totals { drops, ..self.totals }.visit(self, visit);
        let mut number = 0;
        self.child.counters(&mut |name, value| {
            number += 1;
            if number > Totals::COUNT {
                visit(name, value);
            }
        });
    }
}
