//! Parameters of RED, and their conversion by `tc` to the kernel's numbers.

use crate::device::Device;
use crate::kinds::bytes;
use crate::limit::Unit;
use crate::tc::{fraction_text, probability_q32};
use sojourn_units::declare::{Param, derived, flag, flags, group, late, rate};
use sojourn_units::words::{Kind, Value, Word};
use sojourn_units::{Rate, choices, data, params, words};

choices! {
    /// Automatic adaptation of `probability`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Adaptation {
        /// No adaptation.
        #[default]
        Off = "",
        /// Adaptation every half second, by Floyd 2001's rule as in Linux.
        Floyd = "adaptive",
        /// Adaptation when the average falls below `min` or rises above `max`: Feng 1999's rule.
        Feng = "feng",
    }
}

choices! {
    /// The drop probability above `max`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Ramp {
        /// Every arrival is dropped or marked.
        #[default]
        Steep = "",
        /// The probability grows to 1 at twice `max`.
        Gentle = "gentle",
        /// The probability grows to 1 at `limit`.
        GentleLimit = "gentle-limit",
    }
}

/// The parameter that gives the averaging weight.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Averaging {
    /// Burst in packets, from which `tc` computes a weight that is a power of two.
    Burst(u32),
    /// Weight of a sample, above 0 and at most 1.
    Weight(f64),
}

params! {
    "red": "RED: drops packets depending on the average backlog, before the queue is full",
    from "Floyd, Jacobson 1993; Linux sch_red.c, iproute2 tc_red.c";

    /// Parameters of RED, with the words of `tc`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params on Device {
        /// Maximum backlog in bytes (in packets with `unit packets`); required.
        limit: u32 = late(Kind::Name, ""),
        /// Average backlog above which early drops begin.
        min: u32 = late(Kind::Name, "max/3"),
        /// Average backlog at which the ramp ends.
        max: u32 = late(Kind::Name, "3 min, or limit/4"),
        /// Drop probability just below max.
        max_p as "probability": u32 = kernel_fraction("0.02"),
        /// Typical packet length, for burst and idle times; tc has no default.
        avpkt: u32 = bytes("1000b").above_zero(),
        /// Averaging weight, given as burst or as weight.
        averaging: Averaging = group(
            AVERAGING,
            |_| Averaging::Burst(0),
            |_, _| Ok(()),
            |averaging, text| match averaging {
                Averaging::Burst(burst) => text.value("burst", burst),
                Averaging::Weight(weight) => text.value("weight", weight),
            },
        ),
        /// Rate of the link, used only for idle times. With words that Linux lacks, the default is
        /// the rate of the link.
        bandwidth: Rate = rate("10mbit"),
        /// Unit of limit, min and max. Not in Linux.
        unit: Unit = Param::word(
            Kind::Choice { of: &["bytes", "packets"] },
            "bytes",
            |value| Ok(if value.text() == "packets" { Unit::Packets } else { Unit::Bytes }),
            |unit| (*unit == Unit::Packets).then(|| Value::Text("packets".to_owned())),
        ),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = flag(),
        /// Drops packets above max, also ECN-capable ones.
        harddrop: bool = flag(),
        /// Enqueues packets that cannot be marked, instead of dropping them; needs ecn.
        nodrop: bool = flag(),
        /// Automatic adaptation of probability.
        adaptation: Adaptation = flags(ADAPTATION),
        /// Makes the gaps between early drops uniform from 1/p to 2/p instead of from 1 to 1/p
        /// packets, as in ns-2. Not in Linux.
        wait: bool = flag(),
        /// Drop probability above `max`.
        ramp: Ramp = flags(RAMP),
        /// Timer ticks per second.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

const AVERAGING: &[Word] = words! {
    "burst", Kind::Integer { min: 1, max: 4_294_967_295 }, "(2 min + max) / (3 avpkt)",
        "Number of packets that may arrive at an idle queue in a burst without an early drop; sets the averaging weight.";
    "weight", Kind::Real { min: 0.000_000_001, max: 1.0 }, "",
        "Weight of a new sample in the average; replaces burst. Not in Linux; a power of two is converted to a burst that gives this weight, if possible.";
};
const ADAPTATION: &[Word] = words! {
    "adaptive", Kind::Flag, "",
        "Adapts probability every half second to keep the average near the middle between min and max (iproute2 from 5.7 on cannot enable it in Linux 6.1).";
    "feng", Kind::Flag, "",
        "Divides probability by 3 when the average falls below min, and doubles it when the average rises above max. Not in Linux.";
};
const RAMP: &[Word] = words! {
    "gentle", Kind::Flag, "",
        "Lets the drop probability grow to 1 between max and twice max, instead of a step at max. Not in Linux.";
    "gentle-limit", Kind::Flag, "", "Lets the drop probability grow to 1 between max and limit, instead of a step at max. Not in Linux.";
};

/// Parameters as `tc` passes them to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum backlog, in the unit.
    pub limit: u32,
    /// Average backlog above which early drops begin.
    pub min: u32,
    /// Average backlog at which the ramp ends.
    pub max: u32,
    /// Exponent of the averaging weight, which is 2^-`wlog`.
    pub wlog: u8,
    /// Binary logarithm of (max - min) / probability.
    pub plog: u8,
    /// Exponent of the idle table: a cell is 2^`scell_log` microseconds of idle time.
    pub scell_log: u8,
    /// Maximum probability, in units of 2^-32; 0 if `plog` gives it.
    pub max_p: u32,
    /// Idle table: number of bits by which the average is shifted after each idle time.
    pub stab: [u8; 256],
}

