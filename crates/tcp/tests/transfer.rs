//! Whole transfers between two ends.

use crate::pipe::{Draws, Fate, Pipe};
use sojourn_tcp::State;
use sojourn_units::{MILLISECOND, SECOND};

/// Every profile with every control moves a file over a clean and over a lossy path.
#[test]
fn every_profile_and_control_transfers() {
    for profile in sojourn_tcp::Profile::NAMES {
        for control in sojourn_tcp::tables().iter().map(|table| table.name) {
            for loss in [0.0, 0.02] {
                let text = format!("{control} profile {profile}");
                let mut pipe = Pipe::simple(&text, "10mbit", 10 * MILLISECOND, 50);
                let mut draws = Draws(7);
                pipe.paths[0].fate =
                    Box::new(
                        move |_, _| {
                            if draws.chance(loss) { Fate::Drop } else { Fate::Deliver }
                        },
                    );
                let bytes = 2_000_000;
                pipe.ends[0].write(bytes);
                pipe.ends[0].close();
                let done = pipe.run_until(200 * SECOND, |p| p.ends[0].is_finished());
                let end = &pipe.ends[0];
                assert!(done, "{text} loss {loss}: {end:?}");
                assert_eq!(pipe.ends[1].bytes_delivered(), bytes, "{text}");
                assert_eq!(end.bytes_acked(), bytes);
                println!(
                    "{text:28} loss {loss:4} {:7.3} s  retransmits {:4} rtos {:2} recoveries {:3} spurious {} dropped {}",
                    (pipe.now - sojourn_units::EPOCH) as f64 / 1e9,
                    end.counters().retransmits,
                    end.counters().rtos,
                    end.counters().recoveries,
                    end.counters().spurious,
                    pipe.paths[0].dropped,
                );
                pipe.ends[1].close();
                assert!(pipe.run_until(900 * SECOND, |p| {
                    p.ends.iter().all(|e| e.state() == State::Closed)
                }));
            }
        }
    }
}
