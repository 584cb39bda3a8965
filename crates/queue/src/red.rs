//! RED: random early detection.
//!
//! Source: Floyd, Jacobson (1993); Linux `sch_red.c` and `red.h`, `tc`'s `tc_red.c`. `adaptive`: Floyd, Gummadi,
//! Shenker (2001) as Linux has it. `feng`: Feng et al., "A self-configuring RED gateway" (1999). `gentle`: Floyd
//! (2000), as in ns-2. `gentle-limit`: the same ramp drawn out to the buffer's end. `wait`: as in ns-2.
//!
//! An exponentially weighted average of the backlog is kept at every arrival. Between `min` and `max` arrivals are
//! dropped (or marked) with a probability that grows to `probability`, spaced evenly by counting since the last
//! drop; above `max` all are. While the queue is empty the average decays.
//!
//! Invariants: no early drop below `min`; without `gentle`, every arrival is dropped or marked at `max` and above;
//! the gap between early drops at a constant average is uniform.
//!
//! The defaults for `min`, `max` and `burst`, the averaging constant and the idle table are those that
//! iproute2 6.1 computes. Three of its habits are kept: the idle table takes 64-ns ticks for
//! microseconds and natural logarithms for powers of two, so idle decay is some 22 times too slow; and
//! its `adaptive` travels where Linux 6.1 does not look when it arms the timer. Here `adaptive` works.

use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::jiffies;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::{Store, Stored};
use crate::tc::{NoKernelEquivalent, Text, above_zero, probability_q32, set, size};
use serde::{Deserialize, Serialize};
use sojourn_units::quantity::{format_rate, parse_size};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{Nanos, Rate};

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

/// How `probability` moves by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adaptation {
    /// It does not.
    #[default]
    Off,
    /// Every half second, after Floyd 2001 as in Linux.
    Floyd,
    /// When the average crosses a threshold, after Feng 1999.
    Feng,
}

/// What happens above `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ramp {
    /// Every arrival is dropped or marked.
    #[default]
    Steep,
    /// The probability grows to one at twice `max`.
    Gentle,
    /// The probability grows to one at `limit`.
    GentleLimit,
}

/// What the average is made with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Averaging {
    /// A weight of a power of two, by the burst it lets through.
    Burst(u32),
    /// Any weight.
    Weight(f64),
}

/// What the user sets.
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own")]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// What `limit`, `min` and `max` count.
    pub unit: Unit,
    /// What fits.
    pub limit: u32,
    /// Average above which drops begin.
    pub min: u32,
    /// Average at which the ramp ends.
    pub max: u32,
    /// Probability just below `max`; one is 2^32. 0 stands for one, of which Linux makes a power of two.
    pub max_p: u32,
    /// Bytes of a typical packet.
    pub avpkt: u32,
    /// What the average is made with.
    pub averaging: Averaging,
    /// Rate of the link.
    pub bandwidth: Rate,
    /// Whether to mark instead of drop.
    pub ecn: bool,
    /// Whether to drop above `max` always.
    pub harddrop: bool,
    /// Whether to queue what cannot be marked.
    pub nodrop: bool,
    /// Whether early drops keep a least distance.
    pub wait: bool,
    /// How the probability moves.
    pub adaptation: Adaptation,
    /// What happens above `max`.
    pub ramp: Ramp,
    /// Ticks a second of the coarse clock.
    pub hz: u32,
}

/// The parameters as `tc` hands them to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What fits.
    pub limit: u32,
    /// Average above which drops begin.
    pub min: u32,
    /// Average at which the ramp ends.
    pub max: u32,
    /// The average's weight is 2^-wlog.
    pub wlog: u8,
    /// Logarithm of (max - min) / probability.
    pub plog: u8,
    /// The idle table's cells are 2^`scell_log` microseconds.
    pub scell_log: u8,
    /// Probability; 0: by `plog`.
    pub max_p: u32,
    /// The idle table: by how many bits the average shrinks.
    pub stab: [u8; 256],
}

impl Options {
    /// The probability that results; one is 2^32.
    pub fn max_p_in_force(&self) -> u32 {
        match self.max_p {
            0 => {
                let width = self.max.saturating_sub(self.min).max(1);
                (u32::MAX >> self.plog).wrapping_mul(width)
            }
            p => p,
        }
    }
}

