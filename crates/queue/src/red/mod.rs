//! RED: random early detection, early drops by the average backlog.
//!
//! Source: Floyd, Jacobson (1993); Linux `sch_red.c` and `red.h`, `tc`'s `tc_red.c`. `adaptive` is
//! that of Floyd, Gummadi, Shenker (2001) in Linux's form, `feng` that of Feng et al., "A
//! self-configuring RED gateway" (1999). `gentle` (Floyd 2000) and `wait` are those of ns-2.
//! `gentle-limit` is a gentle ramp that ends at `limit`.
//!
//! An exponentially weighted average of the backlog is updated at every arrival, and decays while
//! the queue is empty. While the average is between `min` and `max`, arrivals are dropped (or
//! marked) with a probability that grows up to `probability`; counting since the last drop makes
//! the gaps between drops even. Without a gentle ramp all arrivals at or above `max` are dropped.
//!
//! Invariants: no early drop below `min`; without `gentle` and `nodrop`, arrivals at or above `max`
//! are dropped or marked; at a constant average the gaps between early drops are uniform.
//!
//! The defaults of `min`, `max` and `burst`, the averaging weight and the idle table are those of
//! iproute2 6.1. Its idle table takes ticks of 64 ns for microseconds, and natural logarithms for
//! binary ones, so that the average decays about 22 times too slowly; this error is reproduced.
//! iproute2 6.1 passes `adaptive` in an attribute that Linux 6.1 ignores when it starts the timer;
//! this error is not reproduced, so `adaptive` works here.

mod average;
mod params;
mod policy;
mod words;

pub(crate) use params::kernel_fraction;
pub use params::{Adaptation, Averaging, Options, Params, Ramp};
pub(crate) use policy::Policy;
pub use policy::{State, reciprocal};

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Call, Dequeue, Discipline, Draws, Return, Sink, Totals};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use policy::Verdict;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, WordError};
use sojourn_units::{Nanos, jiffies};
use std::cmp::Ordering;

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((self.unit, self.limit))
    }

    fn settle(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.depend(given, device)
    }

    /// Reads a change as `tc`. A change with `limit` states all numbers anew, but flags, weight and
    /// unit are kept. A change without `limit` keeps all values that it does not name.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let Self { max_p, avpkt, bandwidth, .. } = Self::new(device);
        let fresh = Self { min: 0, max: 0, max_p, avpkt, bandwidth, ..*self };
        if given.has("limit") { fresh } else { *self }.with(given, device)
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        self.assumptions(given)
    }

    fn in_kernel(&self) -> Result<(), &'static str> {
        self.kernel_lacks()
    }
}

/// A RED queue.
#[derive(Clone, Debug)]
pub struct Red<P> {
    policy: Policy,
    totals: Totals,
    fifo: PacketFifo<P>,
    timer: Option<Nanos>,
}

impl<P: Packet> Configured<P, Params> for Red<P> {
    /// # Panics
    /// If [`crate::Params::parse`] would reject `params`.
    fn new(params: Params, now: Nanos) -> Self {
        Self::with_policy(Policy::new(params, now), now)
    }

    fn params(&self) -> &Params {
        self.policy.params()
    }

    /// Replaces the parameters. As in the kernel, all queued packets are dropped and the average
    /// starts anew.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.fifo.cut(0, &mut self.totals, sink);
        self.policy.change(params, now);
        self.arm(now);
    }
}

impl<P: Packet> Red<P> {
    /// Returns a queue with the numbers that `tc` would send; they replace those in `params`.
    pub fn with_options(params: Params, options: &Options, now: Nanos) -> Self {
        Self::with_policy(Policy::with_options(params, options, now), now)
    }

    fn with_policy(policy: Policy, now: Nanos) -> Self {
        let (totals, fifo) = (Totals::default(), PacketFifo::default());
        let mut red = Self { policy, totals, fifo, timer: None };
        red.arm(now);
        red
    }

    fn arm(&mut self, now: Nanos) {
        let Params { hz, adaptation, .. } = *self.policy.params();
        self.timer =
            (adaptation == Adaptation::Floyd).then(|| jiffies::after(now, u64::from(hz / 2), hz));
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.params().unit {
            Unit::Bytes => self.fifo.bytes(),
            Unit::Packets => self.fifo.len() as u64,
        }
    }

    #[inline]
    fn judge(&mut self, draws: &mut impl Draws) -> Verdict {
        if self.policy.against_min() == Ordering::Less {
            self.policy.below()
        } else if self.policy.against_end() == Ordering::Less {
            self.policy.between(draws)
        } else {
            self.policy.above()
        }
    }
}

viewed!(Red in fifo);

impl<P: Packet> Discipline<P> for Red<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.policy.average(call.now, self.backlog());
        let verdict = self.judge(call.draws);
        let Some(packet) = self.policy.carry_out(verdict, packet, &mut self.totals, call.sink)
        else {
            return Return::Congestion;
        };
        let Params { unit, limit, .. } = *self.params();
        if unit.fits(limit, &self.fifo, &packet) {
            self.fifo.push(call.now, packet);
            return Return::Success;
        }
        self.policy.overflow(packet, &mut self.totals, call.sink);
        Return::Drop
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        let head = self.fifo.pop();
        if head.is_none() {
            self.policy.idle(call.now);
        }
        self.totals.leave(head.map(|queued| queued.packet))
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        self.policy.adapt(now);
        self.arm(now);
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.fifo.head())
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.policy.visit_state(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        self.policy.visit_counters(visit);
    }
}
