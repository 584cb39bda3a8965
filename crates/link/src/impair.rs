//! Decisions about packets on the line: loss, duplication, corruption, reordering, jitter.

use crate::params::{Chance, Impairments, Jitter, JitterDistribution, Loss, Reorder, WireRate};
use sojourn_random::{Key, Stream, normal};
use sojourn_units::Nanos;

/// Greatest absolute deviation in netem's tables, in units of `span` (jitter) or `spread` (slots).
const CUT: f64 = 32_767.0 / 8_192.0;

/// Returns a probability as a threshold for 32-bit draws: an event happens on draws up to it.
fn threshold(probability: f64) -> u32 {
    libm::round(probability * f64::from(u32::MAX)) as u32
}

/// Random draws with netem's correlation: each is the weighted mean of a fresh draw and the last
/// result.
#[derive(Clone, Debug)]
struct Correlated {
    stream: Stream,
    weight: u64,
    last: u32,
}

impl Correlated {
    fn new(mut stream: Stream) -> Self {
        let last = stream.next_u32();
        Self { stream, weight: 0, last }
    }

    fn set(&mut self, correlation: f64) {
        self.weight = match threshold(correlation) {
            0 => 0,
            weight => u64::from(weight) + 1,
        };
    }

    fn draw(&mut self) -> u32 {
        let fresh = self.stream.next_u32();
        if self.weight == 0 {
            return fresh;
        }
        let mean =
            u64::from(fresh) * ((1 << 32) - self.weight) + u64::from(self.last) * self.weight;
        self.last = (mean >> 32) as u32;
        self.last
    }

    fn happens(&mut self, threshold: u32) -> bool {
        threshold > 0 && self.draw() <= threshold
    }
}

/// A correlated event.
#[derive(Clone, Debug)]
struct Event {
    draws: Correlated,
    threshold: u32,
}

impl Event {
    fn new(stream: Stream) -> Self {
        Self { draws: Correlated::new(stream), threshold: 0 }
    }

    fn set(&mut self, chance: Chance) {
        self.threshold = threshold(chance.probability);
        self.draws.set(chance.correlation);
    }

    fn happens(&mut self) -> bool {
        self.draws.happens(self.threshold)
    }
}

/// Gilbert-Elliott's thresholds.
#[derive(Clone, Copy, Debug)]
struct Gemodel {
    to_bad: u32,
    to_good: u32,
    bad_loss: u32,
    good_loss: u32,
}

/// The thresholds of the chain of four states; the states have netem's numbers.
#[derive(Clone, Copy, Debug)]
struct Chain {
    p13: u32,
    p31: u32,
    p32: u32,
    p23: u32,
    p14: u32,
}

impl Chain {
    /// Returns the state after `state`. As in netem, one draw decides between two transitions: the
    /// range of the second begins where that of the first ends.
    fn step(&self, state: u8, draw: u32) -> u8 {
        let within = |from: u32, size: u32| size > 0 && draw > from && draw - from <= size;
        match state {
            1 if self.p14 > 0 && draw <= self.p14 => 4,
            1 if within(self.p14, self.p13) => 3,
            2 if self.p23 > 0 && draw <= self.p23 => 3,
            2 => 2,
            3 if self.p32 > 0 && draw <= self.p32 => 2,
            3 if within(self.p32, self.p31) => 1,
            3 => 3,
            _ => 1,
        }
    }
}

/// State of the wire's impairments. Each impairment has its own stream, so that a change of one
/// does not change the draws of another.
#[derive(Clone, Debug)]
pub struct Impair {
    loss: Event,
    gemodel: Option<Gemodel>,
    bad: bool,
    chain: Option<Chain>,
    /// The chain's state, 1 to 4.
    state: u8,
    duplicate: Event,
    corrupt: Event,
    bits: Stream,
    reorder: Event,
    gap: u32,
    since_reorder: u32,
    jitter: Option<Jitter>,
    jitter_draws: Correlated,
    /// Whether packets are marked instead of lost.
    pub ecn: bool,
    /// Maximum number of packets on the wire; `None` for no limit.
    pub limit: Option<u32>,
    rate: Option<WireRate>,
    /// When the transmitter on the wire has sent all of its packets.
    free: Nanos,
}

/// How long a packet stays on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// For this time.
    Delayed(Nanos),
    /// For no time: the packet overtakes those in flight.
    Overtaking,
}

impl Impair {
    pub fn new(impairments: &Impairments, key: Key) -> Self {
        let mut impair = Self {
            loss: Event::new(key.stream("loss")),
            gemodel: None,
            bad: false,
            chain: None,
            state: 1,
            duplicate: Event::new(key.stream("duplicate")),
            corrupt: Event::new(key.stream("corrupt")),
            bits: key.stream("corrupt bits"),
            reorder: Event::new(key.stream("reorder")),
            gap: 0,
            since_reorder: 0,
            jitter: None,
            jitter_draws: Correlated::new(key.stream("jitter")),
            ecn: false,
            limit: None,
            rate: None,
            free: 0,
        };
        impair.set(impairments);
        impair
    }

