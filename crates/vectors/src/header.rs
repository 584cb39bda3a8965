//! The header of a recording: checks that `tc`'s text gives the recorded parameters, and builds the
//! queue.

use crate::frame::Frame;
use crate::read::{self, Json, Object};
use crate::report::Outcome;
use crate::{classes, dualpi2, fq, red, sfq, tbf, tc};
use serde_json::json;
use sojourn_queue::cake::{self, flows::Isolation, tins::Diffserv};
use sojourn_queue::{Device, Linux, Params, Queue};
use sojourn_units::Nanos;
use sojourn_units::declare::Choices;

type Result<T> = std::result::Result<T, Outcome>;

/// Checks the unit of time, and returns the queue's time of creation in nanoseconds.
pub fn clock(head: &Object) -> Result<Nanos> {
    let unit = read::text(1, head, "time_unit")?;
    if unit != "ns" {
        return Err(Outcome::malformed(1, format!("`time_unit` must be `ns`, found `{unit}`")));
    }
    let t0 = read::number(1, head, "t0", i64::MAX as u64)?;
    if t0 == 0 {
        return Err(Outcome::malformed(1, "`t0` must not be 0, since this value means `never`"));
    }
    Ok(t0)
}

/// Returns the device that the header describes.
pub fn device(head: &Object) -> Result<Device> {
    let hz = read::number(1, head, "hz", 1_000_000)? as u32;
    let psched_mtu = read::number(1, head, "psched_mtu", 1 << 24)? as u32;
    if hz == 0 || psched_mtu == 0 {
        return Err(Outcome::malformed(1, "`hz` and `psched_mtu` must be above 0"));
    }
    Ok(Device { psched_mtu, hz, rate: None })
}

/// A discipline's parameters, and its new queue.
pub struct Made {
    /// Parameters of the queue.
    pub params: Params,
    /// The new queue.
    pub queue: Queue<Frame>,
}

/// Builds the queue. If `tc` states all parameters, they must equal the recorded `params`. If the
/// text is missing or marked as changed by hand (`#`), the queue is built from `params`, which must
/// be consistent. Two cases differ: a marked text of `dualpi2` or `fq` states all parameters, since
/// it includes the kernel's attributes, and a `tbf` is built from its marked text, in which bucket
/// depths are times.
pub fn make(head: &Object, discipline: &str, device: &Device, t0: Nanos) -> Result<Made> {
    let recorded = read::map(1, "params", read::field(1, head, "params")?)?;
    let tc = match head.get("tc") {
        None => None,
        Some(Json::String(text)) => Some(text.as_str()),
        Some(_) => return Err(Outcome::malformed(1, "`tc` must be a text")),
    };
    let linux = linux(head, discipline)?;
    let words = tc.map(|text| dated(tc::description(text), linux));
    let has_classes = classes::NAMES.contains(&discipline);
    let words = match words {
        Some(words) if has_classes => Some(classes::description(head, &words)?),
        words => words,
    };
    if let (Some(text), Some(words)) = (tc, &words)
        && (matches!(discipline, "dualpi2" | "fq") || !text.contains('#'))
    {
        let params = Params::parse(words, device)
            .map_err(|error| Outcome::malformed(1, format!("`tc`: {error}")))?;
        if !is_called(&params, discipline) {
            let why = format!("`tc` describes a `{}`, not a `{discipline}`", params.name());
            return Err(Outcome::malformed(1, why));
        }
        same(1, recorded, &numbers(&params))?;
        if has_classes {
            classes::compare(head, &params)?;
        }
        let queue = params.build(t0);
        return Ok(Made { params, queue });
    }
    let stated = words.and_then(|words| Params::parse(&words, device).ok());
    let stated = stated.filter(|params| is_called(params, discipline));
    by_hand(discipline, recorded, stated.as_ref(), linux, device, t0)
}

/// Returns the listed version of Linux to use for the recorded one; `None` without a valid release.
pub fn linux(head: &Object, discipline: &str) -> Result<Option<Linux>> {
    match head.get("kernel") {
        None => Ok(None),
        Some(Json::String(release)) => Ok(match discipline {
            "fq_codel" => Linux::of_fq_codel(release),
            _ => Linux::of_release(release),
        }),
        Some(_) => Err(Outcome::malformed(1, "`kernel` must be a text")),
    }
}

/// Adds the version of Linux to a description if the discipline depends on the version.
fn dated(words: String, linux: Option<Linux>) -> String {
    let name = words.split(' ').next().unwrap_or("");
    let has_versions = || {
        let table = sojourn_queue::tables().iter().find(|table| table.name == name);
        table.is_some_and(|table| table.words.iter().any(|word| word.name == "linux"))
    };
    match linux {
        Some(linux) if has_versions() => format!("{words} linux {}", linux.name()),
        _ => words,
    }
}

/// Returns whether recordings use the name `discipline` for the discipline of `params`.
fn is_called(params: &Params, discipline: &str) -> bool {
    match params {
        Params::Fifo(_) => discipline == "fifo",
        // CAKE with one queue and without a shaper is equivalent to COBALT.
        Params::Cake(cake) if discipline == "cobalt_queue" => {
            (cake.bandwidth, cake.diffserv, cake.isolation)
                == (None, Diffserv::Besteffort, Isolation::Flowblind)
        }
        params => discipline == params.name(),
    }
}

/// Returns the texts of an array in alphabetical order, so that two arrays can be compared as sets;
/// `None` if it is not an array of texts.
fn set(value: &Json) -> Option<Vec<&str>> {
    let mut names = value.as_array()?.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?;
    names.sort_unstable();
    Some(names)
}

