//! Activity in spurts with silences between them.

use crate::kinds::given_law;
use sojourn_random::{Distribution, Key, Stream, Unit};
use sojourn_units::declare::Choices;
use sojourn_units::words::{Given, Text, WordError};
use sojourn_units::{Nanos, choices, data};

choices! {
    /// The period with which a source begins.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Begin {
        /// The source begins with a spurt.
        #[default]
        On = "on",
        /// The source begins with a silence.
        Off = "off",
    }
}

choices! {
    /// Effect of a silence on the interval between packets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// The interval starts anew: each spurt begins with a packet.
        #[default]
        Restart = "restart",
        /// The interval stops during the silence and resumes after it, so that the mean rate is
        /// exactly the rate times the share of time in spurts.
        Resume = "resume",
    }
}

/// Durations of spurts and silences in nanoseconds, and the effects of a silence.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spurts {
    /// Duration of a spurt.
    pub on: Distribution,
    /// Duration of a silence.
    pub off: Distribution,
    /// Period with which the source begins: a spurt or a silence.
    #[serde(default)]
    pub begin: Begin,
    /// Effect of a silence on the interval between packets.
    #[serde(default)]
    pub phase: Phase,
}

impl Spurts {
    /// Sets the spurts from a description. `on` and `off` are the words for the durations of spurts
    /// and silences. A description must contain both words or none of them.
    pub(crate) fn set(
        spurts: &mut Option<Self>,
        given: &Given,
        on: &str,
        off: &str,
    ) -> Result<(), WordError> {
        let begin = given.text("begin").and_then(Begin::named).unwrap_or_default();
        let phase = given.text("phase").and_then(Phase::named).unwrap_or_default();
        *spurts = match (given_law(given, on, Unit::Time)?, given_law(given, off, Unit::Time)?) {
            (Some(on), Some(off)) => Some(Self { on, off, begin, phase }),
            (Some(_), None) => return Err(given.error(on, format!("`{on}` needs `{off}`"))),
            (None, Some(_)) => return Err(given.error(off, format!("`{off}` needs `{on}`"))),
            (None, None) => None,
        };
        let loose = match (begin, phase) {
            _ if spurts.is_some() => return Ok(()),
            (Begin::Off, _) => "begin",
            (_, Phase::Resume) => "phase",
            _ => return Ok(()),
        };
        Err(given.error(loose, format!("`{loose}` needs `{on}` and `{off}`")))
    }

    /// Adds the words of the spurts to a description.
    pub(crate) fn write(spurts: Option<Self>, text: Text, on: &str, off: &str) -> Text {
        let Some(spurts) = spurts else { return text };
        let text = text.value(on, spurts.on.format(Unit::Time));
        let mut text = text.value(off, spurts.off.format(Unit::Time));
        if spurts.begin != Begin::default() {
            text = text.value("begin", spurts.begin.name());
        }
        if spurts.phase != Phase::default() {
            text = text.value("phase", spurts.phase.name());
        }
        text
    }

    /// Returns the distributions of the durations of spurts and silences; an empty list without
    /// spurts.
    pub(crate) fn distributions(spurts: Option<Self>) -> Vec<Distribution> {
        spurts.map_or(Vec::new(), |spurts| vec![spurts.on, spurts.off])
    }
}

/// The present spurt of a source, and the random streams of the following ones.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    spurts: Spurts,
    on: Stream,
    off: Stream,
    end: Nanos,
}

impl Activity {
    /// Returns the activity of a source that starts at `start`, and the time of its first packet if
    /// the packets of a spurt are `interval` apart. Without spurts there is no activity, and the
    /// first packet leaves at `start`.
    pub fn begin(
        spurts: Option<Spurts>,
        key: Key,
        start: Nanos,
        interval: Nanos,
    ) -> (Option<Box<Self>>, Nanos) {
        let Some(spurts) = spurts else { return (None, start) };
        let (on, off) = (key.stream("on"), key.stream("off"));
        let mut activity = Box::new(Self { spurts, on, off, end: start });
        let begin = match spurts.begin {
            Begin::On => start,
            Begin::Off => activity.silence(),
        };
        activity.end = begin + activity.spurt();
        let first = match spurts.phase {
            Phase::Restart => begin,
            Phase::Resume => activity.place(begin + interval),
        };
        (Some(activity), first)
    }

    /// Returns the end of the silence after the present spurt.
    fn silence(&mut self) -> Nanos {
        self.end.saturating_add(self.spurts.off.sample_nanos(&mut self.off))
    }

    fn spurt(&mut self) -> Nanos {
        self.spurts.on.sample_nanos(&mut self.on).max(1)
    }

    /// Returns whether each spurt begins with a packet.
    pub fn restarts(&self) -> bool {
        self.spurts.phase == Phase::Restart
    }

    /// Returns the departure time of a packet that would leave at `at` if the present spurt did not
    /// end: `at` itself, or a time in a later spurt.
    pub fn place(&mut self, mut at: Nanos) -> Nanos {
        while at >= self.end {
            let begin = self.silence();
            let remainder = match self.spurts.phase {
                Phase::Restart => 0,
                Phase::Resume => at - self.end,
            };
            self.end = begin.saturating_add(self.spurt());
            at = begin.saturating_add(remainder);
        }
        at
    }
}
