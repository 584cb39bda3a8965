//! Capture files: no bytes crash the reader, and a selection only omits packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_capture::{Select, read};

const MOST: usize = 1000;

fuzz_target!(|data: &[u8]| {
    let tcp = Select { protocol: Some(6), ..Select::default() };
    let Ok(all) = read(data, &Select::default(), MOST) else { return };
    assert!(all.packets.len() <= MOST);
    if let Ok(selected) = read(data, &tcp, MOST) {
        assert!(selected.packets.len() <= all.packets.len());
    }
});
