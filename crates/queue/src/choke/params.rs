//! CHOKe's parameters and words.

use crate::limit::Unit;
use crate::red::{self, Adaptation, Averaging, Ramp, kernel_probability, probability_text};
use crate::tc::{NoKernelEquivalent, Text, above_zero, packets, probability_q32, set, size};
use serde::{Deserialize, Serialize};
use sojourn_units::Rate;
use sojourn_units::quantity::format_rate;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `choke`.
pub const TABLE: Table = Table {
    name: "choke",
    summary: "CHOKe: RED that also drops arrivals whose flow is found in the queue by chance",
    source: "Pan, Prabhakar, Psounis 2000; Linux sch_choke.c, iproute2 q_choke.c",
    words: &[
        Word {
            name: "limit",
            kind: Kind::Packets,
            default: "",
            doc: "Packets that fit, at most 131071; required.",
        },
        Word {
            name: "min",
            kind: Kind::Packets,
            default: "max/3",
            doc: "Average backlog above which arrivals are compared, and drops begin.",
        },
        Word {
            name: "max",
            kind: Kind::Packets,
            default: "limit/4",
            doc: "Average backlog above which every arrival is dropped.",
        },
        Word {
            name: "probability",
            kind: Kind::Probability,
            default: "0.02",
            doc: "Drop probability of an arrival without a match just below max.",
        },
        Word {
            name: "avpkt",
            kind: Kind::Size,
            default: "1000b",
            doc: "A typical packet, for burst and idle time.",
        },
        Word {
            name: "burst",
            kind: Kind::Integer { min: 1, max: 4_294_967_295 },
            default: "(2 min + max) / 3",
            doc: "Packets that may arrive at once in an idle queue without early drop; sets the averaging.",
        },
        Word {
            name: "bandwidth",
            kind: Kind::Rate,
            default: "10mbit",
            doc: "Rate of the link, for idle time only.",
        },
        Word {
            name: "ecn",
            kind: Kind::Flag,
            default: "",
            doc: "Marks ECN-capable packets instead of dropping them, but for those that match.",
        },
        Word {
            name: "harddrop",
            kind: Kind::Flag,
            default: "",
            doc: "Drops above max, ECN-capable or not; the kernel knows it, tc has no word for it.",
        },
    ],
};

/// The greatest limit: the kernel's `CHOKE_MAX_QUEUE`.
pub const MAX_LIMIT: u32 = 128 * 1024 - 1;

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Packets that fit.
    pub limit: u32,
    /// Average above which arrivals are compared, and drops begin.
    pub min: u32,
    /// Average above which every arrival is dropped.
    pub max: u32,
    /// Probability just below `max`; one is 2^32. 0 stands for one, of which Linux makes a power of two.
    pub max_p: u32,
    /// Bytes of a typical packet.
    pub avpkt: u32,
    /// What the average is made with.
    pub burst: u32,
    /// Rate of the link.
    pub bandwidth: Rate,
    /// Whether to mark instead of drop.
    pub ecn: bool,
    /// Whether to drop above `max` always.
    pub harddrop: bool,
}

impl Params {
    pub(crate) fn parse(given: &Given) -> Result<Self, WordError> {
        let blank = Self {
            limit: 0,
            min: 0,
            max: 0,
            max_p: probability_q32(0.02),
            avpkt: 1000,
            burst: 0,
            bandwidth: Rate::new(10_000_000).expect("10 Mbit/s is above zero"),
            ecn: false,
            harddrop: false,
        };
        blank.restate(given)
    }

    /// After `tc`: a change that names `limit` states everything anew, flags too. A change without
    /// `limit` keeps what it does not name.
    pub(crate) fn changed(&self, given: &Given) -> Result<Self, WordError> {
        if given.has("limit") { Self::parse(given) } else { self.restate(given) }
    }

    fn restate(mut self, given: &Given) -> Result<Self, WordError> {
        set(&mut self.limit, above_zero(given, "limit", packets)?);
        if self.limit == 0 {
            return Err(given.error("limit", "`choke` needs `limit`, such as limit 200p"));
        }
        if self.limit > MAX_LIMIT {
            return Err(given.error(
                "limit",
                format!("`limit` must be at most {MAX_LIMIT}p; found {}p", self.limit),
            ));
        }
        set(&mut self.max, above_zero(given, "max", packets)?);
        set(&mut self.min, above_zero(given, "min", packets)?);
        set(&mut self.avpkt, above_zero(given, "avpkt", size)?);
        set(&mut self.burst, given.integer("burst").map(|burst| burst as u32));
        set(&mut self.bandwidth, given.rate("bandwidth"));
        self.ecn |= given.has("ecn");
        self.harddrop |= given.has("harddrop");
        if let Some(p) = given.real("probability") {
            if probability_q32(p) == 0 {
                return Err(given.error("probability", "`probability` must be at least 2^-32"));
            }
            self.max_p = kernel_probability(p);
        }
        if self.max == 0 {
            self.max = self.limit / 4;
        }
        if self.min == 0 {
            self.min = self.max / 3;
        }
        if self.burst == 0 {
            self.burst = ((2 * u64::from(self.min) + u64::from(self.max)) / 3) as u32;
        }
        self.check().map_err(|(word, message)| given.error(word, message))?;
        Ok(self)
    }

    /// Refuses what `tc` or the kernel refuses: the word at fault and why.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let Self { limit, min, max, .. } = self;
        if max > limit {
            return Err(("max", format!("`max` ({max}) must not be above `limit` ({limit})")));
        }
        if min >= max {
            return Err(("min", format!("`min` ({min}) must be below `max` ({max})")));
        }
        self.options().map(|_| ())
    }

    /// The same as RED's parameters.
    pub(super) fn red(&self) -> red::Params {
        red::Params {
            unit: Unit::Packets,
            limit: self.limit,
            min: self.min,
            max: self.max,
            max_p: self.max_p,
            avpkt: self.avpkt,
            averaging: Averaging::Burst(self.burst),
            bandwidth: self.bandwidth,
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: false,
            wait: false,
            adaptation: Adaptation::Off,
            ramp: Ramp::Steep,
            // Only the timer of `adaptive` looks at it.
            hz: 1000,
        }
    }

    /// What `tc` would hand to the kernel.
    ///
    /// # Errors
    /// The word at fault and why.
    pub fn options(&self) -> Result<red::Options, (&'static str, String)> {
        self.red().options()
    }

    pub(crate) fn warnings(&self, given: &Given) -> Vec<String> {
        self.red().warnings(given)
    }

    pub(crate) fn to_tc(self) -> Result<String, NoKernelEquivalent> {
        if self.harddrop {
            return Err(NoKernelEquivalent {
                discipline: "choke",
                reason: "tc has no word for `harddrop`".to_owned(),
            });
        }
        let text = Text::new("choke")
            .value("limit", self.limit)
            .value("min", self.min)
            .value("max", self.max)
            .value("avpkt", self.avpkt)
            .value("burst", self.burst)
            .value("probability", probability_text(self.max_p))
            .value("bandwidth", format_rate(self.bandwidth));
        Ok(if self.ecn { text.flag("ecn") } else { text }.done())
    }
}
