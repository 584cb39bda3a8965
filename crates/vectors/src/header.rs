//! The header: whether `tc`'s text gives the recorded parameters, and the queue made of them.

use crate::frame::Frame;
use crate::read::{self, Json, Object};
use crate::report::Outcome;
use crate::{red, tc};
use serde_json::json;
use sojourn_queue::cake::{self, flows::Isolation, tins::Diffserv};
use sojourn_queue::{Device, Params, Queue};
use sojourn_units::Nanos;

type Result<T> = std::result::Result<T, Outcome>;

/// Checks the unit of time and gives the time of creation.
pub fn clock(head: &Object) -> Result<Nanos> {
    let unit = read::text(1, head, "time_unit")?;
    if unit != "ns" {
        return Err(Outcome::malformed(1, format!("`time_unit` is `{unit}`, not ns")));
    }
    let t0 = read::number(1, head, "t0", i64::MAX as u64)?;
    if t0 == 0 {
        return Err(Outcome::malformed(1, "`t0` is 0, which stands for `never`"));
    }
    Ok(t0)
}

/// The device that the scenario ran on.
pub fn device(head: &Object) -> Result<Device> {
    let hz = read::number(1, head, "hz", 1_000_000)? as u32;
    let psched_mtu = read::number(1, head, "psched_mtu", 1 << 24)? as u32;
    if hz == 0 || psched_mtu == 0 {
        return Err(Outcome::malformed(1, "`hz` and `psched_mtu` are above 0"));
    }
    Ok(Device { psched_mtu, hz, rate: None })
}

/// The discipline's parameters and the numbers that go with them.
pub struct Made {
    /// What the text says.
    pub params: Params,
    /// The queue.
    pub queue: Queue<Frame>,
}

/// Builds the queue. Where `tc` says all, its text must give `params`; where it is missing or was
/// followed by changes by hand (`#`), `params` alone count, and must be consistent.
pub fn make(head: &Object, discipline: &str, device: &Device, t0: Nanos) -> Result<Made> {
    let recorded = read::map(1, "params", read::field(1, head, "params")?)?;
    let tc = match head.get("tc") {
        None => None,
        Some(Json::String(text)) => Some(text.as_str()),
        Some(_) => return Err(Outcome::malformed(1, "`tc` must be a text")),
    };
    let words = tc.map(tc::description);
    if let (Some(text), Some(words)) = (tc, &words)
        && !text.contains('#')
    {
        let params = Params::parse(words, device)
            .map_err(|error| Outcome::malformed(1, format!("`tc`: {error}")))?;
        if !is_called(&params, discipline) {
            let why = format!("`tc` describes a `{}`, not a `{discipline}`", params.name());
            return Err(Outcome::malformed(1, why));
        }
        same(1, recorded, &numbers(&params))?;
        let queue = params.build(t0);
        return Ok(Made { params, queue });
    }
    let stated = words.and_then(|words| Params::parse(&words, device).ok());
    let stated = stated.filter(|params| is_called(params, discipline));
    by_hand(discipline, recorded, stated.as_ref(), device, t0)
}

/// Whether recordings of a queue stand under `discipline`.
fn is_called(params: &Params, discipline: &str) -> bool {
    match params {
        Params::Fifo(_) => discipline == "fifo",
        // Of a CAKE with one queue only COBALT is left.
        Params::Cake(cake) if discipline == "cobalt_queue" => {
            (cake.bandwidth, cake.diffserv, cake.isolation)
                == (None, Diffserv::Besteffort, Isolation::Flowblind)
        }
        params => discipline == params.name(),
    }
}

/// Names without their order.
fn set(value: &Json) -> Option<Vec<&str>> {
    let mut names = value.as_array()?.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?;
    names.sort_unstable();
    Some(names)
}

/// Compares recorded parameters with ours, both ways.
pub fn same(line: usize, recorded: &Object, ours: &Json) -> Result<()> {
    let empty = Object::new();
    let ours = ours.as_object().unwrap_or(&empty);
    for (key, value) in recorded {
        match ours.get(key) {
            None => return Err(Outcome::malformed(line, format!("unknown parameter `{key}`"))),
            Some(found) if key == "flags" && set(found) == set(value) => {}
            Some(found) if found != value => {
                return Err(Outcome::differs(line, format!("parameter `{key}`"), value, found));
            }
            Some(_) => {}
        }
    }
    match ours.keys().find(|key| !recorded.contains_key(*key)) {
        Some(key) => Err(Outcome::malformed(line, format!("parameter `{key}` is missing"))),
        None => Ok(()),
    }
}

