//! A host that serves its queue late: timers with a grain, late wake-ups, stalls.
//!
//! A shaper asks its host for a wake-up at the time at which it may send again. A real host has
//! timers with a grain, is woken late because its processor is busy, and stalls: it does nothing
//! for a while. Meanwhile tokens accumulate up to the depth of the bucket; further tokens are lost.
//!
//! A wake-up that is requested for a time fires at the next tick from this time on, plus a delay
//! that is drawn once for each requested time. An arriving packet also makes the host ask its queue
//! for packets, as `qdisc_run` does after each `enqueue`.
//!
//! During a stall the host neither queues nor sends. Arriving packets wait in the device's receive
//! ring, and are lost if the ring is full. The device continues to send the packets of its transmit
//! ring. After the stall the host takes the packets of the receive ring one by one.
//!
//! # Invariants
//! A wake-up never fires early. Delays do not accumulate: each counts from the requested time.

use sojourn_random::{Key, Pauses, Rhythm, Span, Stream};
use sojourn_units::declare::{Param, Parameters, integer, time};
use sojourn_units::words::{self, Given, Kind, Value, WordError};
use sojourn_units::{EPOCH, MICROSECOND, NEVER, Nanos, SECOND, params};
use std::collections::VecDeque;

params! {
    "host": "how late a host serves the queue of a link that it sends on",
    from "Linux: hrtimers and ticks, softirq, rings of devices";

    /// How late a host serves its queue; by default it is never late.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Grain of the host's timers: a wake-up comes at the next multiple of this time. 0 means
        /// high-resolution timers; without them Linux has 1/HZ: 10ms, 4ms or 1ms.
        grain: Nanos = time("0").check(|grain| match grain {
            0..=SECOND => Ok(()),
            _ => Err("must be at most 1s"),
        }),
        /// Additional delay of a wake-up: a time, a distribution such as exp(200us), or measured(FILE).
        late: Span = span("0"),
        /// Length of a stall, during which the host does nothing: a time, a distribution, or measured(FILE).
        /// Needs `every`.
        stall: Span = span("0"),
        /// Time from the start of a stall to the start of the next; same forms as `stall`.
        every: Option<Span> = optional_span(),
        /// Maximum number of packets in the receive ring during a stall; others are dropped.
        rx: u32 = integer(1, 1_000_000, "1000"),
    }
}

/// Returns the declaration of a span of time, drawn from a distribution or measured.
const fn span(default: &'static str) -> Param<Span> {
    let from = |value: &Value| Span::parse(value.text());
    Param::nested(Kind::Name, default, from, |span| span.format().map(Value::Text))
}

/// Returns the declaration of a span of time that is absent by default.
const fn optional_span() -> Param<Option<Span>> {
    let from = |value: &Value| Span::parse(value.text()).map(Some);
    let to = |span: &Option<Span>| span.as_ref().and_then(Span::format).map(Value::Text);
    Param::nested(Kind::Name, "", from, to).initially(|()| None)
}

impl Params {
    /// Reads words such as `grain 1ms late exp(200us)`. Files are not read.
    ///
    /// # Errors
    /// An unknown or missing word, or an invalid value: its place and the reason.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let given = words::read(&Self::TABLE, &words::tokens(text), text.len())?;
        let mut params = Self::default();
        params.set(&given)?;
        params.settle(&given)?;
        Ok(params)
    }

    /// Checks that stalls have both a length and an interval, or neither.
    fn settle(&self, given: &Given) -> Result<(), WordError> {
        match (self.stall.is_zero(), &self.every) {
            (false, None) => Err(given.error("stall", "`stall` needs `every`, such as exp(10ms)")),
            (true, Some(_)) => Err(given.error("every", "`every` needs `stall`, such as exp(1ms)")),
            _ => Ok(()),
        }
    }

    /// Returns whether the host is never late.
    pub fn is_punctual(&self) -> bool {
        self.grain == 0 && self.late.is_zero() && self.every.is_none()
    }

    /// Checks parameters that do not come from a text. An error has the key and the reason.
    ///
    /// # Errors
    /// A value outside its range; spans that cannot be drawn; stalls that leave no time to work.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.grain > SECOND {
            return Err(("grain", "must be at most 1s".to_owned()));
        }
        if !(1..=1_000_000).contains(&self.rx) {
            return Err(("rx", "must be from 1 to 1000000 packets".to_owned()));
        }
        self.late.check().map_err(|why| ("late", why))?;
        self.stall.check().map_err(|why| ("stall", why))?;
        let Some(every) = &self.every else {
            let lacks = !self.stall.is_zero();
            return if lacks { Err(("stall", "needs `every`".to_owned())) } else { Ok(()) };
        };
        every.check().map_err(|why| ("every", why))?;
        if every.mean() < MICROSECOND as f64 {
            return Err(("every", "must be at least 1us in the mean".to_owned()));
        }
        if self.stall.mean() >= every.mean() {
            return Err(("stall", "must be shorter than `every` in the mean".to_owned()));
        }
        Ok(())
    }
}

