//! dAQM: drops packets depending on sojourn time, queue length and their derivatives.
//!
//! Source: S. Shu, "Adaptive In-Network Queue Management based on the Stochasticity of Network
//! Flows" (thesis, Groningen, 2023), sections 4 and 5.2.3; S. Saleh, S. Shu, B. Koldehofe, "dAQM"
//! (IFIP Networking, 2024) and its published code.
//!
//! Before a packet leaves, eight features of the queue are compared with thresholds: the oldest
//! packet's sojourn time, the queue length, and three derivatives of each. The first feature above
//! its threshold drops the packet and starts a dropping phase. In that phase arrivals are dropped
//! with the feature's probability, and features are not evaluated. Measurements do not change the
//! queue. The published code differs from the paper; [`published`] has these quirks, which are off
//! by default.
//!
//! Invariants without quirks: a packet is dropped only on overflow, by a feature above its
//! threshold, or in the dropping phase; a phase drops at most one packet at the head; features are
//! evaluated only with more than five packets in the queue.

mod feature;
mod lengths;
mod params;
pub mod published;
mod words;

pub use feature::{Feature, Interval, PerFeature, derivatives};
pub use params::Setting;
pub use words::Params;

use crate::declaration::{Configured, DisciplineParams};
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, visit_fields,
};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use feature::{VALUES, millis, of_waits, waits};
use lengths::{Clock, Lengths};
use published::{LITERAL_LENGTH, Quirk};
use sojourn_units::words::Given;
use sojourn_units::{EPOCH, Nanos};

/// A dropping phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Phase {
    /// Time at which the phase ends; 0 before the first phase.
    until: Nanos,
    /// Drop probability of arrivals, in units of 2^-32.
    rate: u32,
    /// Feature that started the phase.
    hit: Option<Feature>,
}

/// Result of the evaluation before a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The features were not evaluated.
    Passed,
    /// No feature is above its threshold.
    Calm,
    /// This feature is above its threshold.
    Hit(Feature),
}

/// Counters of dAQM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    overflow: u64,
    evaluated: u64,
    hits: PerFeature<u64>,
    phase_drops: u64,
    measurement: u64,
}

/// Names of the counters of hits, in the order of the features' numbers.
const HITS: [&str; 8] =
    ["hits_s", "hits_s1", "hits_s2", "hits_s3", "hits_q", "hits_q1", "hits_q2", "hits_q3"];

impl DisciplineParams for Params {
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("Linux has no discipline that drops by derivatives");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        self.without_effect(given)
    }
}

