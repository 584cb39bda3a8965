//! A traffic source in Rust, and its packets in one second.
//!
//! The policy sends bursts of ten packets. The intervals between bursts are uniformly
//! distributed from 0.5 to 1.5 times the mean.

use sojourn_random::{Key, Stream};
use sojourn_traffic::external::{Factory, Fault, Params, Policy};
use sojourn_traffic::{App, Emission};
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};
use std::sync::Arc;

/// The policy. `mean` is the mean interval in nanoseconds, `left` the number of packets that
/// remain in the burst.
#[derive(Clone)]
struct Bursts {
    mean: Nanos,
    left: u32,
    draws: Stream,
}

impl Policy for Bursts {
    fn next(&mut self, now: Nanos) -> Result<Option<Emission>, Fault> {
        let mut at = now;
        if self.left == 0 {
            self.left = 10;
            at += self.mean / 2 + self.draws.below(self.mean);
        }
        self.left -= 1;
        Ok(Some(Emission { at, payload: 1000 }))
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("left", self.left.into());
    }

    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn on_fault(&mut self, now: Nanos, packet: u64, fault: &Fault) {
        eprintln!("at {now} ns, packet {packet}: {fault}");
    }
}

struct Mean(Nanos);

impl Factory for Mean {
    fn create(&self, _: &Params, _start: Nanos, draws: Stream) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(Bursts { mean: self.0, left: 10, draws }))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {fault}");
    }
}

pub fn run() {
    let app = App::External(Params::bound("bursts", Arc::new(Mean(20 * MILLISECOND))));
    let mut source = app.packet_source(Key::new(1, "flow"), EPOCH).expect("a packet source");
    let packets = std::iter::repeat_with(|| source.next_packet());
    let sent = packets.take_while(|packet| packet.at < EPOCH + SECOND).count();
    println!("source: {sent} packets in a second");
    assert!((400..=600).contains(&sent), "about 50 bursts of ten");
}
