//! The jitter buffer of a call's receiver, which determines the playout delay and the packets that
//! arrive too late.

use sojourn_measure::Moments;
use sojourn_units::declare::Param;
use sojourn_units::quantity::{format_time, parse_time};
use sojourn_units::words::{Kind, Value};
use sojourn_units::{MILLISECOND, Nanos, data};
use std::collections::VecDeque;

/// The rule that determines the playout delay of a jitter buffer.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Playout {
    /// An adaptive delay, as in `NetEQ` of WebRTC.
    Adaptive,
    /// A fixed time in nanoseconds, added to the smallest delay since the start of the call.
    Fixed(Nanos),
}

impl Playout {
    /// Returns the parameter `playout` of an application.
    pub(crate) const fn param() -> Param<Self> {
        let from = |value: &Value| match value.text() {
            "adaptive" => Ok(Self::Adaptive),
            time => parse_time(time)
                .map(Self::Fixed)
                .map_err(|_| format!("must be `adaptive` or a time, such as 60ms; found `{time}`")),
        };
        let to = |playout: &Self| {
            Some(Value::Text(match playout {
                Self::Adaptive => "adaptive".to_owned(),
                Self::Fixed(span) => format_time(*span),
            }))
        };
        Param::word(Kind::Name, "adaptive", from, to)
    }
}

/// A jitter buffer. A packet is in time if its delay is at most the present playout delay.
#[derive(Clone, Debug)]
pub struct JitterBuffer {
    rule: Rule,
    /// Playout delays at the arrivals since the end of the warm-up, in nanoseconds.
    delays: Moments,
}

#[derive(Clone, Debug)]
enum Rule {
    Fixed { least: Option<Nanos>, playout: Nanos },
    Adaptive(Box<Adaptive>),
}

impl JitterBuffer {
    /// Returns an empty buffer.
    pub fn new(playout: Playout) -> Self {
        let rule = match playout {
            Playout::Fixed(playout) => Rule::Fixed { least: None, playout },
            Playout::Adaptive => Rule::Adaptive(Box::default()),
        };
        Self { rule, delays: Moments::default() }
    }

    /// Records a packet that arrives at `now` after a delay of `delay`; returns whether it is in
    /// time.
    #[inline]
    pub fn receive(&mut self, now: Nanos, delay: Nanos) -> bool {
        let playout = match &mut self.rule {
            Rule::Fixed { least, playout } => {
                let floor = least.map_or(delay, |least| least.min(delay));
                *least = Some(floor);
                floor + *playout
            }
            Rule::Adaptive(adaptive) => adaptive.receive(now, delay),
        };
        self.delays.add(playout);
        delay <= playout
    }

    /// Ends the warm-up: discards the playout delays recorded so far.
    pub fn restart(&mut self) {
        self.delays = Moments::default();
    }

    /// Returns the mean playout delay since the end of the warm-up in nanoseconds, counted from the
    /// departure of packets; `None` before the first packet.
    pub fn delay(&self) -> Option<Nanos> {
        (self.delays.count() > 0).then(|| libm::round(self.delays.mean()) as Nanos)
    }
}

// Constants of WebRTC's modules/audio_coding/neteq, as of 2024: delay_manager.cc,
// underrun_optimizer.cc and relative_arrival_delay_tracker.cc. A packet's delay is relative to the
// smallest delay in the last `HISTORY` nanoseconds.
const HISTORY: Nanos = 2000 * MILLISECOND;
/// Width of a bucket of the histogram, in nanoseconds.
const BUCKET: Nanos = 20 * MILLISECOND;
const BUCKETS: usize = 100;
/// Length of an interval, whose maximum relative delay enters the histogram, in nanoseconds.
const RESAMPLE: Nanos = 500 * MILLISECOND;
/// Share of the histogram's entries whose delay is at most the playout delay.
const QUANTILE: f64 = 0.95;
/// Factor by which the weight of older entries is multiplied when an entry is added.
const FORGET: f64 = 0.983;
/// The n-th entry has the weight `START_WEIGHT` / n, but at most 1 and at least 1 - `FORGET`.
const START_WEIGHT: f64 = 2.0;
/// Playout delay before the first entry, in nanoseconds.
const START: Nanos = 80 * MILLISECOND;

/// `NetEQ`'s target delay: the 95th percentile of a histogram of relative delays, in which older
/// entries lose weight. Delays are relative to the smallest delay of the last two seconds.
///
/// The model omits the wait for reordered packets. The model's buffer reaches the target delay
/// immediately; `NetEQ` reaches it gradually, by stretching or compressing speech.
#[derive(Clone, Debug)]
struct Adaptive {
    /// Arrivals in the last [`HISTORY`] nanoseconds whose delay is smaller than all later delays:
    /// time and delay.
    floor: VecDeque<(Nanos, Nanos)>,
    /// Weight of each bucket in the histogram of relative delays; the sum of the weights is 1.
    buckets: [f64; BUCKETS],
    entries: u32,
    /// Start of the present interval, and the maximum relative delay in it.
    since: Option<Nanos>,
    greatest: Nanos,
    target: Nanos,
}

