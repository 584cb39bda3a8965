//! Kinds of parameters that queue disciplines share: numbers of 32 bits, as the kernel has them.

use crate::device::Device;
use crate::linux::Linux;
use crate::speed::LinkLayer;
use crate::tc::{fraction_text, probability_q32, time_text};
use sojourn_units::declare::{Choices, Param, narrow, switch};
use sojourn_units::words::{Given, Kind, Value, Word, WordError};
use sojourn_units::{MICROSECOND, Rate, quantity};

/// Returns a number of packets.
pub(crate) const fn packets<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Packets, default, narrow, |packets| Some(Value::Integer((*packets).into())))
}

/// Returns a number of bytes.
pub(crate) const fn bytes<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Size, default, narrow, |bytes| Some(Value::Integer((*bytes).into())))
}

/// Returns a time in whole microseconds, rounded down as `tc` does.
pub(crate) const fn micros<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Time, default, whole_micros, |us| Some(Value::Text(time_text(*us))))
}

/// Returns a time in whole microseconds, or none, which is the default.
pub(crate) const fn optional_micros<On>() -> Param<Option<u32>, On> {
    let to = |us: &Option<u32>| us.map(|us| Value::Text(time_text(us)));
    Param::word(Kind::Time, "", |value| whole_micros(value).map(Some), to).initially(|_| None)
}

/// Returns a probability as a fraction of 2^32.
pub(crate) const fn fraction<On>(default: &'static str) -> Param<u32, On> {
    let to = |p: &u32| {
        let reads = |text| probability_q32(text) == *p;
        Some(Value::Text(fraction_text(f64::from(*p) / 4_294_967_296.0, reads)))
    };
    Param::word(Kind::Probability, default, |value| Ok(probability_q32(value.real())), to)
}

/// Returns the version of Linux whose decisions are made. It says which code a simulated queue
/// runs, so `tc` has no such word: there the kernel itself decides.
pub(crate) const fn linux<On>() -> Param<Linux, On> {
    let from = |value: &Value| Linux::named(value.text()).ok_or_else(|| "is not known".to_owned());
    Param::word(Kind::Choice { of: Linux::NAMES }, "7.3", from, |_| None)
}

/// `ecn`, off by default.
pub(crate) const fn ecn<On>() -> Param<bool, On> {
    switch("noecn", "noecn")
}

/// Returns a time in whole microseconds that fit 32 bits.
pub(crate) fn whole_micros(value: &Value) -> Result<u32, String> {
    narrow(&Value::Integer(value.integer() / MICROSECOND))
}

/// A byte a second: the value until a required rate is read.
const SLOWEST: Rate = match Rate::new(8) {
    Some(rate) => rate,
    None => panic!("it is above 0"),
};

/// Returns a rate that must be given.
pub(crate) const fn required_rate<On>() -> Param<Rate, On> {
    Param::word(Kind::Rate, "", read_rate, |rate| Some(write_rate(*rate))).initially(|_| SLOWEST)
}

/// Returns a rate, or none, which is the default.
pub(crate) const fn optional_rate<On>() -> Param<Option<Rate>, On> {
    let from = |value: &Value| read_rate(value).map(Some);
    Param::word(Kind::Rate, "", from, |rate| rate.map(write_rate)).initially(|_| None)
}

/// Returns a rate of whole bytes a second.
pub(crate) fn read_rate(value: &Value) -> Result<Rate, String> {
    let rate = Rate::new(value.integer()).filter(|rate| rate.bits() >= 8);
    rate.ok_or_else(|| "must be at least a byte a second".to_owned())
}

fn write_rate(rate: Rate) -> Value {
    Value::Text(quantity::format_rate(rate))
}

/// Size of a packet on the line.
pub(crate) const fn link_layer<On>() -> Param<LinkLayer, On> {
    let from = |value: &Value| {
        Ok(if value.text() == "ethernet" { LinkLayer::Ethernet } else { LinkLayer::Atm })
    };
    let to = |layer: &LinkLayer| (*layer == LinkLayer::Atm).then(|| Value::Text("atm".to_owned()));
    Param::word(Kind::Choice { of: &["ethernet", "atm", "adsl"] }, "ethernet", from, to)
}

/// Returns the one size that is given under one of several words.
pub(crate) fn one_size(given: &Given, words: &[Word]) -> Result<Option<u32>, WordError> {
    let mut found = None;
    for word in words.iter().filter(|word| given.has(word.name)) {
        if let Some((first, _)) = found {
            let message = format!("`{}` is given already, as `{first}`", word.name);
            return Err(given.error(word.name, message));
        }
        let mut value = 0;
        bytes::<Device>("0b").above_zero().named(word.name, "").set(&mut value, given)?;
        found = Some((word.name, value));
    }
    Ok(found.map(|(_, value)| value))
}

/// Whole numbers of a byte each, one after another.
pub(crate) fn bytes_of(value: &Value) -> Vec<u8> {
    value.numbers().iter().map(|number| u8::try_from(*number).unwrap_or(u8::MAX)).collect()
}
