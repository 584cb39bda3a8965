//! The user's settings of a link's direction.

use crate::trace::Trace;
use sojourn_queue::cake::framing::Cells;
use sojourn_units::{Nanos, Rate, SECOND, choices, data};

/// One direction of a link.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Rate of the transmitter, which is infinitely fast without `rate` and `trace`.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Opportunities to send that the transmitter has instead of a rate; `rate` has precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Bytes that each packet occupies on the link beyond its own length (may be negative). They
    /// count for the time of transmission only, not in the queue.
    #[serde(default)]
    pub overhead: i32,
    /// Cells into which the line cuts each packet with its overhead.
    #[serde(default, skip_serializing_if = "Cells::is_none")]
    pub cells: Cells,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Nanos,
    /// Effects of the wire on packets.
    #[serde(default)]
    pub impairments: Impairments,
    /// The queue before the transmitter.
    pub queue: sojourn_queue::Params,
}

/// Greatest time in a link's parameters: the sum of two such times and a clock fits 64 bits.
pub const LONGEST: Nanos = Nanos::MAX / 8;

/// The size of a packet on a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framing {
    overhead: i32,
    cells: Cells,
}

impl Framing {
    /// Returns the bytes that a frame of `bytes` bytes occupies on the link.
    pub fn occupied(self, bytes: u32) -> u32 {
        self.cells.occupied(bytes.saturating_add_signed(self.overhead))
    }
}

impl Params {
    /// Returns how packets occupy the link.
    pub fn framing(&self) -> Framing {
        Framing { overhead: self.overhead, cells: self.cells }
    }
}

/// Effects of the wire on packets, after netem.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Impairments {
    /// Variation of the delay.
    pub jitter: Option<Jitter>,
    /// Loss of packets.
    pub loss: Loss,
    /// Chance that a packet arrives twice.
    pub duplicate: Chance,
    /// Chance that a packet arrives with one bit flipped.
    pub corrupt: Chance,
    /// Packets that overtake those in flight.
    pub reorder: Option<Reorder>,
    /// Whether packets keep their order in spite of jitter, by waiting for their predecessors.
    /// Netem has no such word.
    pub keep_order: bool,
    /// Whether `loss` marks an ECN-capable packet instead of losing it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// Maximum number of packets on the wire; further packets are lost. `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// A second transmitter, behind the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<WireRate>,
    /// Slots in which packets arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
}

/// A transmitter on the wire: after its delay, a packet waits for those before it, and then for its
/// own transmission (`packet_time_ns` of `sch_netem.c`). Jitter then does not reorder packets.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WireRate {
    /// Rate of this transmitter.
    pub rate: Rate,
    /// Bytes that each packet occupies beyond its own length (may be negative).
    #[serde(default)]
    pub overhead: i32,
    /// Payload of a cell in bytes; 0 if packets are not carried in cells.
    #[serde(default)]
    pub cell: u32,
    /// Bytes that each cell occupies beyond its payload (may be negative).
    #[serde(default)]
    pub cell_overhead: i32,
}

impl WireRate {
    /// Returns the transmission time of a packet of `bytes` bytes, rounded down as in the kernel.
    pub fn transmission_time(&self, bytes: u32) -> Nanos {
        let length = (i64::from(bytes) + i64::from(self.overhead)).max(0) as u64;
        let occupied = match u64::from(self.cell) {
            0 => length,
            cell => {
                let each = (i64::from(self.cell) + i64::from(self.cell_overhead)).max(0) as u64;
                length.div_ceil(cell) * each
            }
        };
        let time = u128::from(occupied) * 8 * u128::from(SECOND) / u128::from(self.rate.bits());
        Nanos::try_from(time).unwrap_or(LONGEST).min(LONGEST)
    }
}

/// Slots: packets gather, and those that are due arrive together when the next slot comes, up to
/// `packets` and `bytes` a slot (`get_slot_next` of `sch_netem.c`).
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Time to the next slot: the shortest, or with a distribution the mean.
    pub delay: Nanos,
    /// Greatest time beyond `delay`, or the unit of the distribution.
    #[serde(default)]
    pub spread: Nanos,
    /// The distribution; without one, times are uniform between `delay` and `delay + spread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<JitterDistribution>,
    /// Maximum number of packets in a slot; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Bytes of a slot; the packet that exceeds them still arrives in the slot. `None` for no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
}

