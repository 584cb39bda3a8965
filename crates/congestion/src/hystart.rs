//! Slow start, and methods to leave it before the queue overflows.
//!
//! Source: RFC 5681 and RFC 3465 (growth by acknowledged bytes, at most L segments per ACK);
//! `classic` is Ha and Rhee's HyStart with the kernel's constants; `plus_plus` is RFC 9406.
//! Idea: the least round-trip time of a round shows whether a queue has begun to form. Classic
//! HyStart then leaves slow start at once (also when a train of ACKs has lasted half the least
//! round-trip time). HyStart++ first grows more slowly for five rounds, and returns to slow start
//! if the delay was not caused by a queue.
//! Invariants: cwnd grows by no more than the acknowledged bytes (`count segments`: delivered
//! segments); ssthresh is lowered only to cwnd; `plus_plus` acts only in the first slow start.

use crate::whole;
use crate::window::{Ack, MAX_WINDOW, Window};
use sojourn_units::declare::{choice, integer, on_off};
use sojourn_units::{MILLISECOND, Nanos, choices, params};

choices! {
    /// Method to end slow start without a loss.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// No method: slow start ends only with a congestion event.
        #[default]
        None = "none",
        /// HyStart of 2008: slow start ends after a long train of ACKs or an increase of the delay.
        Classic = "classic",
        /// HyStart++ (RFC 9406): slow start ends after an increase of the delay that persists.
        PlusPlus = "plus_plus",
    }
}

choices! {
    /// Unit of the congestion window.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Count {
        /// Bytes: growth and reductions may be fractions of a segment.
        #[default]
        Bytes = "bytes",
        /// Whole segments, as in Linux; reductions are rounded down.
        Segments = "segments",
    }
}

params! {
    /// Parameters of slow start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params {
        /// Method to end slow start without a loss: HyStart, or RFC 9406's HyStart++.
        kind as "hystart": Kind = choice("classic for cubic, else none").initially(|()| Kind::None),
        /// Maximum number of segments that one ACK may add in slow start (L of RFC 3465).
        limit as "abc_limit": u64 = integer(1, 1_000_000, "1000000"),
        /// Whether Reno's window grows by acknowledged bytes (RFC 3465). If off, it grows per ACK,
        /// half as fast with delayed ACKs.
        byte_counting as "abc": bool = on_off("on"),
        /// Unit of the congestion window: bytes, or whole segments as in Linux. With segments,
        /// Reno, CUBIC (with `variant linux`), DCTCP and reductions use the kernel's arithmetic.
        #[serde(default)]
        count: Count = choice("segments").initially(|()| Count::Bytes),
    }
}

/// Smallest window in segments at which classic HyStart acts.
const LOW_WINDOW: u64 = 16;
/// Number of RTT samples that a round must exceed (classic) or reach (`plus_plus`) before a check.
const SAMPLES: u32 = 8;
/// Maximum gap between ACKs of one train, in nanoseconds.
const TRAIN_GAP: Nanos = 2 * MILLISECOND;
/// Length of four super-packets of the largest size, in bytes.
const SUPER_PACKETS: u128 = 4 << 16;
/// Minimum and maximum of the delay increase that ends slow start, in nanoseconds.
const THRESHOLD_MIN: Nanos = 4 * MILLISECOND;
const THRESHOLD_MAX: Nanos = 16 * MILLISECOND;
/// Conservative slow start of HyStart++: divisor of the growth, and number of rounds.
const CSS_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// Slow start and its state.
#[derive(Clone, Debug)]
pub struct HyStart {
    params: Params,
    /// State of the method; `None` until its first use, and with `Kind::None`.
    rounds: Option<Box<Rounds>>,
    /// Whether a congestion event has occurred.
    done: bool,
    /// Whether a train of ACKs may last longer by the delay of super-packets before it ends slow
    /// start.
    cushioned: bool,
}

/// State of a round, and round-trip times of this round and of the previous one.
#[derive(Clone, Debug)]
struct Rounds {
    /// Sequence number whose acknowledgement ends the round.
    end: u64,
    start: Nanos,
    last_ack: Nanos,
    /// Smallest round-trip time of this round and of the previous one; `Nanos::MAX` without a
    /// sample.
    current: Nanos,
    last: Nanos,
    samples: u32,
    /// Smallest round-trip time at the start of conservative slow start; `Nanos::MAX` outside it.
    baseline: Nanos,
    /// Number of completed rounds of conservative slow start.
    conservative: u32,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            end: 0,
            start: 0,
            last_ack: 0,
            current: Nanos::MAX,
            last: Nanos::MAX,
            samples: 0,
            baseline: Nanos::MAX,
            conservative: 0,
        }
    }
}

impl Rounds {
    fn is_conservative(&self) -> bool {
        self.baseline != Nanos::MAX
    }

    fn is_over(&self, ack: &Ack) -> bool {
        ack.una > self.end || self.start == 0
    }

    /// Begins a round with this acknowledgement.
    fn begin(&mut self, ack: &Ack) {
        self.end = ack.nxt;
        self.start = ack.now;
        self.last_ack = ack.now;
        self.last = self.current;
        self.current = Nanos::MAX;
        self.samples = 0;
    }
}

