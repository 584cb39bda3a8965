//! A policy in Rust for a receive buffer, and a buffer that uses the policy.
//!
//! The size is twice the number of bytes in the buffer, including the packet that arrives.

use sojourn_buffer::external::{Factory, Params, Policy};
use sojourn_buffer::{Observation, Params as AnyParams, ReceiveBuffer};
use sojourn_units::external::Fault;
use sojourn_units::{Bytes, Nanos};
use std::sync::Arc;

#[derive(Clone)]
struct Twice;

impl Policy for Twice {
    fn observe(&mut self, seen: &Observation) -> Result<Bytes, Fault> {
        Ok(2 * (seen.occupied + seen.needed))
    }

    fn state(&self, _visit: &mut dyn FnMut(&str, f64)) {}

    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {}", fault.0);
    }
}

impl Factory for Twice {
    fn create(&self, _: &Params) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(self.clone()))
    }

    fn on_fault(&self, fault: &Fault) {
        eprintln!("{}", fault.0);
    }
}

pub fn run() {
    let params = Params { ceiling: 1 << 20, ..Params::bound("twice", Arc::new(Twice)) };
    let mut buffer = ReceiveBuffer::new(AnyParams::External(params), true);
    let discarded = (0..1000).filter(|&n| buffer.offer(n, 1500, n).is_err()).count();
    println!("buffer: stored {}, discarded {discarded}, size {}", buffer.len(), buffer.size());
    assert_eq!((buffer.size(), buffer.len()), (1 << 20, (1 << 20) / 1500));
}
