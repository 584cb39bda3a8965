//! Parameters of FQ, with the words of `tc`, and its constants in the kernel's units.

use crate::device::Device;
use crate::kinds::{bytes, micros, optional_micros, packets, whole_micros};
use crate::tc::time_text;
use sojourn_units::declare::{Param, derived, group, integer, one_of, rate, switch, time};
use sojourn_units::words::{Given, Kind, Value, Word, WordError};
use sojourn_units::{MICROSECOND, Nanos, Rate, choices, jiffies, params, quantity, words};

/// Number of priority bands.
pub const BANDS: usize = 3;

/// Default band of each priority.
const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
/// Minimum weight of a band, in bytes.
const LEAST_WEIGHT: u32 = 16_384;
/// Maximum of numbers that the kernel keeps in 31 bits.
const MOST: u32 = i32::MAX as u32;

/// Default weights of the bands: bytes per turn.
const WEIGHTS: [u32; BANDS] = [589_824, 196_608, 65_536];

const BANDS_WORDS: &[Word] = words! {
    "bands", Kind::Integer { min: 3, max: 3 }, "3", "Number of bands, always three.";
    "priomap", Kind::Numbers { most: 16, max: 2 }, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "Band of each priority from 0 to 15; the priority follows from the TOS byte.";
};

choices! {
    /// Treatment of a packet whose departure time is beyond the horizon.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Beyond {
        /// The departure time is reduced to the horizon.
        #[serde(rename = "cap")]
        Cap = "horizon_cap",
        /// The packet is dropped.
        #[serde(rename = "drop")]
        Drop = "horizon_drop",
    }
}

params! {
    "fq": "FQ: flows take turns in three priority bands, and paced flows wait for their departure times",
    from "Linux sch_fq.c, tc-fq(8)";

    /// Parameters of FQ, with the words of `tc`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in each of the three bands.
        limit: u32 = packets("10000p"),
        /// Maximum number of packets of a flow.
        flow_limit: u32 = packets("100p"),
        /// Bytes that a flow may send in its turn; the kernel's default is two largest frames.
        quantum: u32 = bytes("3028b")
            .check(|quantum| match quantum {
                0 => Err("must be above 0"),
                1..=0x10_0000 => Ok(()),
                _ => Err("must be at most 1mb"),
            })
            .initially(|device: &Device| device.psched_mtu.saturating_mul(2).clamp(1, 1 << 20)),
        /// Bytes that a new flow may send in its first turn; the kernel's default is ten largest
        /// frames.
        initial_quantum: u32 = bytes("15140b")
            .check(|quantum| if *quantum > MOST { Err("must be below 2gb") } else { Ok(()) })
            .initially(|device: &Device| device.psched_mtu.saturating_mul(10).min(MOST)),
        /// Maximum rate of each flow; no limit by default.
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
        /// Number of buckets in the kernel's table of flows; has no effect on decisions here.
        buckets: u32 = integer(2, 262_144, "1024"),
        /// Paces each flow at the rate of its socket and at most at maxrate.
        pacing: bool = switch("nopacing", "pacing"),
        /// Idle time after which a flow gets a whole quantum.
        refill_delay: u32 = micros("40ms"),
        /// Rate up to which a flow is paced packet by packet; faster flows are paced quantum by
        /// quantum.
        low_rate_threshold: Rate = rate("550kbit").check(|rate| fits(*rate)),
        /// Mask of the hash that distinguishes flows without a socket.
        orphan_mask: u32 = integer(0, 4_294_967_295, "1023"),
        /// Delay by which the kernel's timer may fire late; has no effect here, where timers are
        /// exact.
        timer_slack: Nanos = time("10us"),
        /// Marks packets that leave more than this time after their departure time; off by default.
        ce_threshold: Option<u32> = optional_micros(),
        /// Maximum time from arrival to a requested departure time.
        horizon: u32 = micros("10s"),
        /// Treatment of a packet beyond the horizon: its departure time is reduced to the horizon,
        /// or it is dropped.
        beyond: Beyond = one_of("horizon_drop"),
        /// Band of each priority from 0 to 15.
        priomap: [u8; 16] = group(BANDS_WORDS, |_| PRIOMAP, set_priomap, |map, text| {
            text.optional("priomap", (*map != PRIOMAP).then(|| spaced(map)))
        }),
        /// Bytes that each band may send in its turn, at least 16384 each.
        weights: [u32; BANDS] = Param::word(
            Kind::Numbers { most: BANDS, max: MOST as u64 },
            "589824 196608 65536",
            read_weights,
            |weights| (*weights != WEIGHTS).then(|| Value::Text(spaced(weights))),
        ),
        /// Time by which packets may leave before their departure time, for devices that pace
        /// packets themselves.
        offload_horizon: u32 = Param::word(
            Kind::Time,
            "0us",
            whole_micros,
            |us| (*us != 0).then(|| Value::Text(time_text(*us))),
        ),
        /// Timer ticks per second.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

/// Checks that a rate is in the kernel's range: bytes per second in 32 bits, of which the largest
/// value means no limit.
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

/// Parameters in the units of FQ's decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Maximum rate of each flow in bytes per second; `u64::MAX` for no limit.
    pub maxrate: u64,
    /// Rate in bytes per second up to which a flow is paced packet by packet.
    pub low_rate_threshold: u64,
    /// Idle time in timer ticks after which a flow gets a whole quantum.
    pub refill_delay: u64,
    /// Maximum lateness of a packet that leaves without a mark, in nanoseconds.
    pub ce_threshold: Nanos,
    /// Maximum time to a requested departure time, in nanoseconds.
    pub horizon: Nanos,
    /// Greatest time between an early departure and the departure time, in nanoseconds.
    pub offload_horizon: Nanos,
}

impl Params {
    /// Returns the parameters in the units of FQ's decisions.
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

    /// Returns the binary logarithm of the number of buckets, rounded up as `tc` rounds.
    pub fn buckets_log(&self) -> u32 {
        self.buckets.next_power_of_two().trailing_zeros()
    }
}