/// Compares recorded parameters with computed ones. Each parameter must occur in both.
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

/// Fields that recordings state outside `params`, or not at all.
const ELSEWHERE: [&str; 4] = ["name", "unit", "hz", "linux"];

/// Returns the parameters in the form of recordings.
pub fn numbers(params: &Params) -> Json {
    if let Some(numbers) = classes::numbers(params) {
        return numbers;
    }
    match params {
        Params::Cake(p) => cake_numbers(p),
        Params::DualPi2(p) => dualpi2::numbers(p),
        Params::Sfq(p) => sfq::numbers(p),
        Params::Fq(p) => fq::numbers(p),
        Params::Tbf(p) => tbf::numbers(p),
        Params::Red(p) => red::red_numbers(p),
        Params::Choke(p) => red::choke_numbers(p),
        _ => {
            let mut numbers = fields(params);
            for value in numbers.values_mut() {
                if let Json::Bool(is_on) = *value {
                    *value = u8::from(is_on).into();
                }
            }
            numbers.retain(|key, _| !ELSEWHERE.contains(&key.as_str()));
            params.derived(&mut |name, value| _ = numbers.insert(name.to_owned(), value.into()));
            Json::Object(numbers)
        }
    }
}

/// Returns the parameters as a JSON object with the names of the Rust fields.
fn fields(params: &Params) -> Object {
    match serde_json::to_value(params) {
        Ok(Json::Object(fields)) => fields,
        other => unreachable!("parameters are written as an object, not {other:?}"),
    }
}

fn cake_numbers(params: &cake::Params) -> Json {
    let tins = params.tins();
    let tin = |tin: &cake::tins::Numbers| {
        json!({
            "interval": tin.constants.interval, "target": tin.constants.target,
            "mtu_time": tin.constants.mtu_time, "p_inc": tin.constants.p_inc, "p_dec": tin.constants.p_dec,
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

/// Builds a queue from the recorded numbers alone.
fn by_hand(
    discipline: &str,
    recorded: &Object,
    stated: Option<&Params>,
    linux: Option<Linux>,
    device: &Device,
    t0: Nanos,
) -> Result<Made> {
    let defaults = |name: &str| {
        stated.cloned().or_else(|| Params::parse(name, device).ok()).ok_or_else(|| {
            Outcome::malformed(
                1,
                format!("`tc` or `params` must describe a `{discipline}`; neither does"),
            )
        })
    };
    let plain = |params: &Params| -> Result<_> {
        let params = from_numbers(params, recorded)?;
        let (ours, queue) = (numbers(&params), params.build(t0));
        Ok((params, ours, queue))
    };
    let (params, ours, queue) = match discipline {
        "fifo" => match stated {
            Some(stated) => plain(stated)?,
            None => return Err(Outcome::malformed(1, "`tc` must name pfifo or bfifo")),
        },
        "red" => red::red_by_hand(recorded, &defaults("red limit 60000")?, t0)?,
        "choke" => red::choke_by_hand(recorded, &defaults("choke limit 200")?)?,
        "tbf" => match stated {
            Some(Params::Tbf(params)) => tbf::by_times(params, t0),
            _ => return Err(Outcome::malformed(1, "`tc` must describe the `tbf`")),
        },
        "sfq" | "fq" => {
            return Err(Outcome::malformed(1, format!("`tc` must describe the `{discipline}`")));
        }
        name => match Params::parse(&dated(name.to_owned(), linux), device) {
            Ok(params) => plain(&params)?,
            Err(_) => return Err(Outcome::UnknownDiscipline),
        },
    };
    same(1, recorded, &ours)?;
    // For a `tbf`, `mtu` is the depth of a bucket, not the device's MTU.
    let is_tbf = discipline == "tbf";
    if !is_tbf && device.psched_mtu.min(1 << 20) != recorded_mtu(recorded, device) {
        return Err(Outcome::malformed(1, "`mtu` must equal `psched_mtu`"));
    }
    Ok(Made { params, queue })
}

fn recorded_mtu(recorded: &Object, device: &Device) -> u32 {
    recorded
        .get("mtu")
        .and_then(Json::as_u64)
        .map_or(device.psched_mtu.min(1 << 20), |mtu| mtu.min(1 << 20) as u32)
}

/// Returns `params` with all fields except [`ELSEWHERE`] replaced by the recorded numbers.
fn from_numbers(params: &Params, recorded: &Object) -> Result<Params> {
    let mut fields = fields(params);
    for (key, value) in &mut fields {
        if ELSEWHERE.contains(&key.as_str()) {
            continue;
        }
        let within = |least, most| {
            let number = read::number(1, recorded, key, most)?;
            if number < least {
                return Err(Outcome::malformed(1, format!("`{key}` is below {least}")));
            }
            Ok(number)
        };
        *value = match (key.as_str(), &*value) {
            (_, Json::Bool(_)) => (within(0, 1)? == 1).into(),
            (_, Json::Null) if recorded.get(key) == Some(&Json::Null) => Json::Null,
            ("flows", _) => within(1, 65_536)?.into(),
            ("quantum", _) => within(1, 1 << 20)?.into(),
            ("mtu", _) => within(1, u32::MAX.into())?.into(),
            _ => within(0, u32::MAX.into())?.into(),
        };
    }
    serde_json::from_value(Json::Object(fields))
        .map_err(|error| Outcome::malformed(1, format!("`params`: {error}")))
}
