//! Recordings of FQ: options set by hand, the kernel's numbers, and the packets' sockets.

use crate::read::Json;
use crate::report::Outcome;
use serde_json::json;
use sojourn_queue::SocketKind;
use sojourn_queue::fq::{Beyond, Params};

/// Returns the options that a comment adds after `tc`'s options, in words of this project. The
/// punctuation of lists such as `weights (1, 2, 3)` is removed.
pub fn by_hand(text: &str) -> String {
    let (_, added) = text.split_once("# by hand:").unwrap_or_default();
    added.replace(['(', ')', '[', ']', ','], " ")
}

/// Returns the parameters in the form of recordings.
pub fn numbers(params: &Params) -> Json {
    let constants = params.constants();
    let maxrate = if constants.maxrate == u64::MAX { json!(-1) } else { json!(constants.maxrate) };
    json!({
        "limit": params.limit, "flow_limit": params.flow_limit, "quantum": params.quantum,
        "initial_quantum": params.initial_quantum, "refill_delay": constants.refill_delay,
        "maxrate": maxrate, "low_rate_threshold": constants.low_rate_threshold,
        "pacing": u8::from(params.pacing), "buckets_log": params.buckets_log(),
        "orphan_mask": params.orphan_mask, "ce_threshold": constants.ce_threshold, "horizon": constants.horizon,
        "horizon_drop": u8::from(params.beyond == Beyond::Drop),
        "offload_horizon": constants.offload_horizon, "weights": params.weights, "priomap": params.priomap,
    })
}

/// Returns the kind of socket that a recorded number denotes.
pub fn kind(line: usize, number: u64) -> Result<SocketKind, Outcome> {
    match number {
        0 => Ok(SocketKind::Stream),
        1 => Ok(SocketKind::Unconnected),
        2 => Ok(SocketKind::Passive),
        3 => Ok(SocketKind::Datagram),
        _ => Err(Outcome::malformed(line, format!("`kind` must be 0 to 3, found {number}"))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn notes_by_hand_become_words() {
        let words = |text| super::by_hand(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words("fq # by hand: weights (1, 2, 3) priomap [0, 1]"),
            "weights 1 2 3 priomap 0 1"
        );
        assert_eq!(words("fq quantum 5"), "");
    }
}
