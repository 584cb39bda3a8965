//! Translation of `tc`'s syntax into words that [`sojourn_queue::Params`] parses.
//!
//! A recording contains the command line of iproute2, whose syntax is wider than this project's: a
//! time without a unit is in microseconds, counts may be hexadecimal, the last of repeated words
//! counts, and 0 leaves most options unchanged. Numbers are parsed as real numbers and truncated,
//! as in iproute2. Texts that iproute2 does not accept stay unchanged; [`sojourn_queue::Params`]
//! reports them as errors.

use crate::{classes, dualpi2, fq};
use sojourn_units::words::{Kind as Follows, Table, Word};

/// Kind of the value after a word in `tc`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Count,
    Time,
    Size,
    Rate,
    Real,
    Word,
}

impl Kind {
    /// Returns the kind of value that follows a word of the discipline `name`. `self` is the kind
    /// in [`VALUES`], from which some disciplines differ.
    fn of(self, name: &str, word: &str) -> Self {
        match (word, name) {
            ("limit", "pfifo" | "bfifo" | "red" | "tbf")
            | ("burst", "tbf")
            | ("quantum", "fq_pie" | "sfq" | "fq") => Self::Size,
            ("alpha" | "beta", "dualpi2") => Self::Real,
            ("limit", _) | ("min" | "max" | "target", "choke" | "sfb") => Self::Count,
            _ => self,
        }
    }
}

/// Words with a value: the word, the value's kind, and whether 0 is a valid value. If it is not, 0
/// leaves the option unchanged.
const VALUES: &[(&str, Kind, bool)] = &[
    ("limit", Kind::Count, false),
    ("target", Kind::Time, false),
    ("interval", Kind::Time, false),
    ("tupdate", Kind::Time, false),
    ("ce_threshold", Kind::Time, true),
    ("flows", Kind::Count, false),
    ("quantum", Kind::Count, false),
    ("drop_batch", Kind::Count, false),
    ("memory_limit", Kind::Size, true),
    ("alpha", Kind::Count, false),
    ("beta", Kind::Count, false),
    ("ecn_prob", Kind::Count, false),
    ("min", Kind::Size, false),
    ("max", Kind::Size, false),
    ("avpkt", Kind::Size, false),
    ("burst", Kind::Count, false),
    ("probability", Kind::Real, true),
    ("bandwidth", Kind::Rate, true),
    ("rehash", Kind::Count, true),
    ("db", Kind::Count, true),
    ("increment", Kind::Real, true),
    ("decrement", Kind::Real, true),
    ("penalty_rate", Kind::Count, true),
    ("penalty_burst", Kind::Count, true),
    ("rtt", Kind::Time, false),
    ("memlimit", Kind::Size, true),
    ("perturb", Kind::Count, true),
    ("divisor", Kind::Count, false),
    ("depth", Kind::Count, false),
    ("redflowlimit", Kind::Size, true),
    ("rate", Kind::Rate, true),
    ("peakrate", Kind::Rate, true),
    ("buffer", Kind::Size, true),
    ("maxburst", Kind::Size, true),
    ("mtu", Kind::Size, true),
    ("minburst", Kind::Size, true),
    ("latency", Kind::Time, true),
    ("overhead", Kind::Count, true),
    ("mpu", Kind::Count, true),
    ("flow_limit", Kind::Count, true),
    ("initial_quantum", Kind::Size, true),
    ("maxrate", Kind::Rate, true),
    ("buckets", Kind::Count, false),
    ("refill_delay", Kind::Time, true),
    ("low_rate_threshold", Kind::Rate, true),
    ("orphan_mask", Kind::Count, true),
    ("timer_slack", Kind::Time, true),
    ("horizon", Kind::Time, true),
    ("offload_horizon", Kind::Time, true),
    ("linklayer", Kind::Word, true),
];

/// Translates a complete description. A comment (`#`) is removed, and so are the words before the
/// discipline if `text` begins with `tc`.
pub fn description(text: &str) -> String {
    let tokens = tokens(text);
    match tokens.split_first() {
        Some((&name, options)) if is_discipline(name) => read(text, name, options),
        _ => tokens.join(" "),
    }
}

/// Translates a change of the discipline `name`. `text` may omit the discipline's name.
pub fn change(text: &str, name: &str) -> String {
    let tokens = tokens(text);
    match tokens.split_first() {
        Some((&first, options)) if is_discipline(first) => read(text, first, options),
        _ => read(text, name, &tokens),
    }
}

