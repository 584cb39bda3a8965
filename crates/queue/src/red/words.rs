//! RED's words and how they are read.

use super::params::{Adaptation, Averaging, Params, Ramp, kernel_probability};
use crate::device::Device;
use crate::limit::Unit;
use crate::tc::{above_zero, probability_q32, set, size};
use sojourn_units::Rate;
use sojourn_units::quantity::{format_rate, parse_size};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `red`.
pub const TABLE: Table = Table {
    name: "red",
    summary: "RED: drops by the average backlog, before the queue is full",
    source: "Floyd, Jacobson 1993; Linux sch_red.c, iproute2 tc_red.c",
    words: &[
        Word {
            name: "limit",
            kind: Kind::Name,
            default: "",
            doc: "Bytes that fit (packets with `unit packets`); required.",
        },
        Word {
            name: "min",
            kind: Kind::Name,
            default: "max/3",
            doc: "Average backlog above which drops begin.",
        },
        Word {
            name: "max",
            kind: Kind::Name,
            default: "3 min, or limit/4",
            doc: "Average backlog at which the ramp ends.",
        },
        Word {
            name: "probability",
            kind: Kind::Probability,
            default: "0.02",
            doc: "Drop probability just below max.",
        },
        Word {
            name: "avpkt",
            kind: Kind::Size,
            default: "1000b",
            doc: "A typical packet, for burst and idle time (tc has no default).",
        },
        Word {
            name: "burst",
            kind: Kind::Integer { min: 1, max: 4_294_967_295 },
            default: "(2 min + max) / (3 avpkt)",
            doc: "Packets that may arrive at once in an idle queue without early drop; sets the averaging.",
        },
        Word {
            name: "weight",
            kind: Kind::Real { min: 0.000_000_001, max: 1.0 },
            default: "",
            doc: "Weight of the newest sample in the average, instead of burst. Ours; a power of two becomes a burst where one fits.",
        },
        Word {
            name: "bandwidth",
            kind: Kind::Rate,
            default: "10mbit",
            doc: "Rate of the link, for idle time only; with words of ours, the default is the link's own.",
        },
        Word {
            name: "unit",
            kind: Kind::Choice { of: &["bytes", "packets"] },
            default: "bytes",
            doc: "What limit, min and max count. Ours.",
        },
        Word {
            name: "ecn",
            kind: Kind::Flag,
            default: "",
            doc: "Marks ECN-capable packets instead of dropping them.",
        },
        Word {
            name: "harddrop",
            kind: Kind::Flag,
            default: "",
            doc: "Drops above max, ECN-capable or not.",
        },
        Word {
            name: "nodrop",
            kind: Kind::Flag,
            default: "",
            doc: "Queues packets that cannot be marked; needs ecn.",
        },
        Word {
            name: "adaptive",
            kind: Kind::Flag,
            default: "",
            doc: "Moves probability every half second to hold the average between min and max (iproute2 from 5.7 on cannot arm it in Linux 6.1).",
        },
        Word {
            name: "feng",
            kind: Kind::Flag,
            default: "",
            doc: "Divides probability by 3 when the average falls below min, doubles it above max. Ours.",
        },
        Word {
            name: "wait",
            kind: Kind::Flag,
            default: "",
            doc: "Gaps between early drops are uniform from 1/p to 2/p instead of 1 to 1/p, as in ns-2. Ours.",
        },
        Word {
            name: "gentle",
            kind: Kind::Flag,
            default: "",
            doc: "Between max and twice max the probability grows to one instead of jumping. Ours.",
        },
        Word {
            name: "gentle-limit",
            kind: Kind::Flag,
            default: "",
            doc: "As gentle, with the ramp ending at limit. Ours.",
        },
    ],
};

impl Params {
    pub(crate) fn parse(given: &Given, device: &Device) -> Result<Self, WordError> {
        Self::blank(device).restate(given, device, true)
    }

    fn blank(device: &Device) -> Self {
        Self {
            unit: Unit::Bytes,
            limit: 0,
            min: 0,
            max: 0,
            max_p: 0,
            avpkt: 1000,
            averaging: Averaging::Burst(0),
            bandwidth: Rate::new(10_000_000).expect("10 Mbit/s is above zero"),
            ecn: false,
            harddrop: false,
            nodrop: false,
            wait: false,
            adaptation: Adaptation::Off,
            ramp: Ramp::Steep,
            hz: device.hz,
        }
    }