/// Parameters as the recordings number them.
pub fn numbers(params: &Params) -> Json {
    match params {
        Params::Fifo(p) => json!({"limit": p.limit}),
        Params::Codel(p) => {
            let law = p.law();
            json!({
                "limit": p.limit, "target_us": p.target_us, "interval_us": p.interval_us,
                "ecn": u8::from(p.ecn), "ce_threshold_us": p.ce_threshold_us,
                "target": law.target, "interval": law.interval,
                "ce_threshold": law.ce_threshold, "mtu": p.mtu,
            })
        }
        Params::FqCodel(p) => {
            let law = p.law();
            json!({
                "limit": p.limit, "flows": p.flows, "quantum": p.quantum,
                "drop_batch": p.drop_batch, "memory_limit": p.memory_limit,
                "target_us": p.target_us, "interval_us": p.interval_us,
                "ecn": u8::from(p.ecn), "ce_threshold_us": p.ce_threshold_us,
                "target": law.target, "interval": law.interval,
                "ce_threshold": law.ce_threshold,
                "ce_threshold_selector": p.selector.value,
                "ce_threshold_mask": p.selector.mask, "mtu": p.mtu,
            })
        }
        Params::Pie(p) => json!({
            "limit": p.limit, "target_us": p.target_us, "tupdate_us": p.tupdate_us,
            "alpha": p.alpha, "beta": p.beta, "ecn": u8::from(p.ecn),
            "bytemode": u8::from(p.bytemode),
            "dq_rate_estimator": u8::from(p.dq_rate_estimator),
            "target_ticks": p.law().target, "mtu": p.mtu,
        }),
        Params::FqPie(p) => json!({
            "limit": p.pie.limit, "flows": p.flows, "target_us": p.pie.target_us,
            "tupdate_us": p.pie.tupdate_us, "alpha": p.pie.alpha, "beta": p.pie.beta,
            "quantum": p.quantum, "memory_limit": p.memory_limit, "ecn_prob": p.ecn_prob,
            "ecn": u8::from(p.pie.ecn), "bytemode": u8::from(p.pie.bytemode),
            "dq_rate_estimator": u8::from(p.pie.dq_rate_estimator),
            "target_ticks": p.law().target, "mtu": p.pie.mtu,
        }),
        Params::Cake(p) => cake_numbers(p),
        Params::Red(p) => red::red_numbers(p),
        Params::Choke(p) => red::choke_numbers(p),
        Params::Sfb(p) => json!({
            "rehash_ms": p.rehash_ms, "warmup_ms": p.warmup_ms, "max": p.max,
            "bin_size": p.bin_size, "increment": p.increment, "decrement": p.decrement,
            "limit": p.limit, "penalty_rate": p.penalty_rate, "penalty_burst": p.penalty_burst,
        }),
        // None are recorded.
        Params::Blue(_)
        | Params::Cobalt(_)
        | Params::FqCobalt(_)
        | Params::Daqm(_)
        | Params::Pi2(_)
        | Params::DualPi2(_) => Json::Null,
    }
}

fn cake_numbers(params: &cake::Params) -> Json {
    let tins = params.tins();
    let tin = |tin: &cake::tins::Numbers| {
        json!({
            "interval": tin.law.interval, "target": tin.law.target,
            "mtu_time": tin.law.mtu_time, "p_inc": tin.law.p_inc, "p_dec": tin.law.p_dec,
            "flow_quantum": tin.flow_quantum, "tin_quantum": tin.tin_quantum,
            "rate_bps": tin.pace.bytes, "rate_ns": tin.pace.nanos, "rate_shft": tin.pace.shift,
        })
    };
    json!({
        "tins": tins.len(), "buffer_limit": params.buffer_limit(),
        "rate_ns": tins[0].pace.nanos, "rate_shft": tins[0].pace.shift,
        "tin": tins.iter().map(tin).collect::<Vec<_>>(),
    })
}

