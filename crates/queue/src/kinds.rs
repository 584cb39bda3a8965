//! Kinds of parameters that several queue disciplines use.

use crate::device::Device;
use crate::linux::Linux;
use crate::speed::LinkLayer;
use crate::tc::{probability_q32, q32_text, time_text};
use sojourn_units::declare::{Choices, Param, narrow, switch};
use sojourn_units::words::{Given, Kind, Value, Word, WordError};
use sojourn_units::{MICROSECOND, Rate, quantity};

/// Returns a parameter that is a number of packets.
pub(crate) const fn packets<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Packets, default, narrow, |packets| Some(Value::Integer((*packets).into())))
}

/// Returns a parameter that is a number of bytes.
pub(crate) const fn bytes<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Size, default, narrow, |bytes| Some(Value::Integer((*bytes).into())))
}

/// Returns a parameter that is a time in whole microseconds, rounded down as `tc` rounds.
pub(crate) const fn micros<On>(default: &'static str) -> Param<u32, On> {
    Param::word(Kind::Time, default, whole_micros, |us| Some(Value::Text(time_text(*us))))
}

/// Returns a parameter that is a time in whole microseconds; `None` by default.
pub(crate) const fn optional_micros<On>() -> Param<Option<u32>, On> {
    let to = |us: &Option<u32>| us.map(|us| Value::Text(time_text(us)));
    Param::word(Kind::Time, "", |value| whole_micros(value).map(Some), to).initially(|_| None)
}

/// Returns a parameter that is a probability, in units of 2^-32.
pub(crate) const fn fraction<On>(default: &'static str) -> Param<u32, On> {
    let to = |p: &u32| Some(Value::Text(q32_text(*p)));
    Param::word(Kind::Probability, default, |value| Ok(probability_q32(value.real())), to)
}

/// Returns the parameter `linux`: the version of Linux whose decisions the simulated queue makes.
/// It has no word in `tc`, since there the running kernel decides. `of` are the names of the
/// versions that differ for this queue, which end with the newest.
pub(crate) const fn linux<On>(of: &'static [&'static str]) -> Param<Linux, On> {
    let from = |value: &Value| {
        Linux::named(value.text()).ok_or_else(|| "is not a known version".to_owned())
    };
    Param::word(Kind::Choice { of }, of[of.len() - 1], from, |_| None)
}

/// Returns the parameter `ecn`, off by default.
pub(crate) const fn ecn<On>() -> Param<bool, On> {
    switch("noecn", "noecn")
}

/// Returns a time in whole microseconds, rounded down; an error if the result does not fit in 32
/// bits.
pub(crate) fn whole_micros(value: &Value) -> Result<u32, String> {
    narrow(&Value::Integer(value.integer() / MICROSECOND))
}

/// 1 byte per second: the placeholder until a required rate is read.
const SLOWEST: Rate = match Rate::new(8) {
    Some(rate) => rate,
    None => panic!("8 bit/s is above 0"),
};

/// Returns a parameter that is a rate and must be given.
pub(crate) const fn required_rate<On>() -> Param<Rate, On> {
    Param::word(Kind::Rate, "", read_rate, |rate| Some(write_rate(*rate))).initially(|_| SLOWEST)
}

/// Returns a parameter that is a rate; `None` by default.
pub(crate) const fn optional_rate<On>() -> Param<Option<Rate>, On> {
    let from = |value: &Value| read_rate(value).map(Some);
    Param::word(Kind::Rate, "", from, |rate| rate.map(write_rate)).initially(|_| None)
}

/// Reads a rate of at least 1 byte per second.
pub(crate) fn read_rate(value: &Value) -> Result<Rate, String> {
    let rate = Rate::new(value.integer()).filter(|rate| rate.bits() >= 8);
    rate.ok_or_else(|| "must be at least a byte a second".to_owned())
}

fn write_rate(rate: Rate) -> Value {
    Value::Text(quantity::format_rate(rate))
}

/// Returns the parameter `linklayer`: the framing that determines a packet's size on the line.
/// `adsl` is another name for `atm`.
pub(crate) const fn link_layer<On>() -> Param<LinkLayer, On> {
    let from = |value: &Value| {
        Ok(if value.text() == "ethernet" { LinkLayer::Ethernet } else { LinkLayer::Atm })
    };
    let to = |layer: &LinkLayer| (*layer == LinkLayer::Atm).then(|| Value::Text("atm".to_owned()));
    Param::word(Kind::Choice { of: &["ethernet", "atm", "adsl"] }, "ethernet", from, to)
}

/// Returns the size given by one of several synonymous words; `None` without any of them. Two of
/// the words are an error.
pub(crate) fn one_size(given: &Given, words: &[Word]) -> Result<Option<u32>, WordError> {
    let mut present = None;
    for word in words.iter().filter(|word| given.has(word.name)) {
        if let Some((first, _)) = present {
            let message =
                format!("`{}` and `{first}` are the same parameter; remove one", word.name);
            return Err(given.error(word.name, message));
        }
        let mut value = 0;
        bytes::<Device>("0b").above_zero().named(word.name, "").set(&mut value, given)?;
        present = Some((word.name, value));
    }
    Ok(present.map(|(_, value)| value))
}

/// Returns a list of whole numbers as bytes; a number above 255 becomes 255.
pub(crate) fn bytes_of(value: &Value) -> Vec<u8> {
    value.numbers().iter().map(|number| u8::try_from(*number).unwrap_or(u8::MAX)).collect()
}
