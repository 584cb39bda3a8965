//! Recorded decisions, whose headers contain commands of `tc`: no text crashes the replay.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_vectors::replay;

fuzz_target!(|text: &str| {
    let _ = replay("fuzz", text);
});
