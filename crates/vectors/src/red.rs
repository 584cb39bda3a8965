//! Recordings of RED and `choke`: the numbers that `tc` passes to the kernel, and queues built from
//! these numbers alone.

use crate::frame::Frame;
use crate::read::{self, Json, Object};
use crate::report::Outcome;
use serde_json::json;
use sojourn_queue::choke::{self, Choke};
use sojourn_queue::red::{self, Options, Red};
use sojourn_queue::{Params, Queue};
use sojourn_units::Nanos;

type Result<T> = std::result::Result<T, Outcome>;

/// Returns the options in the form of recordings.
fn given(options: &Options, flags: &[(&str, bool)]) -> Json {
    let flags: Vec<&str> = flags.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    json!({
        "limit": options.limit, "min": options.min, "max": options.max,
        "Wlog": options.wlog, "Plog": options.plog, "Scell_log": options.scell_log,
        "flags": flags, "max_P_given": options.max_p, "stab": options.stab.to_vec(),
    })
}

/// Returns RED's numbers in the form of recordings: the options, and the values that the kernel
/// derives from them.
fn of_red(params: &red::Params, options: &Options) -> Json {
    let width = options.max.saturating_sub(options.min).max(1);
    let max_p = options.max_p_in_force();
    let (factor, first, second) = red::reciprocal((max_p / width).max(1));
    let fifth = width / 5;
    let bits = options.wlog & 31;
    let mut numbers = given(
        options,
        &[
            ("ecn", params.ecn),
            ("harddrop", params.harddrop),
            ("adaptive", params.adaptation == red::Adaptation::Floyd),
            ("nodrop", params.nodrop),
        ],
    );
    for (name, number) in [
        ("qth_min", u64::from(options.min << bits)),
        ("qth_max", u64::from(options.max << bits)),
        ("qth_delta", width.into()),
        ("Scell_max", 255u64 << (options.scell_log & 31)),
        ("target_min", u64::from(options.min) + 2 * u64::from(fifth)),
        ("target_max", u64::from(options.min) + 3 * u64::from(fifth)),
        ("max_P", max_p.into()),
        ("recip_m", factor.into()),
        ("recip_sh1", first.into()),
        ("recip_sh2", second.into()),
    ] {
        numbers[name] = number.into();
    }
    numbers
}

fn of_choke(params: &choke::Params, options: &Options) -> Json {
    given(options, &[("ecn", params.ecn), ("harddrop", params.harddrop)])
}

/// Returns the parameters of a `red` in the form of recordings.
pub fn red_numbers(params: &red::Params) -> Json {
    params.options().map_or(Json::Null, |options| of_red(params, &options))
}

/// Returns the parameters of a `choke` in the form of recordings.
pub fn choke_numbers(params: &choke::Params) -> Json {
    params.options().map_or(Json::Null, |options| of_choke(params, &options))
}

/// Returns the recorded options and flags.
fn recorded_options(recorded: &Object) -> Result<(Options, Vec<String>)> {
    let number = |key: &str| read::number(1, recorded, key, u64::from(u32::MAX)).map(|v| v as u32);
    let log = |key: &str| read::number(1, recorded, key, 31).map(|v| v as u8);
    let cells = read::array(1, "stab", read::field(1, recorded, "stab")?)?;
    let mut stab = [0; 256];
    if cells.len() != stab.len() {
        return Err(Outcome::malformed(1, "`stab` has 256 entries"));
    }
    for (entry, cell) in stab.iter_mut().zip(cells) {
        *entry = read::unsigned(1, "stab", cell, 31)? as u8;
    }
    let options = Options {
        limit: number("limit")?,
        min: number("min")?,
        max: number("max")?,
        wlog: log("Wlog")?,
        plog: log("Plog")?,
        scell_log: log("Scell_log")?,
        max_p: number("max_P_given")?,
        stab,
    };
    let fits = |value: u32| 32 - value.leading_zeros() + u32::from(options.wlog) < 32;
    if options.max < options.min || !fits(options.min) || !fits(options.max) {
        return Err(Outcome::malformed(
            1,
            "`min` must not exceed `max`, and both shifted left by `Wlog` must fit into 31 bits",
        ));
    }
    Ok((options, read::names(1, recorded, "flags")?))
}

/// A discipline built from recorded numbers: parameters, numbers in the form of recordings, and the
/// queue.
pub type ByHand = (Params, Json, Queue<Frame>);

/// Builds a `red` from the recorded numbers; `params` gives the parameters that recordings do not
/// state.
pub fn red_by_hand(recorded: &Object, params: &Params, t0: Nanos) -> Result<ByHand> {
    let Params::Red(mut params) = *params else {
        return Err(Outcome::malformed(1, "`tc` does not describe a `red`"));
    };
    let (options, flags) = recorded_options(recorded)?;
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    params.ecn = has("ecn");
    params.harddrop = has("harddrop");
    params.nodrop = has("nodrop");
    params.adaptation = if has("adaptive") { red::Adaptation::Floyd } else { red::Adaptation::Off };
    let queue = Queue::Red(Red::with_options(params, &options, t0));
    Ok((Params::Red(params), of_red(&params, &options), queue))
}

/// Builds a `choke` from the recorded numbers; `params` gives the parameters that recordings do not
/// state.
pub fn choke_by_hand(recorded: &Object, params: &Params) -> Result<ByHand> {
    let Params::Choke(mut params) = *params else {
        return Err(Outcome::malformed(1, "`tc` does not describe a `choke`"));
    };
    let (options, flags) = recorded_options(recorded)?;
    if options.limit > choke::MAX_LIMIT {
        return Err(Outcome::malformed(1, "`limit` is above the kernel's maximum"));
    }
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    params.ecn = has("ecn");
    params.harddrop = has("harddrop");
    let queue = Queue::Choke(Choke::with_options(params, &options));
    Ok((Params::Choke(params), of_choke(&params, &options), queue))
}