/// A complaint about the value of a word.
type Complaint = (&'static str, String);

/// `x` in powers of two, as iproute2 finds it.
fn plog(min: u32, max: u32, probability: f64) -> Option<u8> {
    let width = max.checked_sub(min).filter(|&d| d > 0)?;
    let mut p = probability / f64::from(width);
    for log in 0..32 {
        if p > 1.0 {
            return Some(log);
        }
        p *= 2.0;
    }
    None
}

/// The averaging constant for which `burst` packets just reach `min`.
fn wlog(min_bytes: u64, burst: u32, avpkt: u32) -> Option<u8> {
    let a = f64::from(burst) + 1.0 - min_bytes as f64 / f64::from(avpkt);
    if a < 1.0 {
        return None;
    }
    let mut weight = 0.5;
    for log in 1..32 {
        if a <= (1.0 - libm::pow(1.0 - weight, f64::from(burst))) / weight {
            return Some(log);
        }
        weight /= 2.0;
    }
    None
}

/// The idle table and the size of its cells.
fn idle_table(wlog: u8, avpkt: u32, bandwidth: Rate) -> Option<(u8, [u8; 256])> {
    let bytes_per_second = (bandwidth.bits() / 8).max(1);
    let micros = 1e6 * (f64::from(avpkt) / bytes_per_second as f64);
    let packet_ticks = (micros * 15.625).trunc();
    let per_tick = -libm::log(1.0 - 1.0 / (1u64 << wlog) as f64) / packet_ticks;
    let longest = 31.0 / per_tick;
    let cell = (0u8..32).find(|&c| longest / ((1u64 << c) as f64) < 512.0)?;
    let mut table = [0; 256];
    for (i, entry) in table.iter_mut().enumerate().skip(1) {
        *entry = (((i as u64) << cell) as f64 * per_tick).min(31.0) as u8;
    }
    table[255] = 31;
    Some((cell, table))
}

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
                return Err(given.error("probability", "`probability` is too small"));
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
        // One overflows to 0 in tc, and the kernel then goes by Plog; kept only where there is a kernel.
        self.max_p = if p >= 1.0 && self.in_kernel().is_ok() { 0 } else { probability_q32(p) };
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

    /// The burst that gives `weight`, if it is a power of two and one does.
    fn as_burst(&self, weight: f64) -> Option<Averaging> {
        let log =
            (1u8..32).find(|&log| (weight * (1u64 << log) as f64).to_bits() == 1f64.to_bits())?;
        // The constant never falls as the burst grows, so halving finds the least burst.
        let (mut low, mut high) = ((self.min_bytes() / u64::from(self.avpkt)) as u32, u32::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if wlog(self.min_bytes(), middle, self.avpkt).unwrap_or(if middle < 4 { 0 } else { 32 })
                < log
            {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low > 0 && wlog(self.min_bytes(), low, self.avpkt) == Some(log))
            .then_some(Averaging::Burst(low))
    }

    fn min_bytes(&self) -> u64 {
        match self.unit {
            Unit::Bytes => u64::from(self.min),
            Unit::Packets => u64::from(self.min) * u64::from(self.avpkt),
        }
    }

    fn check(&self) -> Result<(), Complaint> {
        if self.max <= self.min {
            return Err((
                "max",
                format!("`max` ({}) must be above `min` ({})", self.max, self.min),
            ));
        }
        if self.ramp == Ramp::GentleLimit && self.limit <= self.max {
            return Err((
                "gentle-limit",
                format!("`gentle-limit` needs `limit` ({}) above `max` ({})", self.limit, self.max),
            ));
        }
        match self.averaging {
            Averaging::Weight(_) if self.max_p == 0 => {
                Err(("probability", "`probability` must be above 0".to_owned()))
            }
            Averaging::Weight(_) => Ok(()),
            Averaging::Burst(_) => self.options().map(|_| ()),
        }
    }

    /// What `tc` would hand to the kernel.
    ///
    /// # Errors
    /// The word at fault and why.
    pub fn options(&self) -> Result<Options, Complaint> {
        let Averaging::Burst(burst) = self.averaging else {
            return Err(("weight", "any weight but a power of two".to_owned()));
        };
        let Some(wlog) = wlog(self.min_bytes(), burst, self.avpkt) else {
            if self.min_bytes() < u64::from(self.avpkt) {
                let why = "`min` must be at least one packet of `avpkt` bytes";
                return Err(("min", why.to_owned()));
            }
            let least = 1 + self.min_bytes() / u64::from(self.avpkt);
            return Err((
                "burst",
                format!("no averaging constant fits `burst` {burst}; try {least} or more"),
            ));
        };
        let bits = |value: u32| 32 - value.leading_zeros() + u32::from(wlog);
        if bits(self.min) >= 32 || bits(self.max) >= 32 {
            return Err(("burst", "`burst` and `max` are too large together".to_owned()));
        }
        let probability = match self.max_p {
            0 => 1.0,
            p => f64::from(p) / 4_294_967_296.0,
        };
        let Some(plog) = plog(self.min, self.max, probability) else {
            return Err((
                "probability",
                "`probability` is too small for the width between `min` and `max`".to_owned(),
            ));
        };
        let Some((scell_log, stab)) = idle_table(wlog, self.avpkt, self.bandwidth) else {
            return Err((
                "bandwidth",
                "`avpkt` takes too long or no time at all at `bandwidth`".to_owned(),
            ));
        };
        Ok(Options {
            limit: self.limit,
            min: self.min,
            max: self.max,
            wlog,
            plog,
            scell_log,
            max_p: self.max_p,
            stab,
        })
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

    fn in_kernel(&self) -> Result<(), &'static str> {
        if self.unit == Unit::Packets {
            return Err("its RED counts bytes only");
        }
        if self.adaptation == Adaptation::Feng {
            return Err("`feng` is not there; `adaptive` is the nearest");
        }
        if self.ramp != Ramp::Steep {
            return Err("it has no gentle ramp");
        }
        if self.wait {
            return Err("it does not wait between early drops");
        }
        if matches!(self.averaging, Averaging::Weight(_)) {
            return Err("its averaging weight is a power of two, set by burst");
        }
        Ok(())
    }

    pub(crate) fn to_tc(self) -> Result<String, NoKernelEquivalent> {
        self.in_kernel().map_err(|reason| NoKernelEquivalent {
            discipline: "red",
            reason: reason.to_owned(),
        })?;
        let burst = match self.averaging {
            Averaging::Burst(burst) => burst,
            Averaging::Weight(_) => 0,
        };
        let probability = if self.max_p == 0 { "1".to_owned() } else { fraction_text(self.max_p) };
        let mut text = Text::new("red")
            .value("limit", self.limit)
            .value("min", self.min)
            .value("max", self.max)
            .value("avpkt", self.avpkt)
            .value("burst", burst)
            .value("probability", probability)
            .value("bandwidth", format_rate(self.bandwidth));
        for (word, given) in [
            ("ecn", self.ecn),
            ("harddrop", self.harddrop),
            ("nodrop", self.nodrop),
            ("adaptive", self.adaptation == Adaptation::Floyd),
        ] {
            if given {
                text = text.flag(word);
            }
        }
        Ok(text.done())
    }
}

/// The shortest decimal fraction that reads back as `p` / 2^32.
pub(crate) fn fraction_text(p: u32) -> String {
    for digits in 1..=12u32 {
        let scale = 10u64.pow(digits);
        // The least numerator whose fraction is not below p, then cut as a reader cuts it.
        let numerator = (u128::from(p) * u128::from(scale)).div_ceil(1 << 32) as u64;
        let text = format!("0.{numerator:0width$}", width = digits as usize);
        if numerator < scale && text.parse().map(probability_q32) == Ok(p) {
            return text;
        }
    }
    format!("{:.12}", f64::from(p) / 4_294_967_296.0)
}

/// Fraction bits of the average when the weight is not a power of two.
const FRACTION: u8 = 24;

/// How the average moves.
#[derive(Clone, Debug)]
enum Filter {
    /// Linux's: shifts and a table.
    Shift { wlog: u8, scell_log: u8, stab: Box<[u8; 256]> },
    /// Any weight, as a fraction of 2^32, and the time of a typical packet.
    Weight { weight: u64, packet_time: Nanos },
}

impl Filter {
    /// Fraction bits of the average.
    #[inline]
    fn bits(&self) -> u8 {
        match self {
            Self::Shift { wlog, .. } => *wlog,
            Self::Weight { .. } => FRACTION,
        }
    }

    #[inline]
    fn sample(&self, avg: u64, backlog: u64) -> u64 {
        match self {
            Self::Shift { wlog, .. } => avg.wrapping_add(backlog).wrapping_sub(avg >> wlog),
            Self::Weight { weight, .. } => {
                let error = i128::from(backlog << FRACTION) - i128::from(avg);
                (i128::from(avg) + ((error * i128::from(*weight)) >> 32)) as u64
            }
        }
    }

    /// The average after the queue was empty for `idle`.
    fn decay(&self, avg: u64, idle: Nanos) -> u64 {
        match self {
            Self::Shift { scell_log, stab, .. } => {
                let micros = (idle / 1000).min(255 << scell_log);
                let shift = stab[(micros >> scell_log) as usize & 255];
                if shift != 0 {
                    return avg >> shift;
                }
                // Within the first cells the table says 0: a straight line, at most to one half.
                let less = avg.wrapping_mul(micros) >> scell_log;
                if less < avg >> 1 { avg - less } else { avg >> 1 }
            }
            Self::Weight { weight, packet_time } => {
                let mut factor = (1u64 << 32) - weight;
                let mut packets = idle / packet_time;
                let mut avg = avg;
                while packets > 0 && avg > 0 {
                    if packets & 1 == 1 {
                        avg = ((u128::from(avg) * u128::from(factor)) >> 32) as u64;
                    }
                    factor = ((u128::from(factor) * u128::from(factor)) >> 32) as u64;
                    packets >>= 1;
                }
                avg
            }
        }
    }
}

/// On which side of the thresholds the average was last, for `feng`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Between,
    Above,
}

