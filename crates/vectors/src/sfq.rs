//! Recordings of SFQ: the kernel's numbers.

use crate::read::Json;
use serde_json::json;
use sojourn_queue::sfq::Params;

/// Returns the parameters in the form of recordings.
pub fn numbers(params: &Params) -> Json {
    let flags = [("ecn", params.ecn), ("harddrop", params.harddrop)];
    let flags: Vec<&str> = flags.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    // `tc` sends no idle table for SFQ.
    let red = params.red().map(|constants| {
        json!({
            "min": constants.min, "max": constants.max, "Wlog": constants.wlog, "Plog": constants.plog, "Scell_log": 0,
            "max_P": constants.max_p,
        })
    });
    json!({
        "limit": params.max_packets(), "divisor": params.divisor, "maxflows": params.max_flows(),
        "depth": params.depth, "quantum": params.quantum, "headdrop": u8::from(params.headdrop),
        "flags": flags, "red": red,
    })
}
