//! SFB's parameters and words.

use crate::device::Device;
use crate::jiffies;
use crate::tc::{LIMIT, Text, above_zero, fraction_text, packets, set};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The kernel's longest span in milliseconds that is not "for ever".
const LONGEST: u64 = (1 << 31) - 1;

/// The words of `sfb`.
pub const TABLE: Table = Table {
    name: "sfb",
    summary: "SFB: BLUE in bins that flows share by hashes, with a penalty box for those that do not respond",
    source: "Feng, Kandlur, Saha, Shin 2001; Linux sch_sfb.c, iproute2 q_sfb.c",
    words: &[
        Word {
            name: "rehash",
            kind: Kind::Integer { min: 0, max: LONGEST },
            default: "600000",
            doc: "Milliseconds after which flows are sorted into bins by a new hash; 0 is never. tc takes no unit here.",
        },
        Word {
            name: "db",
            kind: Kind::Integer { min: 0, max: LONGEST },
            default: "60000",
            doc: "Milliseconds before a change of hash in which the next set of bins is warmed up (double buffering); 0 is none.",
        },
        LIMIT,
        Word {
            name: "max",
            kind: Kind::Packets,
            default: "25p",
            doc: "Packets that a flow may have in its emptiest bin; 5/4 of target if only that is given.",
        },
        Word {
            name: "target",
            kind: Kind::Packets,
            default: "20p",
            doc: "Packets in a bin from which its probability rises; 4/5 of max if only that is given.",
        },
        Word {
            name: "increment",
            kind: Kind::Probability,
            default: "0.0005",
            doc: "What an arrival at a bin of target packets or more adds to its probability.",
        },
        Word {
            name: "decrement",
            kind: Kind::Probability,
            default: "0.00005",
            doc: "What an arrival at an empty bin takes from its probability.",
        },
        Word {
            name: "penalty_rate",
            kind: Kind::Integer { min: 0, max: 4_294_967_295 },
            default: "10",
            doc: "Packets a second that all flows with probability one may queue together.",
        },
        Word {
            name: "penalty_burst",
            kind: Kind::Integer { min: 0, max: 4_294_967_295 },
            default: "20",
            doc: "Packets that such flows may queue at once.",
        },
    ],
};

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Milliseconds between changes of the hash; 0: never.
    pub rehash_ms: u32,
    /// Milliseconds of warm-up before a change of the hash.
    pub warmup_ms: u32,
    /// Packets that fit.
    pub limit: u32,
    /// Packets that a flow may have in its emptiest bin.
    pub max: u32,
    /// Packets in a bin from which its probability rises.
    pub bin_size: u32,
    /// What a full bin adds; one is 65535.
    pub increment: u16,
    /// What an empty bin takes; one is 65535.
    pub decrement: u16,
    /// Packets a second of all flows in the penalty box.
    pub penalty_rate: u32,
    /// Packets of them at once.
    pub penalty_burst: u32,
    /// Ticks a second of the coarse clock.
    pub hz: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(device: &Device) -> Self {
        Self {
            rehash_ms: 600_000,
            warmup_ms: 60_000,
            limit: 1000,
            max: 25,
            bin_size: 20,
            increment: probability_q16(0.000_5),
            decrement: probability_q16(0.000_05),
            penalty_rate: 10,
            penalty_burst: 20,
            hz: device.hz,
        }
    }

    /// As `tc` does, which states everything anew in a change as well.
    pub(crate) fn parse(given: &Given, device: &Device) -> Result<Self, WordError> {
        let mut params = Self::new(device);
        let integer = |word| given.integer(word).map(|value| value as u32);
        set(&mut params.rehash_ms, integer("rehash"));
        set(&mut params.warmup_ms, integer("db"));
        set(&mut params.limit, above_zero(given, "limit", packets)?);
        let max = above_zero(given, "max", packets)?;
        let bin_size = above_zero(given, "target", packets)?;
        let times = |packets: u32, by: u64, over: u64, of: u64| {
            u32::try_from((u64::from(packets) * by + over) / of).unwrap_or(u32::MAX)
        };
        set(&mut params.max, max.or(bin_size.map(|target| times(target, 5, 1, 4))));
        params.bin_size = bin_size.unwrap_or(times(params.max, 4, 3, 5));
        set(&mut params.increment, given.real("increment").map(probability_q16));
        set(&mut params.decrement, given.real("decrement").map(probability_q16));
        set(&mut params.penalty_rate, integer("penalty_rate"));
        set(&mut params.penalty_burst, integer("penalty_burst"));
        Ok(params)
    }

    /// Ticks between changes of the hash.
    pub(super) fn rehash(&self) -> u64 {
        jiffies::from_millis(self.rehash_ms, self.hz)
    }

    /// Ticks of warm-up.
    pub(super) fn warmup(&self) -> u64 {
        jiffies::from_millis(self.warmup_ms, self.hz)
    }

    /// What the manual of `tc` advises against.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let Self { rehash_ms, warmup_ms, max, bin_size, .. } = self;
        let mut warnings = Vec::new();
        if max < bin_size {
            warnings.push(format!(
                "`max` {max} is below `target` {bin_size}: a bin of one flow never gets so far"
            ));
        }
        if *rehash_ms > 0 && warmup_ms >= rehash_ms {
            warnings.push(format!(
                "`db` {warmup_ms} is not below `rehash` {rehash_ms}: both sets of bins are always in use"
            ));
        }
        warnings
    }

    pub(crate) fn to_tc(self) -> String {
        Text::new("sfb")
            .value("rehash", self.rehash_ms)
            .value("db", self.warmup_ms)
            .value("limit", self.limit)
            .value("max", self.max)
            .value("target", self.bin_size)
            .value("increment", probability_text(self.increment))
            .value("decrement", probability_text(self.decrement))
            .value("penalty_rate", self.penalty_rate)
            .value("penalty_burst", self.penalty_burst)
            .done()
    }
}

/// A probability as a fraction of 65535, rounded to the nearest.
fn probability_q16(p: f64) -> u16 {
    (p * f64::from(u16::MAX) + 0.5) as u16
}

fn probability_text(p: u16) -> String {
    match p {
        u16::MAX => "1".to_owned(),
        p => fraction_text(f64::from(p) / f64::from(u16::MAX), |text| probability_q16(text) == p),
    }
}