impl Default for Adaptive {
    fn default() -> Self {
        let mut share = 1.0;
        let buckets = std::array::from_fn(|_| {
            share /= 2.0;
            share
        });
        Self {
            floor: VecDeque::new(),
            buckets,
            entries: 0,
            since: None,
            greatest: 0,
            target: START,
        }
    }
}

impl Adaptive {
    /// Records a packet; returns the playout delay that applied to it.
    fn receive(&mut self, now: Nanos, delay: Nanos) -> Nanos {
        while self.floor.front().is_some_and(|&(at, _)| now.saturating_sub(at) > HISTORY) {
            self.floor.pop_front();
        }
        while self.floor.back().is_some_and(|&(_, last)| last >= delay) {
            self.floor.pop_back();
        }
        self.floor.push_back((now, delay));
        let least = self.floor[0].1;
        let applied = least + self.target;
        self.greatest = self.greatest.max(delay - least);
        let since = *self.since.get_or_insert(now);
        if now.saturating_sub(since) > RESAMPLE {
            self.enter(self.greatest);
            (self.since, self.greatest) = (Some(now), 0);
        }
        applied
    }

    /// Adds a relative delay to the histogram, and updates the target.
    fn enter(&mut self, relative: Nanos) {
        let keep = (1.0 - START_WEIGHT / f64::from(self.entries + 1)).clamp(0.0, FORGET);
        self.entries = self.entries.saturating_add(1);
        for share in &mut self.buckets {
            *share *= keep;
        }
        let place = usize::try_from(relative / BUCKET).map_or(BUCKETS - 1, |n| n.min(BUCKETS - 1));
        self.buckets[place] += 1.0 - keep;
        let mut above = 1.0;
        let covers = |share: &f64| {
            above -= share;
            above <= 1.0 - QUANTILE
        };
        let place = self.buckets.iter().position(covers).unwrap_or(BUCKETS - 1);
        self.target = (place as Nanos + 1) * BUCKET;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND;

    /// Returns whether each packet was in time, and the mean playout delay; a packet is sent every
    /// 20 ms.
    fn played(playout: Playout, delays: impl IntoIterator<Item = Nanos>) -> (Vec<bool>, Nanos) {
        let mut buffer = JitterBuffer::new(playout);
        let delays = delays.into_iter().enumerate();
        let played: Vec<_> =
            delays.map(|(n, ms)| buffer.receive((20 * n as u64 + ms) * MS, ms * MS)).collect();
        (played, buffer.delay().unwrap())
    }

    #[test]
    fn a_fixed_buffer_keeps_to_its_delay() {
        let (played, delay) = played(Playout::Fixed(60 * MS), [10, 70, 71, 10]);
        assert_eq!((played, delay), (vec![true, true, false, true], 70 * MS));
    }

    #[test]
    fn a_still_line_needs_one_bucket() {
        let mut buffer = JitterBuffer::new(Playout::Adaptive);
        for n in 0..1000 {
            assert!(buffer.receive((20 * n + 40) * MS, 40 * MS));
        }
        buffer.restart();
        assert_eq!(buffer.delay(), None);
        assert!(buffer.receive(20_040 * MS, 40 * MS));
        assert_eq!(buffer.delay(), Some(60 * MS));
    }

    #[test]
    fn it_covers_the_jitter_that_it_has_seen() {
        // Every tenth packet comes 110 ms later than the others.
        let jitter = |n: u64| if n % 10 == 9 { 150 } else { 40 };
        let (played, delay) = played(Playout::Adaptive, (0..3000).map(jitter));
        assert!(played[200..].iter().all(|in_time| *in_time));
        // The bucket of 100 to 120 ms, above 40 ms.
        assert!((159 * MS..=160 * MS).contains(&delay), "{delay}");
        let rare = |n: u64| if n % 1000 == 999 { 150 } else { 40 };
        let (played, delay) = self::played(Playout::Adaptive, (0..10_000).map(rare));
        // One packet in 40 entries is below the percentile: late, and not waited for.
        assert_eq!(played.iter().filter(|in_time| !**in_time).count(), 10);
        assert!(delay < 62 * MS, "{delay}");
    }

    #[test]
    fn it_follows_a_change_and_forgets_it() {
        // After two minutes each entry weighs 1.7 %.
        let step = |n: u64| if (6000..7500).contains(&n) { 540 } else { 40 };
        let (played, _) = played(Playout::Adaptive, (0..9000).map(step));
        let late: Vec<_> = (0..9000).filter(|&n| !played[n as usize]).collect();
        // Late until three entries are 5 % of the histogram, and no more.
        assert_eq!(late[0], 6000);
        assert!((6025..6075).contains(late.last().unwrap()), "{late:?}");
        let mut buffer = JitterBuffer::new(Playout::Adaptive);
        for n in 0..9000 {
            if n == 8900 {
                buffer.restart();
            }
            buffer.receive((20 * n + step(n)) * MS, step(n) * MS);
        }
        assert_eq!(buffer.delay(), Some(60 * MS));
    }
}
