//! Results of a run, computed from the logs of all hosts.
//!
//! The definitions are those of the simulator: events before the end of the warm-up do not count, a
//! duplicate datagram counts only once, and calls are rated with the same model of the receiver.
//! Two definitions differ, since only a simulator knows the true state of each packet:
//! * The delay of a datagram begins when it was actually sent. The time from its due time to its
//!   sending is reported separately as `lateness`.
//! * A datagram that has not arrived by the run's end is `pending` if it was sent within the last
//!   part of the run: twice the greatest delay, plus a margin. Otherwise it is lost.

mod bulk;
mod datagrams;
mod transfers;
mod writes;

use crate::log::{self, Event, Kind};
use serde::Serialize;
use sojourn_measure::Histogram;
use sojourn_plan::{Flow, Group, Plan, Transport};
use sojourn_traffic::App;
use sojourn_units::{EPOCH, Nanos, SECOND};

/// Results of all flows with real endpoints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Reports of the flows, in the order of the plan.
    pub flows: Vec<FlowReport>,
    /// Reports of the groups of these flows, in the order of the plan.
    pub groups: Vec<GroupReport>,
}

/// Statistics of values in seconds. Without values, `count` is 0 and all other fields are NaN
/// (`null` in JSON).
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the names of the fields describe them")]
pub struct Stats {
    pub count: u64,
    pub mean: f64,
    pub sd: f64,
    pub least: f64,
    pub greatest: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
}

impl Stats {
    fn of(histogram: &Histogram) -> Self {
        let seconds = |nanos: f64| nanos / SECOND as f64;
        let moments = histogram.moments();
        let some = |nanos: u64| if moments.count() == 0 { f64::NAN } else { nanos as f64 };
        Self {
            count: moments.count(),
            mean: seconds(moments.mean()),
            sd: seconds(moments.deviation()),
            least: seconds(some(moments.least())),
            greatest: seconds(some(moments.greatest())),
            p50: seconds(histogram.quantile(0.5)),
            p95: seconds(histogram.quantile(0.95)),
            p99: seconds(histogram.quantile(0.99)),
            p999: seconds(histogram.quantile(0.999)),
        }
    }
}

/// Results of a flow. Numbers count events after the end of the warm-up, unless stated otherwise.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowReport {
    /// Number of the flow in the plan, counted from 0.
    pub flow: u32,
    /// Bytes that the receiving application received: without duplicates over UDP, in order over
    /// TCP.
    pub bytes: u64,
    /// Number of datagrams or writes that were sent.
    pub sent: u64,
    /// Number of datagrams that the kernel of the sender's machine refused to send.
    pub not_sent: u64,
    /// Number of datagrams or writes that arrived, without duplicates.
    pub received: u64,
    /// Number of datagrams that were sent but did not arrive, except those that are `pending`.
    pub lost: u64,
    /// Number of datagrams or writes that had not arrived at the run's end and may still be in
    /// flight.
    pub pending: u64,
    /// Number of duplicates of datagrams that had already arrived.
    pub duplicates: u64,
    /// Number of datagrams that arrived after a datagram with a higher number.
    pub reordered: u64,
    /// Number of datagrams that the receiver's kernel dropped since the run's start because the
    /// receive buffer was full. Those sent after the warm-up also count as `lost` or `pending`.
    pub overflowed: u64,
    /// Number of datagrams or transfers received since the run's start that correspond to none that
    /// was sent.
    pub strange: u64,
    /// Number of writes that were refused because the send buffer was full; `sent` does not contain
    /// them.
    pub refused: u64,
    /// Delay of datagrams from their sending to their arrival; delay of writes from their due time
    /// to the arrival of their last byte.
    pub delay: Stats,
    /// Delay of datagrams or writes from their due time to their sending.
    pub lateness: Stats,
    /// Interarrival jitter in seconds (RFC 3550); NaN (`null`) if it was not measured.
    pub jitter: f64,
    /// Mean opinion score of a call; NaN (`null`) if the flow is not a call.
    pub mos: f64,
    /// Transfers of the flow. A stream of writes with a defined end counts as one transfer.
    pub transfers: Vec<Transfer>,
    /// Number of finished transfers.
    pub finished: u64,
    /// Number of transfers that had started and had neither finished nor failed at the run's end.
    pub unfinished: u64,
    /// Time when the flow ended or, over UDP, last sent, in nanoseconds since the run's start.
    pub end: Option<Nanos>,
    /// Error numbers that occurred since the run's start, each with the count of its occurrences.
    pub errors: Vec<(u32, u64)>,
    /// Samples of an endless transfer's connection at the sender's kernel, since the run's start.
    pub samples: Vec<BulkSample>,
    /// Total number of bytes that an endless transfer had delivered at each sample of the receiver,
    /// with the time in nanoseconds since the run's start.
    pub deliveries: Vec<(Nanos, u64)>,
}