    /// After `tc`: a change that names `limit` states every number anew; flags stay once set, and so
    /// do a weight and a unit. A change without `limit` keeps what it does not name.
    pub(crate) fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        if !given.has("limit") {
            return self.restate(given, device, false);
        }
        let fresh = Self::blank(device);
        Self { min: 0, max: 0, avpkt: fresh.avpkt, bandwidth: fresh.bandwidth, ..*self }
            .restate(given, device, true)
    }

    fn restate(mut self, given: &Given, device: &Device, fresh: bool) -> Result<Self, WordError> {
        if let Some(unit) = given.text("unit") {
            self.unit = if unit == "packets" { Unit::Packets } else { Unit::Bytes };
        }
        let amount = |word: &'static str| -> Result<Option<u32>, WordError> {
            let Some(text) = given.text(word) else { return Ok(None) };
            let value = match self.unit {
                Unit::Bytes => parse_size(text).ok().and_then(|v| u32::try_from(v).ok()),
                Unit::Packets => text.strip_suffix('p').unwrap_or(text).parse().ok(),
            };
            value.map(Some).ok_or_else(|| {
                let (what, example) = match self.unit {
                    Unit::Bytes => ("a size", "30kb"),
                    Unit::Packets => ("a number of packets", "300p"),
                };
                given.error(
                    word,
                    format!("`{word}` needs {what}, such as {example}; found `{text}`"),
                )
            })
        };
        let (limit, min, max) = (amount("limit")?, amount("min")?, amount("max")?);
        self.limit = limit.unwrap_or(self.limit);
        if self.limit == 0 {
            return Err(given.error("limit", "`red` needs `limit`, such as limit 60kb"));
        }
        self.flags(given)?;
        match given.real("probability") {
            Some(p) if probability_q32(p) == 0 => {
                return Err(given.error("probability", "`probability` must be at least 2^-32"));
            }
            Some(p) => self.set_probability(p),
            None if fresh => self.set_probability(0.02),
            None => {}
        }
        set(&mut self.avpkt, above_zero(given, "avpkt", size)?);
        set(&mut self.bandwidth, given.rate("bandwidth"));
        let min = min.filter(|&v| v > 0);
        let max = max.filter(|&v| v > 0);
        if fresh {
            self.max =
                max.unwrap_or_else(|| min.map_or(self.limit / 4, |min| min.saturating_mul(3)));
            self.min = min.unwrap_or(self.max / 3);
        } else {
            self.max = max.unwrap_or(self.max);
            self.min = min.unwrap_or(self.min);
        }
        self.set_averaging(given, fresh)?;
        // tc knows nothing of the link; where there is no tc, the link's own rate serves better.
        if let Some(rate) = device.rate
            && fresh
            && !given.has("bandwidth")
            && self.in_kernel().is_err()
        {
            self.bandwidth = rate;
        }
        self.check().map_err(|(word, message)| given.error(word, message))?;
        Ok(self)
    }

    fn flags(&mut self, given: &Given) -> Result<(), WordError> {
        self.ecn |= given.has("ecn");
        self.harddrop |= given.has("harddrop");
        self.nodrop |= given.has("nodrop");
        self.wait |= given.has("wait");
        if self.nodrop && !self.ecn {
            return Err(given.error("nodrop", "`nodrop` means something only with `ecn`"));
        }
        if given.has("adaptive") && given.has("feng") {
            return Err(given.error("feng", "`adaptive` and `feng` exclude each other"));
        }
        if given.has("gentle") && given.has("gentle-limit") {
            return Err(
                given.error("gentle-limit", "`gentle` and `gentle-limit` exclude each other")
            );
        }
        if given.has("adaptive") {
            self.adaptation = Adaptation::Floyd;
        }
        if given.has("feng") {
            self.adaptation = Adaptation::Feng;
        }
        if given.has("gentle") {
            self.ramp = Ramp::Gentle;
        }
        if given.has("gentle-limit") {
            self.ramp = Ramp::GentleLimit;
        }
        Ok(())
    }

    fn set_probability(&mut self, p: f64) {
        // What becomes of one is kept only where there is a kernel.
        self.max_p =
            if self.in_kernel().is_ok() { kernel_probability(p) } else { probability_q32(p) };
    }

    fn set_averaging(&mut self, given: &Given, fresh: bool) -> Result<(), WordError> {
        if given.has("weight") && given.has("burst") {
            return Err(given.error("weight", "`weight` and `burst` exclude each other"));
        }
        if let Some(weight) = given.real("weight") {
            self.averaging = self.as_burst(weight).unwrap_or(Averaging::Weight(weight));
        } else if let Some(burst) = given.integer("burst") {
            self.averaging = Averaging::Burst(burst as u32);
        } else if fresh && matches!(self.averaging, Averaging::Burst(_)) {
            let sum = 2 * u64::from(self.min) + u64::from(self.max);
            let divisor = match self.unit {
                Unit::Bytes => 3 * u64::from(self.avpkt),
                Unit::Packets => 3,
            };
            self.averaging = Averaging::Burst((sum / divisor) as u32);
        }
        Ok(())
    }

    /// What `tc` would warn of, and what it should.
    pub(crate) fn warnings(&self, given: &Given) -> Vec<String> {
        let mut warnings = Vec::new();
        if !given.has("bandwidth") {
            warnings.push(format!("`bandwidth` is taken to be {}", format_rate(self.bandwidth)));
        }
        if let (Averaging::Burst(burst), Ok(options)) = (self.averaging, self.options())
            && options.wlog >= 10
        {
            warnings.push(format!("`burst` {burst} seems to be too large"));
        }
        warnings
    }
}