/// Translates the options of the discipline `name`. iproute2 6.1 does not support `dualpi2`, so its
/// options are the kernel's attributes, set by hand.
fn read(text: &str, name: &str, options: &[&str]) -> String {
    if name == "dualpi2" && text.contains('#') {
        let words = dualpi2::words(options);
        return spell(name, &words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // Options of classful disciplines are not translated. In them, several numbers may follow one
    // word, and some are hexadecimal.
    if classes::NAMES.contains(&name) {
        return [&[name], options].concat().join(" ");
    }
    if name == "fq" {
        let added = fq::by_hand(text);
        return spell(
            name,
            &options.iter().copied().chain(added.split_whitespace()).collect::<Vec<_>>(),
        );
    }
    spell(name, options)
}

fn tokens(text: &str) -> Vec<&str> {
    let plain = text.split('#').next().unwrap_or("");
    let tokens: Vec<&str> = plain.split_whitespace().collect();
    match tokens.iter().position(|token| is_discipline(token)) {
        Some(at) if tokens[0] == "tc" => tokens[at..].to_vec(),
        _ => tokens,
    }
}

fn spell(name: &str, options: &[&str]) -> String {
    let known = |token: &str| {
        let word = |word: &&Word| word.spellings().any(|spelling| spelling == token);
        table(name).and_then(|table| table.words.iter().find(word))
    };
    let mut words: Vec<(&str, &str, String)> = Vec::new();
    let mut options = options.iter().copied().peekable();
    while let Some(token) = options.next() {
        let token = if token == "adaptative" { "adaptive" } else { token };
        let word = known(token);
        let read = VALUES.iter().find(|(value, ..)| *value == token);
        let value = match read.filter(|_| word.is_none_or(Word::takes_value)) {
            None if word.is_some_and(|word| matches!(word.kind, Follows::Numbers { .. })) => {
                let is_number = |token: &&str| count(token).is_some();
                let numbers = std::iter::from_fn(|| options.next_if(is_number));
                numbers.collect::<Vec<_>>().join(" ")
            }
            None => String::new(),
            Some(&(_, kind, zero)) => {
                let value = value(kind.of(name, token), options.next().unwrap_or(""));
                let zero = (zero && name != "fq_pie") || name.ends_with("fifo");
                let kept = zero || !matches!(value.as_str(), "0" | "0us");
                if !kept {
                    continue;
                }
                value
            }
        };
        // If two words set the same option, the later one counts.
        let option = match word.map_or(token, |word| word.name) {
            "rtt by name" => "rtt",
            "unlimited" => "bandwidth",
            option => option,
        };
        words.retain(|(earlier, ..)| *earlier != option);
        words.push((option, token, value));
    }
    let mut text = name.to_owned();
    for part in words.iter().flat_map(|(_, word, value)| [*word, value]).filter(|p| !p.is_empty()) {
        text.push(' ');
        text.push_str(part);
    }
    text
}

fn table(name: &str) -> Option<&'static Table> {
    sojourn_queue::tables().iter().copied().find(|table| table.name == name)
}

fn is_discipline(token: &str) -> bool {
    table(token).is_some()
}

const TIMES: &[(&str, f64)] = &[
    ("", 1.0),
    ("us", 1.0),
    ("usec", 1.0),
    ("usecs", 1.0),
    ("ms", 1e3),
    ("msec", 1e3),
    ("msecs", 1e3),
    ("s", 1e6),
    ("sec", 1e6),
    ("secs", 1e6),
];

const SIZES: &[(&str, f64)] = &[
    ("", 1.0),
    ("b", 1.0),
    ("k", 1024.0),
    ("kb", 1024.0),
    ("kbit", 128.0),
    ("m", 1_048_576.0),
    ("mb", 1_048_576.0),
    ("mbit", 131_072.0),
    ("g", 1_073_741_824.0),
    ("gb", 1_073_741_824.0),
    ("gbit", 134_217_728.0),
];

fn value(kind: Kind, text: &str) -> String {
    let real = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    let read = match kind {
        Kind::Count => count(text).map(|n| n.to_string()),
        Kind::Time => scaled(text, TIMES).map(|micros| format!("{micros}us")),
        Kind::Size => scaled(text, SIZES).map(|bytes| bytes.to_string()),
        Kind::Rate => real().map(|bits| format!("{}bit", bits.trunc())),
        Kind::Real => real().map(|number| number.to_string()),
        Kind::Word => None,
    };
    read.unwrap_or_else(|| text.to_owned())
}

/// Parses an integer: hexadecimal after `0x`, octal after `0`, otherwise decimal.
fn count(text: &str) -> Option<u32> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Parses a real number and its unit. Returns the product, truncated to a 32-bit integer.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    // Takes the longest prefix that is a number, since an `e` may belong to it.
    let (number, unit) =
        (1..=lower.len()).rev().filter(|&end| lower.is_char_boundary(end)).find_map(|end| {
            let (number, unit) = lower.split_at(end);
            let plain = number.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b));
            let number = number.parse::<f64>().ok().filter(|_| plain)?;
            Some((number, unit))
        })?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = (number * factor).trunc();
    (0.0..=f64::from(u32::MAX)).contains(&value).then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_iproute2_does() {
        for (tc, ours) in [
            ("codel target 5.0ms interval 100000", "codel target 5000us interval 100000us"),
            ("codel target 1.001ms", "codel target 1000us"),
            ("codel target 5e3us limit 0x10", "codel target 5000us limit 16"),
            ("codel limit 010 limit 0 ecn noecn", "codel limit 8 noecn"),
            ("codel ce_threshold 0 target 1S", "codel ce_threshold 0us target 1000000us"),
            (
                "fq_codel memory_limit 32Mb quantum 300",
                "fq_codel memory_limit 33554432 quantum 300",
            ),
            (
                "fq_pie quantum 1kb memory_limit 0 flows 0x8 ecn_prob 0",
                "fq_pie quantum 1024 flows 8",
            ),
            ("pfifo limit 1k", "pfifo limit 1024"),
            ("bfifo limit 0", "bfifo limit 0"),
            ("red bandwidth 10000000 adaptative", "red bandwidth 10000000bit adaptive"),
            ("red probability 1e-2 min 30kb", "red probability 0.01 min 30720"),
            ("choke limit 0x80 max 0 min 010 avpkt 1kb", "choke limit 128 min 8 avpkt 1024"),
            (
                "sfb target 8 max 012 rehash 0 increment 5e-3",
                "sfb target 8 max 10 rehash 0 increment 0.005",
            ),
            ("cake flows rtt 20ms datacentre", "cake flows datacentre"),
            ("cake diffserv3 lan rtt 10ms besteffort", "cake rtt 10000us besteffort"),
            ("cake bandwidth 5mbit atm overhead 40", "cake bandwidth 5mbit atm overhead 40"),
            ("cake bandwidth 5mbit unlimited", "cake unlimited"),
            ("tc qdisc add dev eth0 root handle 1: pie limit 5 # by hand", "pie limit 5"),
            ("codel target fast", "codel target fast"),
            ("codel limit", "codel limit"),
            ("codle limit 3", "codle limit 3"),
            (
                "tbf rate 10mbit burst 10kb limit 10kb linklayer atm overhead 0x10 latency 50000",
                "tbf rate 10mbit burst 10240 limit 10240 linklayer atm overhead 16 latency 50000us",
            ),
            (
                "sfq quantum 2kb perturb 10 redflowlimit 100kb divisor 0x10 depth 0",
                "sfq quantum 2048 perturb 10 redflowlimit 102400 divisor 16",
            ),
            (
                "fq buckets 2 horizon 20ms horizon_drop # by hand: weights (20000, 16384, 0x7) maxrate 5",
                "fq buckets 2 horizon 20000us horizon_drop weights 20000 16384 0x7 maxrate 5bit",
            ),
            (
                "dualpi2 step_us 700 target 5000 memlimit 9000 coupling 3 # attributes by hand",
                "dualpi2 step_thresh 700us target 5000us memlimit 9000 coupling_factor 3",
            ),
            ("", ""),
        ] {
            assert_eq!(description(tc), ours);
        }
        assert_eq!(change("limit 5", "codel"), "codel limit 5");
        assert_eq!(change("codel limit 5", "codel"), "codel limit 5");
        assert_eq!(change("cake rtt 5ms", "cake"), "cake rtt 5000us");
        assert_eq!(change("pie limit 5", "codel"), "pie limit 5");
    }
}
