//! The UDP transport: no sequence of datagrams crashes a server or a client, or violates an invariant.
#![no_main]

#[path = "../../crates/udp/tests/common/mod.rs"]
mod adversary;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    adversary::play(data, || {});
});
