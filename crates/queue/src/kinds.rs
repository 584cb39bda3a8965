//! Kinds of parameters that queue disciplines share: numbers of 32 bits, as the kernel has them.

use crate::linux::Linux;
use crate::tc::{fraction_text, probability_q32, time_text};
use sojourn_units::MICROSECOND;
use sojourn_units::declare::{Choices, Param, narrow, switch};
use sojourn_units::words::{Kind, Value};

/// A number of packets.
pub(crate) const fn packets<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Packets, default, narrow, |packets| Some(Value::Integer((*packets).into())))
}

/// A number of bytes.
pub(crate) const fn bytes<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Size, default, narrow, |bytes| Some(Value::Integer((*bytes).into())))
}

/// A time in whole microseconds, rounded down as `tc` does.
pub(crate) const fn micros<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Time, default, whole_micros, |us| Some(Value::Text(time_text(*us))))
}

/// A time in whole microseconds, or none, which is the default.
pub(crate) const fn optional_micros<On>() -> Param<Option<u32>, On> {
    let to = |us: &Option<u32>| us.map(|us| Value::Text(time_text(us)));
    Param::word(Kind::Time, "", |value| whole_micros(value).map(Some), to).initially(|_| None)
}

/// A probability as a fraction of 2^32.
pub(crate) const fn fraction<On>(default: &'static str) -> Param<u32, On> {
    let to = |p: &u32| {
        let reads = |text| probability_q32(text) == *p;
        Some(Value::Text(fraction_text(f64::from(*p) / 4_294_967_296.0, reads)))
    };
    Param::word(Kind::Probability, default, |value| Ok(probability_q32(value.real())), to)
}

/// The version of Linux whose decisions are made. It says which code a simulated queue runs, so `tc` has no
/// such word: there the kernel itself decides.
pub(crate) const fn linux<On>() -> Param<Linux, On> {
    let from = |value: &Value| Linux::named(value.text()).ok_or_else(|| "is not known".to_owned());
    Param::word(Kind::Choice { of: Linux::NAMES }, "7.3", from, |_| None)
}

/// `ecn`, off by default.
pub(crate) const fn ecn<On>() -> Param<bool, On> {
    switch("noecn", "noecn")
}

/// A time in whole microseconds that fit 32 bits.
pub(crate) fn whole_micros(value: &Value) -> Result<u32, String> {
    narrow(&Value::Integer(value.integer() / MICROSECOND))
}
