//! Files that set up queues, in any form that is known: no text crashes the reader.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_queue::Device;
use sojourn_tc::{Hosts, read};
use std::collections::BTreeMap;

fuzz_target!(|bytes: &[u8]| {
    let reading = read(&[("fuzz".to_owned(), bytes.to_vec())], &BTreeMap::new(), &[]);
    for facts in reading.devices() {
        let _ = reading.build(&facts.name, &Hosts::default(), true, &Device::default());
    }
});
