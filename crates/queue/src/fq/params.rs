//! The user's settings of FQ: `tc`'s words, and the kernel's numbers.

use crate::device::Device;
use crate::kinds::{bytes, micros, optional_micros, packets, whole_micros};
use crate::tc::time_text;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{
    Param, Parameters, derived, group, integer, one_of, rate, switch, time,
};
use sojourn_units::words::{Given, Kind, Table, Value, Word, WordError};
use sojourn_units::{MICROSECOND, Nanos, Rate, choices, jiffies, params, quantity, words};

/// The words of `fq`.
pub const TABLE: Table = Table {
    name: "fq",
    summary: "FQ: flows take turns within three bands of priority, and paced flows wait for their departure time",
    source: "Linux sch_fq.c, tc-fq(8)",
    words: Params::WORDS,
};

/// Bands of priority.
pub const BANDS: usize = 3;

/// The band of each priority, unless `priomap` says otherwise.
const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
/// The least weight.
const LEAST_WEIGHT: u32 = 16_384;
/// The most that is counted in 31 bits.
const MOST: u32 = i32::MAX as u32;

/// Bytes of a band's turn, unless `weights` says otherwise.
const WEIGHTS: [u32; BANDS] = [589_824, 196_608, 65_536];

const BANDS_WORDS: &[Word] = words! {
    "bands", Kind::Integer { min: 3, max: 3 }, "3", "Bands: there are always three.";
    "priomap", Kind::Numbers { most: 16, max: 2 }, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "Band of each priority from 0 to 15; the priority follows from the TOS byte.";
};

choices! {
    /// The treatment of a packet whose departure time is beyond the horizon.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Beyond {
        /// It leaves at the horizon.
        #[serde(rename = "cap")]
        Cap = "horizon_cap",
        /// It is dropped.
        #[serde(rename = "drop")]
        Drop = "horizon_drop",
    }
}

params! {
    /// Parameters of FQ, as `tc` has them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that each of the three bands holds.
        limit: u32 = packets("10000p"),
        /// Packets that a flow holds.
        flow_limit: u32 = packets("100p"),
        /// Bytes that a flow may send in its turn; the kernel's default is two full frames.
        quantum: u32 = bytes("3028b")
            .check(|quantum| match quantum {
                0 => Err("must be above 0"),
                1..=0x10_0000 => Ok(()),
                _ => Err("must be at most 1mb"),
            })
            .initially(|device: &Device| device.psched_mtu.saturating_mul(2).clamp(1, 1 << 20)),
        /// Bytes that a new flow may send in its first turn; the kernel's default is ten full frames.
        initial_quantum: u32 = bytes("15140b")
            .check(|quantum| if *quantum > MOST { Err("must be below 2gb") } else { Ok(()) })
            .initially(|device: &Device| device.psched_mtu.saturating_mul(10).min(MOST)),
        /// Rate that no flow exceeds; none by default.
        maxrate: Option<Rate> = Param::word(
            Kind::Rate,
            "",
            |value| match Rate::new(value.integer()).filter(|rate| rate.bits() >= 8) {
                None => Err("must be at least a byte a second".to_owned()),
                rate => Ok(rate),
            },
            |rate| rate.map(|rate| Value::Text(quantity::format_rate(rate))),
        )
        .initially(|_| None)
        .check(|rate| rate.map_or(Ok(()), fits)),
        /// Buckets of the kernel's table of flows; without effect on decisions here.
        buckets: u32 = integer(2, 262_144, "1024"),
        /// Paces flows at the rates of their sockets and at maxrate.
        pacing: bool = switch("nopacing", "pacing"),
        /// A flow that was idle for longer returns with a whole quantum.
        refill_delay: u32 = micros("40ms"),
        /// Flows up to this rate are paced packet by packet, faster ones quantum by quantum.
        low_rate_threshold: Rate = rate("550kbit").check(|rate| fits(*rate)),
        /// Bits of the hash that distinguish flows without a socket.
        orphan_mask: u32 = integer(0, 4_294_967_295, "1023"),
        /// How late the kernel's timer may fire; here it is exact.
        timer_slack: Nanos = time("10us"),
        /// Packets that leave later than this after their time are marked; off by default.
        ce_threshold: Option<u32> = optional_micros(),
        /// How far ahead a packet's departure time may lie.
        horizon: u32 = micros("10s"),
        /// Treatment of a packet beyond the horizon: it waits up to it, or is dropped.
        beyond: Beyond = one_of("horizon_drop"),
        /// Band of each priority.
        priomap: [u8; 16] = group(BANDS_WORDS, |_| PRIOMAP, set_priomap, |map, text| {
            text.optional("priomap", (*map != PRIOMAP).then(|| spaced(map)))
        }),
        /// Bytes of the turn of each band, at least 16384.
        weights: [u32; BANDS] = Param::word(
            Kind::Numbers { most: BANDS, max: MOST as u64 },
            "589824 196608 65536",
            read_weights,
            |weights| (*weights != WEIGHTS).then(|| Value::Text(spaced(weights))),
        ),
        /// Packets leave this much before their time: for devices that pace by themselves.
        offload_horizon: u32 = Param::word(
            Kind::Time,
            "0us",
            whole_micros,
            |us| (*us != 0).then(|| Value::Text(time_text(*us))),
        ),
        /// Ticks a second of the coarse clock.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

/// Returns the kernel has rates as bytes a second in 32 bits, of which the greatest is no rate.
fn fits(rate: Rate) -> Result<(), &'static str> {
    if rate.bits() / 8 < u32::MAX.into() { Ok(()) } else { Err("must be below 34.3gbit") }
}

