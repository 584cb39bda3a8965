//! The command lines of recordings, as descriptions that [`sojourn_queue::Params`] parses.
//!
//! The crate `tc` reads iproute2's syntax; recordings add comments and attributes set by hand.

use crate::{classes, dualpi2, fq};

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
    let words: Vec<String> = match name {
        "dualpi2" if text.contains('#') => dualpi2::words(options),
        // The statements of classes follow the options.
        _ if classes::NAMES.contains(&name) => return [&[name], options].concat().join(" "),
        "fq" => {
            let added = fq::by_hand(text);
            options.iter().copied().chain(added.split_whitespace()).map(str::to_owned).collect()
        }
        _ => options.iter().map(|&word| word.to_owned()).collect(),
    };
    sojourn_tc::iproute2(name, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn tokens(text: &str) -> Vec<&str> {
    let plain = text.split('#').next().unwrap_or("");
    let tokens: Vec<&str> = plain.split_whitespace().collect();
    match tokens.iter().position(|token| is_discipline(token)) {
        Some(at) if tokens[0] == "tc" => tokens[at..].to_vec(),
        _ => tokens,
    }
}

fn is_discipline(token: &str) -> bool {
    sojourn_queue::tables().iter().any(|table| table.name == token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_queue::{Device, Params};

    #[test]
    fn reads_as_iproute2_does() {
        for (tc, ours) in [
            ("codel target 5.0ms interval 100000", "codel target 5ms interval 100ms"),
            ("codel target 1.001ms", "codel target 1ms"),
            ("codel target 5e3us limit 0x10", "codel target 5ms limit 16"),
            ("codel limit 010 limit 0 ecn noecn", "codel limit 8 noecn"),
            ("codel ce_threshold 0 target 1S", "codel ce_threshold 0us target 1s"),
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
            (
                "red limit 400kb max 90kb probability 1e-2 min 30kb",
                "red limit 409600 min 30720 max 92160 probability 0.01",
            ),
            ("choke limit 0x80 max 0 min 010 avpkt 1kb", "choke limit 128 min 8 avpkt 1024"),
            (
                "sfb target 8 max 012 rehash 0 increment 5e-3",
                "sfb target 8 max 10 rehash 0 increment 0.005",
            ),
            ("cake flows rtt 20ms datacentre", "cake flows datacentre"),
            ("cake diffserv3 lan rtt 10ms besteffort", "cake rtt 10ms besteffort"),
            ("cake bandwidth 5mbit atm overhead 40", "cake bandwidth 5mbit atm overhead 40"),
            ("cake bandwidth 5mbit unlimited", "cake unlimited"),
            ("tc qdisc add dev eth0 root handle 1: pie limit 5 # by hand", "pie limit 5"),
            ("codel target fast", "codel target fast"),
            ("codel limit", "codel limit"),
            ("codle limit 3", "codle limit 3"),
            (
                "tbf rate 10mbit burst 10kb linklayer atm overhead 0x10 latency 50000",
                "tbf rate 10mbit burst 10240 linklayer atm overhead 16 latency 50ms",
            ),
            (
                "sfq quantum 2kb perturb 10 redflowlimit 100kb divisor 0x10 depth 0",
                "sfq quantum 2048 perturb 10 redflowlimit 102400 divisor 16",
            ),
            (
                "fq buckets 2 horizon 20ms horizon_drop # by hand: weights (20000, 16384, 0x7) maxrate 5",
                "fq buckets 2 horizon 20ms horizon_drop weights 20000 16384 7 maxrate 5bit",
            ),
            (
                "dualpi2 step_us 700 target 5000 memlimit 9000 coupling 3 # attributes by hand",
                "dualpi2 step_thresh 700us target 5ms memlimit 9000 coupling_factor 3",
            ),
            ("", ""),
        ] {
            let read = description(tc);
            let params = |text: &str| Params::parse(text, &Device::default()).ok();
            assert!(
                params(&read) == params(ours) && (params(ours).is_some() || read == ours),
                "{read}"
            );
        }
        assert_eq!(change("limit 5", "codel"), "codel limit 5");
        assert_eq!(change("codel limit 5", "codel"), "codel limit 5");
        assert_eq!(change("cake rtt 5ms", "cake"), "cake rtt 5ms");
        assert_eq!(change("pie limit 5", "codel"), "pie limit 5");
    }
}
