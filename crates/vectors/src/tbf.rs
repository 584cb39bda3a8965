//! Recordings of TBF: the kernel's numbers, and bucket depths that are given only as times.

use crate::frame::{Frame, Lost};
use crate::read::Json;
use serde_json::json;
use sojourn_queue::tbf::{Constants, LinkLayer, Params, Speed, Tbf};
use sojourn_queue::{Params as Any, Queue};
use sojourn_units::Nanos;

/// Returns a rate in the form of recordings.
pub fn speed(speed: &Speed) -> Json {
    json!({
        "bps": speed.bytes, "mult": speed.mult, "shift": speed.shift, "overhead": speed.overhead,
        "mpu": speed.mpu, "atm": u8::from(speed.layer == LinkLayer::Atm),
    })
}

/// Returns the parameters in the form of recordings.
pub fn numbers(params: &Params) -> Json {
    of_constants(params, &params.constants())
}

fn of_constants(params: &Params, constants: &Constants) -> Json {
    json!({
        "limit": params.limit, "max_size": constants.max_size, "buffer": constants.buffer, "mtu": constants.mtu,
        "rate": speed(&constants.rate), "peak": constants.peak.as_ref().map(speed),
    })
}

/// Returns a `tbf` whose bucket depths are given only as times: parameters, numbers in the form of
/// recordings, and the queue.
pub fn by_times(params: &Params, t0: Nanos) -> (Any, Json, Queue<Frame>) {
    let constants = params.constants_by_times();
    let numbers = of_constants(params, &constants);
    let queue = Queue::Tbf(Box::new(Tbf::with_constants(params.clone(), constants, t0)));
    (Any::Tbf(params.clone()), numbers, queue)
}

/// Changes a `tbf` whose bucket depths are given only as times, and returns its numbers in the form
/// of recordings.
pub fn change_by_times(tbf: &mut Tbf<Frame>, params: &Params, now: Nanos, lost: &mut Lost) -> Json {
    let constants = params.constants_by_times();
    tbf.change_constants(params, constants, now, lost);
    of_constants(params, &constants)
}