/// What RED remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The average backlog, with fraction bits.
    pub qavg: u64,
    /// Arrivals since the last early drop; -1 outside the ramp.
    pub qcount: i32,
    /// The random threshold that spaces drops.
    pub q_r: u32,
    /// When the queue became idle; 0 if it is not.
    pub qidlestart: Nanos,
    /// The probability in force; one is 2^32.
    pub max_p: u32,
    /// Draws are divided by this.
    divisor: u32,
    side: Side,
}

/// What RED counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    prob_drop: u64,
    forced_drop: u64,
    pdrop: u64,
    prob_mark: u64,
    forced_mark: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Early,
    Hard,
}

/// A RED queue.
#[derive(Clone, Debug)]
pub struct Red<P> {
    params: Params,
    filter: Filter,
    state: State,
    counters: Counters,
    totals: Totals,
    store: Store<P>,
    timer: Option<Nanos>,
}

const ONE_PERCENT: u32 = 42_949_673;

impl<P: Packet> Red<P> {
    /// An empty queue, created at `now`.
    ///
    /// # Panics
    /// If `params` are such as [`crate::Params::parse`] refuses.
    pub fn new(params: Params, now: Nanos) -> Self {
        match params.averaging {
            Averaging::Burst(_) => {
                let options = params.options().expect("parameters are checked when they are read");
                Self::with_options(params, &options, now)
            }
            Averaging::Weight(weight) => {
                let filter = Filter::Weight {
                    weight: ((weight * 4_294_967_296.0) as u64).clamp(1, 1 << 32),
                    packet_time: params.bandwidth.transmission_time(params.avpkt).max(1),
                };
                Self::with_filter(params, filter, params.max_p, now)
            }
        }
    }

