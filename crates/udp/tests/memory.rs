//! The memory of a server stays below a limit for all inputs and all pauses of the handler.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "a counting allocator")]

mod common;

use sojourn_random::Stream;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Counting;

static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller fulfils the conditions of `alloc`, which are the same here.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the caller fulfils the conditions of `dealloc`, which are the same here.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory of a connection in bytes without its messages: ranges, and the numbers of received
/// messages after the oldest missing one.
const CONNECTION: u64 = 160 << 10;
/// Memory in bytes of two messages in the handler, and of the adversary itself (datagrams, a
/// client, and answers).
const BESIDES: u64 = 2 * 100_000 + (12 << 20);

/// This file must contain only one test, since the counter covers the whole process.
#[test]
fn a_server_s_memory_has_a_ceiling() {
    let most = common::CEILING + common::LIMITS.connections as u64 * CONNECTION + BESIDES;
    let mut draws = Stream::new(5, "memory", "inputs");
    let mut peak = 0;
    for round in 0..60u64 {
        let mut input = vec![round as u8, 0];
        // Opens four connections, and floods them with complete, incomplete and invalid messages.
        for i in 0..4u8 {
            input.extend([1, i, i, 2, i, i, 1 + (round % 3) as u8]);
        }
        for _ in 0..600 {
            let who = draws.below(4) as u8;
            let kind = [3u8, 3, 3, 3, 4, 7, 12, 6][draws.below(8) as usize];
            let mut any = || draws.below(256) as u8;
            match kind {
                // The fields are: number, message, length, first fragment, length of the fragments,
                // and their count.
                3 => {
                    let (number, message, length) = ([any(), any()], any(), [any(), any()]);
                    let first = if any() < 200 { 0 } else { any() };
                    input.extend([3, who, who]);
                    input.extend(number);
                    input.push(message);
                    // Empty messages need only the charge per message.
                    input.extend(if round % 5 == 4 { [0, 0] } else { length });
                    input.extend([first, 1 + (round % 3) as u8, any()]);
                }
                4 => input.extend([4, who, who].into_iter().chain((0..26).map(|_| any()))),
                7 => input.extend([7, 0, any(), any()]),
                // In every second round the handler does not finish its tasks.
                6 if round % 2 == 1 => input.extend([6, any()]),
                _ => input.push(12),
            }
        }
        let before = BYTES.load(Relaxed);
        common::play(&input, || {
            peak = peak.max(BYTES.load(Relaxed).saturating_sub(before));
        });
        assert!(peak <= most, "{peak} bytes in round {round}; at most {most}");
    }
    // The floods must reach the limit of the buffer, otherwise the test would not be meaningful.
    assert!(peak > common::CEILING / 2, "{peak}");
}
