//! Reports of endless transfers.

use super::{BulkSample, Making};
use crate::log::{Event, Kind};
use sojourn_units::{EPOCH, Nanos};

/// Fills in the report of one flow. `out` contains the events that the sender logged, `back` those
/// of the receiver.
pub fn make(making: &mut Making, out: &[Event], back: &[Event]) {
    for event in out {
        let sample = |making: &mut Making| {
            let at = event.at - EPOCH;
            if making.report.samples.last().is_none_or(|last| last.at != at) {
                making.report.samples.push(BulkSample { at, ..BulkSample::default() });
            }
            making.report.samples.len() - 1
        };
        match event.kind {
            // The records of one sample are consecutive in the log, and the time of the sample is
            // that of its first record.
            Kind::Window => {
                let i = sample(making);
                making.report.samples[i].window = event.number;
            }
            Kind::RoundTrip => {
                if let Some(sample) = making.report.samples.last_mut() {
                    sample.smoothed_rtt = event.number;
                }
            }
            Kind::Retransmitted => {
                if let Some(sample) = making.report.samples.last_mut() {
                    sample.retransmitted = event.number;
                }
            }
            Kind::TimedOut => {
                if let Some(sample) = making.report.samples.last_mut() {
                    sample.timeouts = Some(event.number);
                }
            }
            Kind::Failed => making.error(event.length),
            _ => {}
        }
    }
    let counts = back.iter().filter(|event| event.kind == Kind::Delivered);
    making.report.deliveries = counts.map(|event| (event.at - EPOCH, event.number)).collect();
    let before = at(&making.report.deliveries, making.since - EPOCH);
    let after = at(&making.report.deliveries, making.end - EPOCH);
    making.report.bytes = (after - before).round() as u64;
}

/// Returns the number of bytes delivered by `time`, interpolated linearly between two samples.
fn at(deliveries: &[(Nanos, u64)], time: Nanos) -> f64 {
    let next = deliveries.partition_point(|&(at, _)| at <= time);
    let (from, had) = next.checked_sub(1).map_or((0, 0), |i| deliveries[i]);
    match deliveries.get(next) {
        None => had as f64,
        Some(&(to, has)) => {
            had as f64 + (has - had) as f64 * (time - from) as f64 / (to - from) as f64
        }
    }
}