/// The lengths and intervals of stalls.
#[derive(Clone, Debug)]
struct Stalls {
    length: Span,
    every: Span,
}

impl Rhythm for Stalls {
    fn first(&self, draws: &mut Stream) -> Nanos {
        EPOCH + self.every(draws)
    }

    fn every(&self, draws: &mut Stream) -> Nanos {
        self.every.sample(draws).max(1)
    }

    fn length(&self, draws: &mut Stream) -> Nanos {
        self.length.sample(draws)
    }
}

/// State of a late host.
#[derive(Clone, Debug)]
pub struct Host<P> {
    grain: Nanos,
    late: Span,
    draws: Stream,
    stalls: Option<Pauses<Stalls>>,
    /// The time for which a wake-up was requested last, and when the wake-up fires.
    armed: (Nanos, Nanos),
    /// The receive ring: packets that arrived during a stall.
    rx: VecDeque<P>,
    room: usize,
    /// When the stall ends, if work waits for its end; else [`NEVER`].
    resume: Nanos,
}

impl<P> Host<P> {
    /// Returns a host for the link with this `key`; `None` if it is never late.
    pub fn new(params: &Params, key: Key) -> Option<Self> {
        let stalls = params.every.as_ref().map(|every| {
            let stalls = Stalls { length: params.stall.clone(), every: every.clone() };
            Pauses::new(stalls, key.stream("stalls"))
        });
        (!params.is_punctual()).then(|| Self {
            grain: params.grain,
            late: params.late.clone(),
            draws: key.stream("late"),
            stalls,
            armed: (NEVER, NEVER),
            rx: VecDeque::new(),
            room: params.rx as usize,
            resume: NEVER,
        })
    }

    /// Returns when a wake-up fires; `asked` is the time for which the queue requests it. A
    /// repeated request for the same time keeps the timer.
    pub(crate) fn fires(&mut self, asked: Nanos) -> Nanos {
        if self.armed.0 != asked {
            let tick = match self.grain {
                0 => asked,
                grain => EPOCH + (asked - EPOCH).next_multiple_of(grain),
            };
            self.armed = (asked, tick + self.late.sample(&mut self.draws));
        }
        self.armed.1
    }

    /// Returns whether the host stalls at `now`. If so, it resumes at the stall's end.
    pub(crate) fn is_stalled(&mut self, now: Nanos) -> bool {
        let end = self.stalls.as_mut().and_then(|stalls| stalls.ends(now));
        if let Some(end) = end {
            self.resume = end;
        }
        end.is_some()
    }

    /// Returns when the host resumes, if work waits for the end of the stall; else [`NEVER`].
    pub(crate) fn resume(&self) -> Nanos {
        self.resume
    }

    /// Notes that the host has resumed.
    pub(crate) fn resumed(&mut self) {
        self.resume = NEVER;
    }

    /// Puts a packet that arrived during a stall into the receive ring, or returns the packet if
    /// the ring is full.
    pub(crate) fn keep(&mut self, packet: P) -> Result<(), P> {
        if self.rx.len() == self.room {
            return Err(packet);
        }
        self.rx.push_back(packet);
        Ok(())
    }

    /// Returns the next packet of the receive ring.
    pub(crate) fn take(&mut self) -> Option<P> {
        self.rx.pop_front()
    }

    /// Returns the packets in the receive ring.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &P> {
        self.rx.iter()
    }
}