fn spaced<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

fn set_priomap(map: &mut [u8; 16], given: &Given) -> Result<(), WordError> {
    let Some(value) = given.find("priomap") else { return Ok(()) };
    let bands = value.numbers();
    if bands.len() != map.len() {
        return Err(given.error("priomap", "`priomap` needs 16 bands"));
    }
    for (to, band) in map.iter_mut().zip(bands) {
        *to = *band as u8;
    }
    Ok(())
}

fn read_weights(value: &Value) -> Result<[u32; BANDS], String> {
    let weights: Vec<u32> = value.numbers().iter().map(|weight| *weight as u32).collect();
    match <[u32; BANDS]>::try_from(weights) {
        Ok(weights) if weights.iter().all(|weight| *weight >= LEAST_WEIGHT) => Ok(weights),
        Ok(_) => Err(format!("must be at least {LEAST_WEIGHT} each")),
        Err(_) => Err("needs three numbers".to_owned()),
    }
}

/// The parameters for decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Bytes a second that no flow exceeds; `u64::MAX` is none.
    pub maxrate: u64,
    /// Bytes a second up to which flows are paced packet by packet.
    pub low_rate_threshold: u64,
    /// Ticks of the coarse clock after which a flow's quantum is whole again.
    pub refill_delay: u64,
    /// Lateness above which packets are marked.
    pub ce_threshold: Nanos,
    /// How far ahead a departure time may lie.
    pub horizon: Nanos,
    /// How much before their time packets may leave.
    pub offload_horizon: Nanos,
}

impl Params {
    /// Returns the kernel's numbers.
    pub fn constants(&self) -> Constants {
        let nanos = |us: u32| u64::from(us) * MICROSECOND;
        Constants {
            maxrate: self.maxrate.map_or(u64::MAX, |rate| rate.bits() / 8),
            low_rate_threshold: self.low_rate_threshold.bits() / 8,
            refill_delay: jiffies::from_micros(self.refill_delay, self.hz),
            ce_threshold: nanos(self.ce_threshold.unwrap_or(u32::MAX)),
            horizon: nanos(self.horizon),
            offload_horizon: nanos(self.offload_horizon),
        }
    }

    /// Returns the logarithm of the number of the kernel's buckets, rounded up as `tc` does.
    pub fn buckets_log(&self) -> u32 {
        self.buckets.next_power_of_two().trailing_zeros()
    }
}
