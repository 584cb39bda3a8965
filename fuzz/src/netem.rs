//! Descriptions of impairments: no text crashes the parser, and a description that is written back reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_link::Netem;

fuzz_target!(|text: &str| {
    if let Ok(described) = sojourn_tc::netem(text) {
        let written = described.params.to_string();
        assert_eq!(Netem::parse(&written), Ok(described.params), "{written}");
    }
});