    /// Changes the impairments from now on; the random streams and the states continue.
    pub fn set(&mut self, impairments: &Impairments) {
        self.gemodel = None;
        self.chain = None;
        self.loss.set(Chance::default());
        match impairments.loss {
            Loss::None => {}
            Loss::Random { probability, correlation } => {
                self.loss.set(Chance { probability, correlation });
            }
            Loss::Gemodel { p, r, bad_loss, good_loss } => {
                self.gemodel = Some(Gemodel {
                    to_bad: threshold(p),
                    to_good: threshold(r),
                    bad_loss: threshold(bad_loss),
                    good_loss: threshold(good_loss),
                });
            }
            Loss::State { p13, p31, p32, p23, p14 } => {
                let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(threshold);
                self.chain = Some(Chain { p13, p31, p32, p23, p14 });
            }
        }
        self.ecn = impairments.ecn;
        self.limit = impairments.limit;
        self.rate = impairments.rate;
        self.duplicate.set(impairments.duplicate);
        self.corrupt.set(impairments.corrupt);
        let none = Reorder { probability: 0.0, correlation: 0.0, gap: 0 };
        let Reorder { probability, correlation, gap } = impairments.reorder.unwrap_or(none);
        self.reorder.set(Chance { probability, correlation });
        self.gap = gap;
        self.jitter = impairments.jitter;
        self.jitter_draws.set(impairments.jitter.map_or(0.0, |j| j.correlation));
    }

    pub fn loses(&mut self) -> bool {
        if let Some(chain) = self.chain {
            self.state = chain.step(self.state, self.loss.draws.draw());
            return self.state > 2;
        }
        let Some(model) = self.gemodel else { return self.loss.happens() };
        // Both draws are made for every packet, so that a packet's draws do not depend on the
        // parameters.
        let (turn, fate) = (self.loss.draws.draw(), self.loss.draws.draw());
        let hit = |draw: u32, threshold: u32| threshold > 0 && draw <= threshold;
        let (leaves, loss) = if self.bad {
            (model.to_good, model.bad_loss)
        } else {
            (model.to_bad, model.good_loss)
        };
        self.bad ^= hit(turn, leaves);
        hit(fate, loss)
    }

    pub fn duplicates(&mut self) -> bool {
        self.duplicate.happens()
    }

    /// Returns a random number that chooses a bit, if the packet is to be corrupted.
    pub fn corrupts(&mut self) -> Option<u32> {
        self.corrupt.happens().then(|| self.bits.next_u32())
    }

    pub fn passage(&mut self, delay: Nanos) -> Passage {
        let candidate = self.gap > 0 && self.since_reorder >= self.gap - 1;
        if candidate && self.reorder.happens() {
            self.since_reorder = 0;
            return Passage::Overtaking;
        }
        self.since_reorder = self.since_reorder.saturating_add(1);
        Passage::Delayed(self.delay(delay))
    }

    /// Returns the arrival time of a packet of `bytes` bytes that enters the wire at `now`, delayed
    /// by `delay`. A transmitter on the wire sends it after all packets before it.
    pub fn arrival(&mut self, now: Nanos, delay: Nanos, bytes: u32) -> Nanos {
        let Some(rate) = self.rate else { return now + delay };
        self.free = self.free.max(now + delay) + rate.transmission_time(bytes);
        self.free
    }

    fn delay(&mut self, delay: Nanos) -> Nanos {
        let Some(jitter) = self.jitter else { return delay };
        let draw = self.jitter_draws.draw();
        let span = jitter.span as f64 * deviation(jitter.distribution, draw);
        delay.saturating_add_signed(libm::round(span) as i64)
    }
}

/// Returns the deviation that `draw` gives, in units of the span.
pub fn deviation(distribution: JitterDistribution, draw: u32) -> f64 {
    let u = (f64::from(draw) + 0.5) / 4_294_967_296.0;
    let pareto = || (4.0 / 3.0 * (libm::pow(1.0 - u, -1.0 / 3.0) - 1.5)).min(CUT);
    let normal = || normal::quantile(u).clamp(-CUT, CUT);
    match distribution {
        JitterDistribution::Uniform => 2.0 * u - 1.0,
        JitterDistribution::Normal => normal(),
        JitterDistribution::Pareto => pareto(),
        JitterDistribution::Paretonormal => 0.25 * normal() + 0.75 * pareto(),
    }
}