    /// A queue from the numbers that `tc` would send; those in `params` give way.
    pub fn with_options(params: Params, options: &Options, now: Nanos) -> Self {
        let params = Params {
            limit: options.limit,
            min: options.min,
            max: options.max,
            max_p: options.max_p,
            ..params
        };
        let filter = Filter::Shift {
            wlog: options.wlog,
            scell_log: options.scell_log,
            stab: Box::new(options.stab),
        };
        Self::with_filter(params, filter, options.max_p_in_force(), now)
    }

    fn with_filter(params: Params, filter: Filter, max_p: u32, now: Nanos) -> Self {
        let mut red = Self {
            params,
            filter,
            state: State {
                qavg: 0,
                qcount: -1,
                q_r: 0,
                qidlestart: now,
                max_p,
                divisor: 1,
                side: Side::Below,
            },
            counters: Counters::default(),
            totals: Totals::default(),
            store: Store::default(),
            timer: None,
        };
        red.state.divisor = (max_p / red.width()).max(1);
        red.arm(now);
        red
    }

    fn arm(&mut self, now: Nanos) {
        let hz = self.params.hz;
        self.timer = (self.params.adaptation == Adaptation::Floyd)
            .then(|| jiffies::start(jiffies::at(now, hz) + u64::from(hz / 2), hz));
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. As in the kernel, all that is queued is thrown away and the average
    /// starts over.
    pub fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.store.cut(0, &mut self.totals, sink);
        let fresh = Self::new(params, now);
        self.params = fresh.params;
        self.filter = fresh.filter;
        self.state = State { q_r: self.state.q_r, ..fresh.state };
        self.timer = fresh.timer;
    }

