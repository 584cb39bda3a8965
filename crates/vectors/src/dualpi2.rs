//! Recordings of DualPI2: options set by hand have the names of the kernel's attributes, and
//! parameters are the kernel's numbers.

use crate::read::Json;
use serde_json::json;
use sojourn_queue::dualpi2::{Params, Step};

/// Translates the kernel's attributes into words of this project. Unknown attributes stay
/// unchanged.
pub fn words(attributes: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = attributes.iter();
    while let Some(&name) = rest.next() {
        let value = rest.next().copied().unwrap_or("");
        let gain = || value.parse::<u32>().map(|gain| (f64::from(gain) / 256.0).to_string());
        let (name, value) = match (name, value) {
            ("step_us", us) => ("step_thresh", format!("{us}us")),
            ("step_packets", packets) => ("step_thresh", format!("{packets}p")),
            ("coupling", factor) => ("coupling_factor", factor.to_owned()),
            ("classic_protection", share) => ("classic_protection", format!("{share}%")),
            ("alpha" | "beta", value) => (name, gain().unwrap_or_else(|_| value.to_owned())),
            ("ecn_mask", "1") => ("l4s_ect", String::new()),
            ("ecn_mask", "3") => ("any_ect", String::new()),
            ("drop_early", "0") => ("drop_dequeue", String::new()),
            ("drop_early", "1") => ("drop_enqueue", String::new()),
            ("drop_overload", "0") => ("overflow", String::new()),
            ("drop_overload", "1") => ("drop_on_overload", String::new()),
            ("split_gso", "0") => ("no_split_gso", String::new()),
            ("split_gso", "1") => ("split_gso", String::new()),
            (name, value) => (name, value.to_owned()),
        };
        words.push(name.to_owned());
        if !value.is_empty() {
            words.push(value);
        }
    }
    words
}

/// Returns the parameters in the form of recordings.
pub fn numbers(params: &Params) -> Json {
    let constants = params.pi.constants();
    let (step, in_packets) = match params.step {
        Step::Micros(us) => (u32::try_from(u64::from(us) * 1000).unwrap_or(u32::MAX), 0),
        Step::Packets(packets) => (packets, 1),
    };
    json!({
        "limit": params.limit, "memory_limit": params.memory_limit,
        "target": constants.target, "tupdate": constants.tupdate, "alpha": constants.alpha, "beta": constants.beta,
        "step_thresh": step, "step_in_packets": in_packets, "min_qlen_step": params.min_qlen_step,
        "coupling": constants.coupling, "ecn_mask": if params.any_ect { 3 } else { 1 },
        "wc": params.classic_protection, "wl": 100 - params.classic_protection,
        "credit_init": params.initial_credit(),
        "drop_early": u8::from(params.drop_enqueue),
        "drop_overload": u8::from(params.drop_on_overload),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn attributes_become_words() {
        let words =
            |text: &str| super::words(&text.split_whitespace().collect::<Vec<_>>()).join(" ");
        assert_eq!(
            words("limit 20 step_us 700 coupling 3 alpha 41 ecn_mask 3 drop_overload 0"),
            "limit 20 step_thresh 700us coupling_factor 3 alpha 0.16015625 any_ect overflow"
        );
        assert_eq!(
            words("classic_protection 0 ecn_mask 2 beta"),
            "classic_protection 0% ecn_mask 2 beta"
        );
    }
}
