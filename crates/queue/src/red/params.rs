//! RED's parameters, and what `tc` makes of them for the kernel.

use crate::limit::Unit;
use crate::tc::{NoKernelEquivalent, Text, fraction_text, probability_q32};
use serde::{Deserialize, Serialize};
use sojourn_units::Rate;
use sojourn_units::quantity::format_rate;

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

/// The ramp's width over `probability` in powers of two, as iproute2 finds it.
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
    /// The burst that gives `weight`, if it is a power of two and one does.
    pub(super) fn as_burst(&self, weight: f64) -> Option<Averaging> {
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
        self.bytes(self.min)
    }

    fn bytes(&self, threshold: u32) -> u64 {
        match self.unit {
            Unit::Bytes => u64::from(threshold),
            Unit::Packets => u64::from(threshold) * u64::from(self.avpkt),
        }
    }

    /// Refuses what no RED can work with: the word at fault and why.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        if self.max < self.min {
            return Err((
                "max",
                format!("`max` ({}) must not be below `min` ({})", self.max, self.min),
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
        let Some(plog) = plog(self.min_bytes(), self.bytes(self.max), probability) else {
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

    /// Whether the kernel has it; what it lacks.
    pub(super) fn in_kernel(&self) -> Result<(), &'static str> {
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
        let mut text = Text::new("red")
            .value("limit", self.limit)
            .value("min", self.min)
            .value("max", self.max)
            .value("avpkt", self.avpkt)
            .value("burst", burst)
            .value("probability", probability_text(self.max_p))
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

/// A probability as the kernel gets it from `tc`: one overflows to 0, and it then goes by `plog`.
pub(crate) fn kernel_probability(p: f64) -> u32 {
    if p >= 1.0 { 0 } else { probability_q32(p) }
}

/// A probability of the kernel's, as `tc` reads it.
pub(crate) fn probability_text(max_p: u32) -> String {
    match max_p {
        0 => "1".to_owned(),
        p => fraction_text(f64::from(p) / 4_294_967_296.0, |text| probability_q32(text) == p),
    }
}