/// Sample of a connection at the sender's kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BulkSample {
    /// Time in nanoseconds since the run's start.
    pub at: Nanos,
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round-trip time in nanoseconds.
    pub smoothed_rtt: Nanos,
    /// Number of segments retransmitted since the connection was opened.
    pub retransmitted: u64,
    /// Number of times that the retransmission timer has expired since the connection was opened;
    /// `None` if the kernel does not count them.
    pub timeouts: Option<u64>,
}

/// One transfer of a flow. Times are in nanoseconds since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    /// Time when the transfer was due.
    pub start: Nanos,
    /// Time when the last byte arrived; `None` if the transfer did not finish.
    pub end: Option<Nanos>,
    /// Size of the transfer in bytes.
    pub bytes: u64,
    /// Number of the error that ended the transfer; `None` if there was no error.
    pub error: Option<u32>,
}

/// Results of all flows of a group together.
#[derive(Debug, Serialize)]
pub struct GroupReport {
    /// Index of the group in the plan.
    pub group: u32,
    /// Delays of all datagrams or writes of the group, defined as for a flow.
    pub delay: Summary,
    /// Completion times of the finished transfers of the group.
    pub fct: Summary,
}

/// Statistics and bins of a histogram.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Moments and percentiles in seconds.
    pub stats: Stats,
    /// Bins that contain values, each as the least value in nanoseconds, the greatest value in
    /// nanoseconds, and the number of values.
    pub bins: Vec<(u64, u64, u64)>,
}

impl Summary {
    /// Returns the summary of a histogram of values in nanoseconds.
    pub fn of(histogram: &Histogram) -> Self {
        let bins = histogram.bins().map(|bin| (bin.low, bin.high, bin.count)).collect();
        Self { stats: Stats::of(histogram), bins }
    }
}

/// A flow with the times of the run and the report that is being filled in.
struct Making<'a> {
    group: &'a Group,
    flow: Flow,
    /// End of the warm-up; the next field is the end of the run. Both are times of the run's clock.
    since: Nanos,
    end: Nanos,
    duration: Nanos,
    delay: Histogram,
    fct: Histogram,
    report: FlowReport,
}

impl Making<'_> {
    fn error(&mut self, number: u32) {
        match self.report.errors.iter_mut().find(|(n, _)| *n == number) {
            Some((_, count)) => *count += 1,
            None => self.report.errors.push((number, 1)),
        }
    }
}

