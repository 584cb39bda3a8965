//! Descriptions of queues: no text crashes the parser, and a description that is written back reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_queue::{Device, Params};

fuzz_target!(|text: &str| {
    let device = Device::default();
    let _ = sojourn_tc::queue(text, &device);
    if let Ok(params) = Params::parse(text, &device) {
        let written = params.to_text();
        assert_eq!(Params::parse(&written, &device), Ok(params), "{written}");
    }
});