/// A queue from the recorded numbers alone.
fn by_hand(
    discipline: &str,
    recorded: &Object,
    stated: Option<&Params>,
    device: &Device,
    t0: Nanos,
) -> Result<Made> {
    let number = |key: &str| read::number(1, recorded, key, u64::from(u32::MAX)).map(|v| v as u32);
    let small = |key: &str, max: u64| read::number(1, recorded, key, max).map(|v| v as u8);
    let flag = |key: &str| read::number(1, recorded, key, 1).map(|v| v == 1);
    let optional = |key: &str| match recorded.get(key) {
        Some(Json::Null) => Ok(None),
        _ => number(key).map(Some),
    };
    let defaults = |name: &str| {
        stated.cloned().or_else(|| Params::parse(name, device).ok()).ok_or_else(|| {
            Outcome::malformed(1, format!("neither `tc` nor `params` describe a `{discipline}`"))
        })
    };
    let pie = || -> Result<sojourn_queue::pie::Params> {
        Ok(sojourn_queue::pie::Params {
            limit: number("limit")?,
            target_us: number("target_us")?,
            tupdate_us: number("tupdate_us")?,
            alpha: number("alpha")?,
            beta: number("beta")?,
            ecn: flag("ecn")?,
            bytemode: flag("bytemode")?,
            dq_rate_estimator: flag("dq_rate_estimator")?,
            mtu: number("mtu")?.max(1),
            hz: device.hz,
        })
    };
    let flows = || read::number(1, recorded, "flows", 65_536).map(|flows| flows as u32);
    let params = match discipline {
        "fifo" => {
            let Some(&Params::Fifo(p)) = stated else {
                return Err(Outcome::malformed(1, "`tc` must say pfifo or bfifo"));
            };
            Params::Fifo(sojourn_queue::fifo::Params { limit: number("limit")?, ..p })
        }
        "codel" => Params::Codel(sojourn_queue::codel::Params {
            limit: number("limit")?,
            target_us: number("target_us")?,
            interval_us: number("interval_us")?,
            ce_threshold_us: optional("ce_threshold_us")?,
            ecn: flag("ecn")?,
            mtu: number("mtu")?,
        }),
        "fq_codel" => Params::FqCodel(sojourn_queue::fq_codel::Params {
            limit: number("limit")?,
            flows: flows()?,
            quantum: read::number(1, recorded, "quantum", 1 << 20)?.max(256) as u32,
            target_us: number("target_us")?,
            interval_us: number("interval_us")?,
            ce_threshold_us: optional("ce_threshold_us")?,
            selector: sojourn_queue::fq_codel::Selector {
                value: small("ce_threshold_selector", 255)?,
                mask: small("ce_threshold_mask", 255)?,
            },
            memory_limit: number("memory_limit")?,
            drop_batch: number("drop_batch")?,
            ecn: flag("ecn")?,
            mtu: number("mtu")?,
        }),
        "pie" => Params::Pie(pie()?),
        "fq_pie" => Params::FqPie(sojourn_queue::fq_pie::Params {
            pie: pie()?,
            flows: flows()?,
            quantum: read::number(1, recorded, "quantum", 1 << 20)?.max(1) as u32,
            memory_limit: number("memory_limit")?,
            ecn_prob: number("ecn_prob")?,
        }),
        "sfb" => Params::Sfb(sfb_by_hand(recorded, device)?),
        "red" => return red::red_by_hand(recorded, &defaults("red limit 60000")?, t0),
        "choke" => return red::choke_by_hand(recorded, &defaults("choke limit 200")?),
        _ => return Err(Outcome::UnknownDiscipline),
    };
    same(1, recorded, &numbers(&params))?;
    if device.psched_mtu.min(1 << 20) != recorded_mtu(recorded, device) {
        return Err(Outcome::malformed(1, "`mtu` is not the device's"));
    }
    let queue = params.build(t0);
    Ok(Made { params, queue })
}

fn recorded_mtu(recorded: &Object, device: &Device) -> u32 {
    recorded
        .get("mtu")
        .and_then(Json::as_u64)
        .map_or(device.psched_mtu.min(1 << 20), |mtu| mtu.min(1 << 20) as u32)
}

fn sfb_by_hand(recorded: &Object, device: &Device) -> Result<sojourn_queue::sfb::Params> {
    let number = |key| read::number(1, recorded, key, u64::from(u32::MAX)).map(|v| v as u32);
    let fraction = |key| read::number(1, recorded, key, 65_535).map(|v| v as u16);
    Ok(sojourn_queue::sfb::Params {
        rehash_ms: number("rehash_ms")?,
        warmup_ms: number("warmup_ms")?,
        limit: number("limit")?,
        max: number("max")?,
        bin_size: number("bin_size")?,
        increment: fraction("increment")?,
        decrement: fraction("decrement")?,
        penalty_rate: number("penalty_rate")?,
        penalty_burst: number("penalty_burst")?,
        hz: device.hz,
    })
}