    #[inline]
    fn width(&self) -> u32 {
        self.params.max.saturating_sub(self.params.min).max(1)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.params.unit {
            Unit::Bytes => self.store.bytes(),
            Unit::Packets => self.store.len() as u64,
        }
    }

    /// Where the ramp ends.
    #[inline]
    fn end(&self) -> u64 {
        match self.params.ramp {
            Ramp::Steep => u64::from(self.params.max),
            Ramp::Gentle => 2 * u64::from(self.params.max),
            Ramp::GentleLimit => u64::from(self.params.limit),
        }
    }

    /// Whether probabilities are computed finely, which Linux does not.
    #[inline]
    fn fine(&self) -> bool {
        self.params.ramp != Ramp::Steep || matches!(self.filter, Filter::Weight { .. })
    }

    /// The drop probability at this average before spacing, as a fraction of 2^32.
    fn probability(&self) -> u64 {
        let bits = self.filter.bits();
        let (low, high) = (u64::from(self.params.min) << bits, u64::from(self.params.max) << bits);
        let max_p = u64::from(self.state.max_p);
        let avg = self.state.qavg;
        let part = |of: u64, from: u64, to: u64| {
            (u128::from(of) * u128::from(avg - from) / u128::from(to - from)) as u64
        };
        if avg < high {
            part(max_p, low, high)
        } else {
            max_p + part((1 << 32) - max_p, high, self.end() << bits)
        }
    }

    #[inline]
    fn threshold(&self, draws: &mut impl Draws) -> u32 {
        if self.fine() { draws.draw_u32() } else { draws.draw_u32() / self.state.divisor }
    }

    #[inline]
    fn judge(&mut self, draws: &mut impl Draws) -> Verdict {
        let bits = self.filter.bits();
        let low = u64::from(self.params.min) << bits;
        if self.state.qavg < low {
            self.state.qcount = -1;
            return Verdict::Pass;
        }
        if self.state.qavg >= self.end() << bits {
            self.state.qcount = -1;
            return Verdict::Hard;
        }
        self.state.qcount = self.state.qcount.wrapping_add(1);
        if self.state.qcount == 0 {
            self.state.q_r = self.threshold(draws);
            return Verdict::Pass;
        }
        let pace = if self.fine() { self.probability() } else { (self.state.qavg - low) >> bits };
        // A probability of one is a threshold of 2^32, in draws or in what they are divided to.
        let least = match (self.params.wait, self.fine()) {
            (false, _) => 0,
            (true, true) => 1 << 32,
            (true, false) => (1 << 32) / u64::from(self.state.divisor),
        };
        if pace.wrapping_mul(self.state.qcount as u64) < least + u64::from(self.state.q_r) {
            return Verdict::Pass;
        }
        self.state.qcount = 0;
        self.state.q_r = self.threshold(draws);
        Verdict::Early
    }

    #[inline]
    fn average(&mut self, now: Nanos) {
        if self.state.qidlestart == 0 {
            self.state.qavg = self.filter.sample(self.state.qavg, self.backlog());
        } else {
            let idle = now.saturating_sub(self.state.qidlestart);
            self.state.qavg = self.filter.decay(self.state.qavg, idle);
            self.state.qidlestart = 0;
        }
        if self.params.adaptation == Adaptation::Feng {
            self.feng();
        }
    }

