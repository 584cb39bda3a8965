//! A congestion control in Rust, and a path that loses packets beyond its capacity.
//!
//! The policy adds a segment to the window per round trip. On congestion, the window becomes 0.7
//! times the data in flight.

use sojourn_congestion::external::{Factory, Fault, Params, Policy};
use sojourn_congestion::{Ack, Cause, Congestion, Host, Start, Window, hystart};
use sojourn_units::{EPOCH, MILLISECOND, Nanos};
use std::sync::Arc;

/// The policy: additive increase, multiplicative decrease.
#[derive(Clone)]
struct Aimd {
    counted: u64,
}

impl Policy for Aimd {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) -> Result<(), Fault> {
        if ack.may_grow && ack.cwnd_limited {
            self.counted += ack.acked;
            if self.counted >= window.cwnd {
                self.counted -= window.cwnd;
                window.grow(window.mss);
            }
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        window: &Window,
        flight: u64,
        _cause: Cause,
        _now: Nanos,
    ) -> Result<u64, Fault> {
        self.counted = 0;
        Ok((flight * 7 / 10).max(window.floor()))
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("counted", self.counted.into());
    }

    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {fault}");
    }
}

struct Aimds;

impl Factory for Aimds {
    fn create(&self, _: &mut Window, _: Nanos, _draw: u32) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(Aimd { counted: 0 }))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {fault}");
    }
}

/// Sends for a hundred round trips over a path with a capacity of fifty segments.
pub fn run() {
    let params = Params::bound("aimd", Arc::new(Aimds)).into();
    let mut window = Window::new(1000, 10);
    let host = Host { slow_start: hystart::Params::default(), hz: 0 };
    let mut control = Congestion::new(&params, host, &window);
    control.on_start(&mut window, &Start { now: EPOCH, srtt: 0, draw: 1 });
    let (mut losses, mut una) = (0, 0);
    for round in 1..=100 {
        let now = EPOCH + round * 10 * MILLISECOND;
        for _ in 0..window.cwnd / window.mss {
            una += window.mss;
            let ack = Ack {
                now,
                acked: window.mss,
                delivered: window.mss,
                una,
                nxt: una + window.cwnd,
                rtt: 10 * MILLISECOND,
                may_grow: true,
                cwnd_limited: true,
                ..Ack::default()
            };
            control.on_ack(&mut window, &ack);
        }
        if window.cwnd > 50 * window.mss {
            losses += 1;
            window.ssthresh = control.reduce(&window, window.cwnd, Cause::Loss, now);
            window.set_cwnd(window.ssthresh);
        }
    }
    println!("congestion: {losses} losses, cwnd {}", window.cwnd);
    assert!(losses > 2 && window.cwnd > 30 * window.mss);
}