impl Impairments {
    /// Reports values that no text gives: the keys of the value, and what is wrong.
    pub fn check(&self, mut report: impl FnMut(&[&'static str], &'static str)) {
        let loss = match self.loss {
            Loss::None => vec![],
            Loss::Random { probability, correlation } => vec![probability, correlation],
            Loss::Gemodel { p, r, bad_loss, good_loss } => vec![p, r, bad_loss, good_loss],
            Loss::State { p13, p31, p32, p23, p14 } => vec![p13, p31, p32, p23, p14],
        };
        let of = |chance: Chance| vec![chance.probability, chance.correlation];
        let reorder = self.reorder.map_or(vec![], |r| vec![r.probability, r.correlation]);
        let jitter = self.jitter.map_or(vec![], |jitter| vec![jitter.correlation]);
        for (key, shares) in [
            ("loss", loss),
            ("duplicate", of(self.duplicate)),
            ("corrupt", of(self.corrupt)),
            ("reorder", reorder),
            ("jitter", jitter),
        ] {
            if shares.iter().any(|share| !(0.0..=1.0).contains(share)) {
                report(&[key], "probabilities and correlations must be from 0 to 1");
            }
        }
        if self.reorder.is_some_and(|reorder| reorder.gap == 0) {
            report(&["reorder", "gap"], "must be above zero");
        }
        if self.reorder.is_some() && self.keep_order {
            report(&["reorder"], "packets cannot overtake each other with `keep_order`");
        }
        if self.limit == Some(0) {
            report(&["limit"], "must be above zero");
        }
        if self.slot.is_some_and(|slot| slot.packets == Some(0) || slot.bytes == Some(0)) {
            report(&["slot"], "must allow at least a packet and a byte");
        }
    }

    /// Returns whether the wire only delays.
    pub fn is_none(&self) -> bool {
        *self == Self { keep_order: self.keep_order, ..Self::default() }
    }

    /// Returns whether packets may overtake each other.
    pub fn reorders(&self) -> bool {
        let jitter = self.jitter.is_some() && self.rate.is_none();
        !self.keep_order && (jitter || self.reorder.is_some())
    }
}

/// An event with a probability, each draw correlated with the one before.
///
/// As in netem, a draw is the mean of a fresh uniform draw and the last result, weighted by the
/// correlation. The result is no longer uniform: a correlated event with a probability below one half
/// is rarer than its probability says. Use [`Loss::Gemodel`] for bursts with a given loss ratio.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    /// Probability of the event.
    pub probability: f64,
    /// Weight of the last draw in the next, 0 to 1.
    #[serde(default)]
    pub correlation: f64,
}

/// How packets are lost.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[serde(rename_all = "snake_case", tag = "model", deny_unknown_fields)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability.
    Random {
        /// Probability of a loss.
        probability: f64,
        /// Weight of the last draw in the next, see [`Chance`].
        #[serde(default)]
        correlation: f64,
    },
    /// Gilbert-Elliott: a good and a bad state, each with its loss probability. Whether a packet is
    /// lost depends on the state before the packet's transition. The loss ratio in the long run is
    /// (p (1-h) + r (1-k)) / (p + r).
    Gemodel {
        /// Probability of going from good to bad, per packet.
        p: f64,
        /// Probability of going from bad to good, per packet.
        r: f64,
        /// Probability of a loss in the bad state, netem's 1-h.
        bad_loss: f64,
        /// Probability of a loss in the good state, netem's 1-k.
        good_loss: f64,
    },
    /// Salsano's chain of four states, with one step per packet: 1 good, 2 good within a burst of
    /// losses, 3 a loss within a burst, 4 a single loss, which returns to 1. A packet is lost if
    /// the state after its step is 3 or 4. The loss ratio in the long run is (p13/p31 + p14) x,
    /// where x = 1 / (1 + p13/p31 (1 + p32/p23) + p14).
    State {
        /// Probability that a burst of losses begins: state 1 to 3.
        p13: f64,
        /// Probability that the burst ends: state 3 to 1.
        p31: f64,
        /// Probability that packets pass within the burst: state 3 to 2.
        p32: f64,
        /// Probability that the losses of the burst continue: state 2 to 3.
        p23: f64,
        /// Probability of a single loss: state 1 to 4.
        p14: f64,
    },
}

/// Variation of the delay; the delay of a packet never falls below zero.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Half-width of the uniform distribution, or unit of another distribution.
    pub span: Nanos,
    /// Weight of the last draw in the next, see [`Chance`].
    #[serde(default)]
    pub correlation: f64,
    /// Distribution of the variation.
    #[serde(default)]
    pub distribution: JitterDistribution,
}

choices! {
    /// The distributions that iproute2 has for netem, by the formulas of iproute2's tables. Values
    /// are limited to 4 units, as in the tables.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum JitterDistribution {
        /// Uniform in (-1, 1).
        #[default]
        Uniform = "uniform",
        /// Normal with deviation 1.
        Normal = "normal",
        /// Pareto of shape 3, centred and scaled: 4/3 (U^(-1/3) - 3/2).
        Pareto = "pareto",
        /// One quarter normal and three quarters Pareto, of the same draw.
        Paretonormal = "paretonormal",
    }
}

/// A packet overtakes those in flight: it goes without any delay.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Probability that a candidate overtakes.
    pub probability: f64,
    /// Weight of the last draw in the next, see [`Chance`].
    #[serde(default)]
    pub correlation: f64,
    /// A packet is a candidate if at least `gap - 1` delayed packets have passed since the last one
    /// that overtook; with a gap of 1, every packet is a candidate.
    pub gap: u32,
}