    /// Feng 1999: once per crossing.
    fn feng(&mut self) {
        let bits = self.filter.bits();
        let side = if self.state.qavg < u64::from(self.params.min) << bits {
            Side::Below
        } else if self.state.qavg > u64::from(self.params.max) << bits {
            Side::Above
        } else {
            Side::Between
        };
        if side == self.state.side {
            return;
        }
        self.state.side = side;
        match side {
            Side::Below => self.state.max_p = (self.state.max_p / 3).max(1),
            Side::Above => self.state.max_p = self.state.max_p.saturating_mul(2),
            Side::Between => {}
        }
        self.state.divisor = (self.state.max_p / self.width()).max(1);
    }
}

/// The factor and shifts by which Linux divides by `divisor`.
pub fn reciprocal(divisor: u32) -> (u32, u8, u8) {
    let log = 32 - (divisor - 1).leading_zeros();
    let factor = (((1u64 << log) - u64::from(divisor)) << 32) / u64::from(divisor) + 1;
    (factor as u32, log.min(1) as u8, log.saturating_sub(1) as u8)
}

impl<P: Packet> Stored for Red<P> {
    type Packet = P;

    #[inline]
    fn store(&self) -> &Store<P> {
        &self.store
    }
}

impl<P: Packet> Discipline<P> for Red<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        self.average(now);
        let verdict = self.judge(draws);
        if verdict != Verdict::Pass {
            self.totals.overlimits += 1;
            let hard = verdict == Verdict::Hard;
            let may_mark = self.params.ecn && !(hard && self.params.harddrop);
            if may_mark && packet.set_ce() {
                if hard {
                    self.counters.forced_mark += 1;
                    sink.marked(&packet, MarkReason::Forced);
                } else {
                    self.counters.prob_mark += 1;
                    sink.marked(&packet, MarkReason::Early);
                }
            } else if !(may_mark && self.params.nodrop) {
                self.totals.drops += 1;
                if hard {
                    self.counters.forced_drop += 1;
                    sink.dropped(packet, DropReason::Forced, false);
                } else {
                    self.counters.prob_drop += 1;
                    sink.dropped(packet, DropReason::Early, false);
                }
                return Return::Congestion;
            }
        }
        if self.params.unit.fits(self.params.limit, &self.store, &packet) {
            self.store.push(now, packet);
            return Return::Success;
        }
        self.counters.pdrop += 1;
        self.totals.drops += 1;
        sink.dropped(packet, DropReason::Overflow, false);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        if let Some(queued) = self.store.pop() {
            self.totals.sent(queued.packet.len());
            return Dequeue::Packet(queued.packet);
        }
        if self.state.qidlestart == 0 {
            self.state.qidlestart = now;
        }
        Dequeue::Empty
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    /// Floyd 2001, as Linux does it.
    fn on_timer(&mut self, now: Nanos) {
        let mut avg = self.state.qavg;
        if self.state.qidlestart != 0 {
            avg = self.filter.decay(avg, now.saturating_sub(self.state.qidlestart));
        }
        let avg = avg >> self.filter.bits();
        let width = self.width();
        let step = u64::from(width / 5);
        let low = u64::from(self.params.min) + 2 * step;
        let high = u64::from(self.params.min) + 3 * step;
        let max_p = &mut self.state.max_p;
        if avg > high && *max_p <= 50 * ONE_PERCENT {
            *max_p += (*max_p / 4).min(ONE_PERCENT);
        } else if avg < low && *max_p >= ONE_PERCENT {
            *max_p = *max_p / 10 * 9;
        }
        let rounded = (u64::from(*max_p) + u64::from(width / 2)) / u64::from(width);
        self.state.divisor = (rounded as u32).max(1);
        self.arm(now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        let (factor, first, second) = reciprocal(self.state.divisor);
        visit("qavg", self.state.qavg.into());
        visit("qcount", self.state.qcount.into());
        visit("qR", self.state.q_r.into());
        visit("qidlestart", self.state.qidlestart.into());
        visit("max_P", self.state.max_p.into());
        visit("recip_m", factor.into());
        visit("recip_sh1", first.into());
        visit("recip_sh2", second.into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("prob_drop", self.counters.prob_drop);
        visit("forced_drop", self.counters.forced_drop);
        visit("pdrop", self.counters.pdrop);
        visit("prob_mark", self.counters.prob_mark);
        visit("forced_mark", self.counters.forced_mark);
    }
}