impl Options {
    /// Returns the effective maximum probability, in units of 2^-32.
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

/// A rejected value: its word, and the reason.
type Complaint = (&'static str, String);

/// Returns the binary logarithm of (max - min) / `probability`, rounded as in iproute2; `None` if
/// it is above 31.
fn plog(min_bytes: u64, max_bytes: u64, probability: f64) -> Option<u8> {
    let width = max_bytes.checked_sub(min_bytes)?;
    if width == 0 {
        return Some(0);
    }
    let mut p = probability / width as f64;
    for log in 0..32 {
        if p > 1.0 {
            return Some(log);
        }
        p *= 2.0;
    }
    None
}

/// Returns the exponent of the averaging weight for which a burst of `burst` packets just reaches
/// `min`; `None` if no weight does.
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

/// Returns the exponent of the cells' size, and the idle table.
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
    /// Returns a burst that gives `weight`; `None` if the weight is no power of two or no burst
    /// gives it.
    pub(super) fn as_burst(&self, weight: f64) -> Option<Averaging> {
        let log =
            (1u8..32).find(|&log| (weight * (1u64 << log) as f64).to_bits() == 1f64.to_bits())?;
        // `wlog` does not decrease as the burst grows: a binary search finds the smallest burst
        // with this `log`.
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
        self.bytes(self.min)
    }

    fn bytes(&self, threshold: u32) -> u64 {
        match self.unit {
            Unit::Bytes => u64::from(threshold),
            Unit::Packets => u64::from(threshold) * u64::from(self.avpkt),
        }
    }

    /// Rejects values with which RED cannot work; the error has the word and the reason.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        if self.max < self.min {
            return Err((
                "max",
                format!(
                    "`max` ({}) must not be below `min` ({})",
                    self.unit.text(self.max),
                    self.unit.text(self.min)
                ),
            ));
        }
        if self.ramp == Ramp::GentleLimit && self.limit <= self.max {
            return Err((
                "gentle-limit",
                format!(
                    "`gentle-limit` needs `limit` ({}) above `max` ({})",
                    self.unit.text(self.limit),
                    self.unit.text(self.max)
                ),
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

    /// Returns the numbers that `tc` would pass to the kernel.
    ///
    /// # Errors
    /// The word with the wrong value, and the reason.
    pub fn options(&self) -> Result<Options, Complaint> {
        let Averaging::Burst(burst) = self.averaging else {
            return Err(("weight", "`weight` must be a power of two for the kernel".to_owned()));
        };
        let Some(wlog) = wlog(self.min_bytes(), burst, self.avpkt) else {
            if self.min_bytes() < u64::from(self.avpkt) {
                let why = "`min` must be at least one packet of `avpkt` bytes";
                return Err(("min", why.to_owned()));
            }
            let least = 1 + self.min_bytes() / u64::from(self.avpkt);
            return Err((
                "burst",
                format!("no averaging weight fits `burst` {burst}: it must be at least {least}"),
            ));
        };
        let bits = |value: u32| 32 - value.leading_zeros() + u32::from(wlog);
        if bits(self.min) >= 32 || bits(self.max) >= 32 {
            return Err((
                "burst",
                "`burst` and `max` are too large together: reduce one of them".to_owned(),
            ));
        }
        let probability = match self.max_p {
            0 => 1.0,
            p => f64::from(p) / 4_294_967_296.0,
        };
        let Some(plog) = plog(self.min_bytes(), self.bytes(self.max), probability) else {
            return Err((
                "probability",
                "`probability` is too small for the difference between `min` and `max`".to_owned(),
            ));
        };
        let Some((scell_log, stab)) = idle_table(wlog, self.avpkt, self.bandwidth) else {
            return Err((
                "bandwidth",
                "the transmission time of `avpkt` at `bandwidth` is 0 or too long".to_owned(),
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

    /// Returns an error if the kernel lacks a feature of these parameters.
    pub(super) fn kernel_lacks(&self) -> Result<(), &'static str> {
        if self.unit == Unit::Packets {
            return Err("Linux's RED counts only bytes");
        }
        if self.adaptation == Adaptation::Feng {
            return Err("Linux has no `feng`; `adaptive` is the most similar");
        }
        if self.ramp != Ramp::Steep {
            return Err("Linux has no gentle ramp");
        }
        if self.wait {
            return Err("Linux has no `wait`");
        }
        if matches!(self.averaging, Averaging::Weight(_)) {
            return Err("in Linux the averaging weight is a power of two, set by burst");
        }
        Ok(())
    }
}

/// Returns a probability as the kernel gets it from `tc`, in units of 2^-32: 1 overflows to 0, and
/// then the kernel computes it from `plog`.
pub(crate) fn kernel_probability(p: f64) -> u32 {
    if p >= 1.0 { 0 } else { probability_q32(p) }
}

/// Returns a parameter that is a probability, as [`kernel_probability`] converts it.
pub(crate) const fn kernel_fraction<On>(default: &'static str) -> Param<u32, On> {
    let from = |value: &Value| match probability_q32(value.real()) {
        0 => Err("must be at least 2^-32 (2.3e-10)".to_owned()),
        _ => Ok(kernel_probability(value.real())),
    };
    Param::word(Kind::Probability, default, from, |p| Some(Value::Text(probability_text(*p))))
}

/// Returns a probability of the kernel as text that `tc` reads.
fn probability_text(max_p: u32) -> String {
    match max_p {
        0 => "1".to_owned(),
        p => fraction_text(f64::from(p) / 4_294_967_296.0, |text| probability_q32(text) == p),
    }
}