/// A dAQM queue.
#[derive(Clone, Debug)]
pub struct Daqm<P> {
    params: Params,
    fifo: PacketFifo<P>,
    created_at: Nanos,
    clock: Clock,
    lengths: Lengths,
    phase: Phase,
    /// Whether the last packet sent followed a hit ([`Quirk::Flag`]).
    flagged: bool,
    /// Values of the features at the last evaluation.
    values: PerFeature<f64>,
    counters: Counters,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for Daqm<P> {
    fn new(params: Params, now: Nanos) -> Self {
        Self {
            params,
            fifo: PacketFifo::default(),
            created_at: now,
            clock: Clock::new(params.schedule(), now),
            lengths: Lengths::default(),
            phase: Phase::default(),
            flagged: false,
            values: PerFeature::default(),
            counters: Counters::default(),
            totals: Totals::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If the new limit is exceeded, the oldest packets are dropped. A
    /// dropping phase continues unchanged.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.clock.change(params.schedule(), now);
        self.fifo.cut(params.limit as usize, &mut self.totals, sink);
    }
}

impl<P: Packet> Daqm<P> {
    fn has(&self, quirk: Quirk) -> bool {
        self.params.published.has(quirk)
    }

    /// Returns whether the features must be evaluated for the packet that leaves at `now`.
    fn is_due(&self, now: Nanos) -> bool {
        let start = if self.has(Quirk::Absolute) { EPOCH } else { self.created_at };
        // The published code measures, and discards, only the packets after the packet to send, so
        // it needs one more packet.
        let spare = usize::from(self.has(Quirk::Behind) || self.has(Quirk::Discards));
        now.saturating_sub(start) > self.params.target
            && self.fifo.len() > VALUES + spare
            && now >= self.phase.until
            && !(self.flagged && self.has(Quirk::Flag))
    }

    /// Returns the values of the features at `now`.
    fn measure(&self, now: Nanos) -> PerFeature<f64> {
        let first = usize::from(self.has(Quirk::Behind));
        let waits = waits(&self.fifo, first, now);
        let interval = self.params.interval().millis(&self.fifo);
        let [s1, s2, s3] = of_waits(waits, interval, self.has(Quirk::WholeMs));
        let [q1, q2, q3] = self.lengths.derivatives;
        let q = if self.has(Quirk::Literal) {
            LITERAL_LENGTH
        } else {
            (self.fifo.len() - first) as f64
        };
        PerFeature { s: millis(waits[0]), s1, s2, s3, q, q1, q2, q3 }
    }

    /// Evaluates the features for the packet that leaves at `now`. The first one above its
    /// threshold decides.
    fn evaluate(&mut self, now: Nanos) -> Verdict {
        if !self.is_due(now) {
            return Verdict::Passed;
        }
        self.values = self.measure(now);
        self.counters.evaluated += 1;
        let (params, values) = (&self.params, &self.values);
        let exceeds = |feature: Feature| {
            let value = values.of(feature).abs();
            params.threshold(feature).is_some_and(|threshold| value > threshold)
        };
        let hit = Feature::CHECKED.into_iter().find(|feature| exceeds(*feature));
        hit.map_or(Verdict::Calm, Verdict::Hit)
    }

    /// Drops the packets whose sojourn times were measured ([`Quirk::Discards`]).
    fn discard_measured(&mut self, sink: &mut impl Sink<P>) {
        for queued in std::iter::from_fn(|| self.fifo.pop()).take(VALUES) {
            self.counters.measurement += 1;
            self.totals.drops += 1;
            sink.dropped(queued.packet, DropReason::Measurement, true);
        }
    }

    fn begin_phase(&mut self, now: Nanos, feature: Feature) {
        let (rate, duration) = self.params.phase(feature);
        self.phase = Phase { until: now.saturating_add(duration), rate, hit: Some(feature) };
        *self.counters.hits.of_mut(feature) += 1;
    }
}

viewed!(Daqm in fifo);

impl<P: Packet> Discipline<P> for Daqm<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let reason = if self.fifo.len() >= self.params.limit as usize {
            self.counters.overflow += 1;
            DropReason::Overflow
        } else if call.now < self.phase.until && call.draws.draw_u32() < self.phase.rate {
            self.counters.phase_drops += 1;
            DropReason::Early
        } else {
            self.fifo.push(call.now, packet);
            return Return::Success;
        };
        self.totals.refuse(packet, reason, call.sink);
        Return::Drop
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        let verdict = self.evaluate(call.now);
        let Some(mut head) = self.fifo.pop() else { return Dequeue::Empty };
        self.clock.departed(call.now);
        if verdict != Verdict::Passed && self.has(Quirk::Discards) {
            self.discard_measured(call.sink);
        }
        self.flagged = matches!(verdict, Verdict::Hit(_));
        if let Verdict::Hit(feature) = verdict {
            self.begin_phase(call.now, feature);
            self.totals.drops += 1;
            call.sink.dropped(head.packet, DropReason::Forced, true);
            let Some(next) = self.fifo.pop() else { return Dequeue::Empty };
            head = next;
        }
        self.fifo.leaves(head.at);
        self.totals.sent(head.packet.len());
        Dequeue::Packet(head.packet)
    }

    fn next_timer(&self) -> Option<Nanos> {
        Some(self.clock.due())
    }

    fn on_timer(&mut self, now: Nanos) {
        let tumbling = self.has(Quirk::Tumbling);
        for _ in 0..self.clock.samples(now) {
            self.lengths.note(self.fifo.len(), tumbling);
        }
    }

    /// Visits the phase, and the features' values at the last evaluation in thousandths of their
    /// units. `hit` is the number of the phase's feature from 1 on; 0 before the first phase.
    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("phase_until", self.phase.until.into());
        visit("phase_rate", self.phase.rate.into());
        visit("hit", self.phase.hit.map_or(0, |feature| feature as i128 + 1));
        for feature in Feature::ALL {
            visit(feature.name(), (self.values.of(feature) * 1000.0).round() as i128);
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit_fields!(visit, self.counters, [overflow, evaluated]);
        for (name, feature) in HITS.into_iter().zip(Feature::ALL) {
            visit(name, *self.counters.hits.of(feature));
        }
        visit_fields!(visit, self.counters, [phase_drops, measurement]);
    }
}