/// Computes the results from the logs of all hosts; the order of the logs does not matter. Events
/// after the run's end are ignored, except for the last sample of an endless transfer, since a host
/// may take it slightly late. `end` is the end of the run in nanoseconds since its start. It equals
/// the duration of the plan, unless the run was stopped early.
///
/// # Errors
/// If a log contains an invalid record, or a flow that the plan does not have.
pub fn report(plan: &Plan, seed: u64, logs: &[&[u8]], end: Nanos) -> Result<Report, String> {
    let count: usize = plan.groups.iter().map(|group| group.count as usize).sum();
    let over = EPOCH + end.min(plan.duration);
    let of_group = |group: &Group| {
        std::iter::repeat_n(matches!(group.app, App::Bulk(_)), group.count as usize)
    };
    let bulk: Vec<bool> = plan.groups.iter().flat_map(of_group).collect();
    let mut sent: Vec<Vec<Event>> = vec![Vec::new(); count];
    let mut received: Vec<Vec<Event>> = vec![Vec::new(); count];
    for log in logs {
        for event in log::read(log) {
            let event = event?;
            let sampled = bulk.get(event.flow as usize).is_some_and(|&bulk| bulk);
            if event.at >= over && !sampled {
                continue;
            }
            let lists = if is_receivers(event.kind) { &mut received } else { &mut sent };
            let list = lists.get_mut(event.flow as usize);
            list.ok_or_else(|| format!("flow {} is not in this plan", event.flow))?.push(event);
        }
    }
    let mut flows = Vec::new();
    let mut groups = Vec::new();
    let mut number = 0;
    for (g, group) in plan.groups.iter().enumerate() {
        let (mut delay, mut fct) = (Histogram::new(), Histogram::new());
        let made =
            matches!(group.app, App::Bulk(_) | App::Transfer(_)) || group.app.sends_packets();
        for flow in group.flows(seed, plan.duration) {
            let mine = number as usize;
            number += 1;
            if !made {
                continue;
            }
            let mut making = Making {
                group,
                flow,
                since: EPOCH + plan.warmup,
                end: over,
                duration: plan.duration,
                delay: Histogram::new(),
                fct: Histogram::new(),
                report: FlowReport {
                    flow: mine as u32,
                    lateness: Stats::of(&Histogram::new()),
                    jitter: f64::NAN,
                    mos: f64::NAN,
                    ..FlowReport::default()
                },
            };
            let (out, back) = (&sent[mine], &received[mine]);
            match (&group.transport, &group.app) {
                (_, App::Bulk(_)) => bulk::make(&mut making, out, back),
                (_, App::Transfer(_)) => transfers::make(&mut making, out, back),
                (Transport::Udp, _) => datagrams::make(&mut making, out, back),
                (Transport::Tcp(_), _) => writes::make(&mut making, out, back),
            }
            making.report.delay = Stats::of(&making.delay);
            delay.merge(&making.delay);
            fct.merge(&making.fct);
            flows.push(making.report);
        }
        if made {
            groups.push(GroupReport {
                group: g as u32,
                delay: Summary::of(&delay),
                fct: Summary::of(&fct),
            });
        }
    }
    Ok(Report { flows, groups })
}