impl HyStart {
    /// Returns the slow start of a new connection.
    pub fn new(params: Params) -> Self {
        Self { params, rounds: None, done: false, cushioned: false }
    }

    /// Sets whether a train of ACKs may last longer by the delay of super-packets before it ends
    /// slow start, as in Linux.
    #[must_use]
    pub fn cushioned(self, cushioned: bool) -> Self {
        Self { cushioned, ..self }
    }

    /// Disables HyStart of 2008 if `left_out`, because the control has an implementation of its
    /// own.
    #[must_use]
    pub(crate) fn without_classic(mut self, left_out: bool) -> Self {
        if left_out && self.params.kind == Kind::Classic {
            self.params.kind = Kind::None;
        }
        self
    }

    /// Returns the parameters.
    pub fn params(&self) -> Params {
        self.params
    }

    /// Returns whether HyStart++ is in its conservative phase.
    pub fn is_conservative(&self) -> bool {
        self.rounds.as_ref().is_some_and(|rounds| rounds.is_conservative())
    }

    /// Records a reduction of the window, after which HyStart++ is inactive.
    pub fn on_congestion(&mut self) {
        self.done = true;
        if let Some(rounds) = &mut self.rounds {
            rounds.baseline = Nanos::MAX;
        }
    }

    /// Grows `window` while it is below ssthresh. Returns the acknowledged bytes that remain for
    /// congestion avoidance; 0 if cwnd did not limit the sender.
    #[inline]
    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack) -> u64 {
        let acked = match self.params.count {
            Count::Bytes => ack.acked,
            Count::Segments => whole::delivered(ack, window.mss).saturating_mul(window.mss),
        };
        if !window.in_slow_start() {
            return if ack.cwnd_limited { acked } else { 0 };
        }
        match self.params.kind {
            Kind::Classic => self.classic(window, ack),
            Kind::PlusPlus if !self.done => self.plus_plus(window, ack),
            Kind::None | Kind::PlusPlus => {}
        }
        if !ack.cwnd_limited {
            return 0;
        }
        let most = self.params.limit.max(1).saturating_mul(window.mss);
        let mut credit = acked.min(most);
        if self.is_conservative() {
            credit /= CSS_DIVISOR;
        }
        let grown = credit.min(window.ssthresh.saturating_sub(window.cwnd));
        window.grow(grown);
        credit - grown
    }

    /// Returns the largest delay that super-packets add to a round trip (Linux's
    /// `hystart_ack_delay`), in nanoseconds.
    fn cushion(&self, window: &Window, ack: &Ack) -> Nanos {
        if !self.cushioned {
            return 0;
        }
        let delay = SUPER_PACKETS * u128::from(ack.srtt) / (2 * u128::from(window.cwnd));
        delay.min(u128::from(MILLISECOND)) as Nanos
    }

    fn classic(&mut self, window: &mut Window, ack: &Ack) {
        let cushion = self.cushion(window, ack);
        let rounds = self.rounds.get_or_insert_default();
        if rounds.is_over(ack) {
            rounds.begin(ack);
        }
        if window.cwnd < LOW_WINDOW * window.mss || ack.min_rtt == 0 {
            return;
        }
        if ack.now.saturating_sub(rounds.last_ack) <= TRAIN_GAP {
            rounds.last_ack = ack.now;
            // Linux's rule for senders without pacing: the path is full when a train of ACKs lasts
            // half a round trip.
            let full = ack.min_rtt.saturating_add(cushion) / 2;
            if ack.now.saturating_sub(rounds.start) > full {
                window.ssthresh = window.cwnd;
                return;
            }
        }
        if ack.rtt > 0 {
            rounds.current = rounds.current.min(ack.rtt);
            rounds.samples += 1;
            let threshold = (ack.min_rtt / 8).clamp(THRESHOLD_MIN, THRESHOLD_MAX);
            if rounds.samples > SAMPLES && rounds.current > ack.min_rtt.saturating_add(threshold) {
                window.ssthresh = window.cwnd;
            }
        }
    }

    fn plus_plus(&mut self, window: &mut Window, ack: &Ack) {
        let rounds = self.rounds.get_or_insert_default();
        if rounds.is_over(ack) {
            if rounds.is_conservative() {
                rounds.conservative += 1;
                if rounds.conservative >= CSS_ROUNDS {
                    window.ssthresh = window.cwnd.min(MAX_WINDOW);
                    self.on_congestion();
                    return;
                }
            }
            rounds.begin(ack);
        }
        if ack.rtt == 0 {
            return;
        }
        rounds.current = rounds.current.min(ack.rtt);
        rounds.samples += 1;
        if rounds.samples < SAMPLES {
            return;
        }
        if rounds.is_conservative() {
            if rounds.current < rounds.baseline {
                rounds.baseline = Nanos::MAX;
            }
        } else if rounds.last != Nanos::MAX {
            let threshold = (rounds.last / 8).clamp(THRESHOLD_MIN, THRESHOLD_MAX);
            if rounds.current >= rounds.last.saturating_add(threshold) {
                rounds.baseline = rounds.current;
                rounds.conservative = 0;
            }
        }
    }
}
