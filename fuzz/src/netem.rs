//! Descriptions of impairments: no text crashes the parser, and a description that is written back reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_link::Netem;

fuzz_target!(|text: &str| {
    let _ = (Netem::warnings(text), Netem::description(text));
    if let Ok(netem) = Netem::parse(text) {
        let written = netem.to_string();
        assert_eq!(Netem::parse(&written), Ok(netem), "{written}");
    }
});