fn is_receivers(kind: Kind) -> bool {
    matches!(kind, Kind::Received | Kind::Overflowed | Kind::Delivered | Kind::Completed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use sojourn_plan::{Bottleneck, Observe};
    use sojourn_units::MILLISECOND;

    fn plan(app: &str, tcp: Option<&str>, stop: Option<Nanos>) -> Plan {
        let transport = match tcp {
            Some(text) => Transport::Tcp(sojourn_tcp::Params::parse(text).unwrap()),
            None => Transport::Udp,
        };
        let app = App::parse(app).unwrap();
        Plan {
            sources: std::collections::BTreeMap::default(),
            duration: 10 * SECOND,
            warmup: SECOND,
            nodes: Vec::new(),
            media: Vec::new(),
            links: Vec::new(),
            balancers: Vec::new(),
            groups: vec![Group { count: 2, stop, ..Group::new("g", vec![(0, 1)], transport, app) }],
            apps: Vec::new(),
            observe: Observe {
                bottleneck: Bottleneck { name: String::new(), links: Vec::new() },
                series_interval: 0,
                per_flow_histograms: false,
                monitor: false,
                capture: Vec::new(),
                qlog: Vec::new(),
                snaplen: 128,
                trace_hash: false,
            },
        }
    }

    fn log(events: &[(Kind, u64, u32, Nanos)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut log = Log::new(&mut bytes);
        for &(kind, number, length, ms) in events {
            let at = EPOCH + ms * MILLISECOND;
            log.add(&Event { flow: 1, kind, length, number, at }).unwrap();
        }
        log.flush().unwrap();
        bytes
    }

    fn made(plan: &Plan, logs: [&[u8]; 2]) -> (FlowReport, GroupReport) {
        let mut report = report(plan, 1, &logs, plan.duration).unwrap();
        assert_eq!(report.flows.len(), 2);
        assert_eq!(report.flows[0].sent + report.flows[0].received, 0);
        (report.flows.remove(1), report.groups.remove(0))
    }

    #[test]
    fn datagrams_are_counted_once_and_after_the_warm_up() {
        use Kind::{NotSent, Overflowed, Received, Sent};
        let plan = plan("cbr rate 8kbit payload 100", None, None);
        // One datagram is due every 100 ms, so that the datagrams 0 to 9 come before the end of the
        // warm-up.
        let mut out: Vec<_> = (0..15u64).map(|n| (Sent, n, 100, 100 * n + n % 2)).collect();
        out[12] = (NotSent, 12, 105, 1200);
        out.push((Sent, 15, 100, 9_990));
        out.push((Sent, 16, 100, 10_000));
        let mut back: Vec<_> = (0..10u64).map(|n| (Received, n, 100, 100 * n + 20)).collect();
        back.extend([
            (Received, 10, 100, 1020),
            (Received, 13, 100, 1331),
            // In this order: datagram 11 out of order, a count of dropped datagrams, a duplicate of
            // datagram 13, a datagram that was never sent, and a datagram after the end of the run.
            (Received, 11, 100, 1341),
            (Overflowed, 3, 0, 1342),
            (Received, 13, 100, 1350),
            (Received, 99, 100, 1360),
            (Received, 16, 100, 10_001),
        ]);
        let (flow, group) = made(&plan, [&log(&out), &log(&back)]);
        assert_eq!((flow.sent, flow.not_sent, flow.received, flow.bytes), (5, 1, 3, 300));
        assert_eq!((flow.lost, flow.pending), (1, 1));
        assert_eq!((flow.duplicates, flow.reordered, flow.strange), (1, 1, 1));
        assert_eq!((flow.overflowed, flow.errors), (3, vec![(105, 1)]));
        assert_eq!((flow.delay.count, group.delay.stats.count), (3, 3));
        assert!((flow.delay.least - 0.02).abs() < 1e-9);
        assert!((flow.delay.mean - 0.290 / 3.0).abs() < 1e-9, "{:?}", flow.delay);
        // The datagrams 11 and 13 were sent a millisecond late.
        assert!((flow.lateness.greatest - 8.490).abs() < 1e-9, "{:?}", flow.lateness);
        assert!(flow.lateness.p50 < 0.0011);
        assert_eq!(group.delay.bins.iter().map(|bin| bin.2).sum::<u64>(), 3);
        assert_eq!((flow.mos.is_nan(), flow.jitter.is_nan()), (true, false));
    }

    #[test]
    fn a_call_is_judged_as_in_a_simulation() {
        let plan = plan("voip", None, None);
        let out: Vec<_> = (0..500u64).map(|n| (Kind::Sent, n, 172, 20 * n)).collect();
        let back: Vec<_> = (0..499u64).map(|n| (Kind::Received, n, 172, 20 * n + 40)).collect();
        let (flow, _) = made(&plan, [&log(&out), &log(&back)]);
        let App::Voip(voip) = &plan.groups[0].app else { panic!() };
        let clear = voip.quality(40 * MILLISECOND, 0.0, 1.0).mos;
        assert!((flow.mos - clear).abs() < 1e-12);
        let lossy: Vec<_> = back.iter().filter(|(_, n, ..)| n % 10 != 0).copied().collect();
        let (flow, _) = made(&plan, [&log(&out), &log(&lossy)]);
        assert!(flow.mos < clear - 0.1, "{}", flow.mos);
        // The last two missing datagrams were sent too late to count as lost.
        assert_eq!((flow.lost, flow.pending), (45, 2));
    }

    #[test]
    fn writes_are_delivered_with_their_last_byte() {
        use Kind::{Closed, Delivered, Refused, Written};
        let plan = plan("cbr rate 8kbit payload 100", Some("reno"), Some(2 * SECOND));
        let mut out: Vec<_> = (0..20u64).map(|n| (Written, n, 100, 100 * n)).collect();
        out[15] = (Refused, 15, 100, 1500);
        out.push((Closed, 20, 0, 1900));
        let back =
            [(Delivered, 850, 0, 900), (Delivered, 1250, 0, 1400), (Delivered, 1900, 0, 2000)];
        let (flow, group) = made(&plan, [&log(&out), &log(&back)]);
        assert_eq!((flow.sent, flow.refused, flow.received, flow.pending), (9, 1, 11, 0));
        assert_eq!(flow.bytes, 1050);
        // The writes of 800 to 1100 ms were complete at 1400 ms, the other seven at 2000 ms.
        let delays = [600, 500, 400, 300, 800, 700, 600, 400, 300, 200, 100];
        let mean = delays.iter().sum::<u64>() as f64 / 11e3;
        assert!((flow.delay.mean - mean).abs() < 1e-9, "{:?}", flow.delay);
        let transfer = Transfer { start: 0, end: Some(2 * SECOND), bytes: 1900, error: None };
        assert_eq!(flow.transfers, [transfer]);
        assert_eq!((flow.finished, flow.unfinished, group.fct.stats.count), (1, 0, 1));
        assert!((group.fct.stats.mean - 2.0).abs() < 1e-9);
        // The receiver has not received all bytes.
        let (flow, group) = made(&plan, [&log(&out), &log(&back[..2])]);
        assert_eq!((flow.received, flow.pending, flow.finished, flow.unfinished), (4, 7, 0, 1));
        assert_eq!((flow.transfers[0].end, group.fct.stats.count), (None, 0));
    }

    #[test]
    fn transfers_end_with_their_last_byte() {
        use Kind::{Completed, Connected, Delivered, Due, Failed};
        let plan = plan("transfer size 1000 forever", Some("reno"), None);
        let out = [
            (Due, 1000, 0, 500),
            (Connected, 0, 0, 520),
            (Due, 1000, 1, 1500),
            (Failed, 1, 111, 1600),
            (Due, 1000, 2, 1700),
            (Connected, 0, 2, 1750),
            (Due, 1000, 3, 3000),
        ];
        let back = [
            (Delivered, 600, 0, 900),
            (Delivered, 1000, 0, 1100),
            (Completed, 1000, 0, 1100),
            (Delivered, 1000, 1, 1800),
            (Completed, 1000, 1, 1800),
        ];
        let (flow, group) = made(&plan, [&log(&out), &log(&back)]);
        assert_eq!((flow.finished, flow.unfinished, flow.bytes), (2, 1, 1400));
        let ends: Vec<_> =
            flow.transfers.iter().map(|t| t.end.map(|at| at / MILLISECOND)).collect();
        assert_eq!(ends, [Some(1100), None, Some(1800), None]);
        assert_eq!(flow.transfers[1].error, Some(111));
        assert_eq!(flow.errors, [(111, 1)]);
        assert!((group.fct.stats.mean - 0.35).abs() < 1e-9, "{:?}", group.fct);
        assert!(flow.lateness.mean.is_nan());
    }

    #[test]
    fn endless_transfers_are_sampled() {
        use Kind::{Delivered, Retransmitted, RoundTrip, TimedOut, Window};
        let plan = plan("bulk", Some("reno"), None);
        let out = [
            (Window, 14_480, 1448, 500),
            (RoundTrip, 20_000_000, 0, 500),
            (Retransmitted, 0, 0, 500),
            (Window, 7240, 1448, 600),
            (RoundTrip, 21_000_000, 0, 600),
            (Retransmitted, 3, 0, 600),
            (TimedOut, 1, 0, 600),
        ];
        let back =
            [(Delivered, 1000, 0, 500), (Delivered, 3000, 0, 1500), (Delivered, 9000, 0, 9000)];
        let (flow, group) = made(&plan, [&log(&out), &log(&back)]);
        let second = BulkSample {
            at: 600 * MILLISECOND,
            window: 7240,
            smoothed_rtt: 21_000_000,
            retransmitted: 3,
            timeouts: Some(1),
        };
        assert_eq!((flow.samples.len(), flow.samples[1]), (2, second));
        // Half of the interval between the first two samples lies before the end of the warm-up.
        assert_eq!(flow.bytes, 7000);
        assert_eq!(group.fct.stats.count, 0);
    }

    #[test]
    fn logs_of_other_plans_are_refused() {
        let plan = plan("voip", None, None);
        let mut bytes = log(&[(Kind::Sent, 0, 172, 1)]);
        bytes[0] = 7;
        assert_eq!(report(&plan, 1, &[&bytes], SECOND).unwrap_err(), "flow 7 is not in this plan");
    }
}
