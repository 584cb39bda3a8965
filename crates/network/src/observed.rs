//! Queues of other programs, measured from outside by the packets seen before and behind them.
//!
//! The metrics are those of Sojourn's own links, except the reasons of drops and the numbers of
//! consecutive losses, which cannot be derived from packets.

use crate::link_report::{self, share};
use crate::probe::{LinkProbe, Work};
use crate::tables::{Row, table};
use sojourn_link::{Backlog, Framing, Ledger};
use sojourn_measure::{Table, Values};
use sojourn_plan::Plan;
use sojourn_queue::DropReason;
use sojourn_units::{Nanos, Rate, clocking::Clocking, time::seconds};
use std::collections::{BTreeMap, VecDeque};

/// A packet seen before or behind a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Nanoseconds since the run's start.
    pub at: Nanos,
    /// Key that the packet has both before and behind the queue. Packets with equal keys are taken
    /// to leave in the order of their arrival.
    pub key: u64,
    /// Frame length in bytes.
    pub length: u32,
    /// Whether the packet is marked Congestion Experienced (CE).
    pub congested: bool,
    /// Whether the packet is UDP; otherwise it is TCP.
    pub udp: bool,
    /// Whether the packet leaves the queue; otherwise it arrives at the queue.
    pub leaves: bool,
}

/// A queue measured from outside. Sightings must be passed in the order of their times.
#[derive(Debug)]
pub struct Observed {
    rate: Option<Rate>,
    clocking: Clocking,
    framing: Framing,
    probe: LinkProbe,
    ledger: Ledger,
    busy: Nanos,
    /// Packets that have arrived and not left, by key: they are queued or were dropped.
    waiting: BTreeMap<u64, VecDeque<Sighting>>,
    /// End of the warm-up: when measuring begins.
    since: Nanos,
    series: Series,
}

/// The time series of a queue, and what has been counted since the last sample.
#[derive(Clone, Debug, Default)]
struct Series {
    /// Time between samples; 0 without a time series.
    interval: Nanos,
    /// When the next sample is due.
    next: Nanos,
    /// Transmission time counted since the last sample.
    busy: Nanos,
    /// When the last transmission ends.
    until: Nanos,
    marks: u64,
    utilisation: Vec<f64>,
    marked: Vec<f64>,
    last_sojourn: Vec<f64>,
}

impl Series {
    /// Takes the samples that are due until `now`. `timed` is whether the transmitter's rate is
    /// known; `last` is the sojourn time of the packet that left last.
    fn sample(&mut self, now: Nanos, timed: bool, last: Nanos) {
        while self.interval > 0 && self.next <= now {
            // A transmission that began in the interval may end in a later one.
            let later = self.until.saturating_sub(self.next).min(self.busy);
            let busy = std::mem::replace(&mut self.busy, later) - later;
            self.next += self.interval;
            self.utilisation.push(if timed { share(busy, self.interval) } else { f64::NAN });
            self.marked.push(std::mem::take(&mut self.marks) as f64);
            self.last_sojourn.push(seconds(last));
        }
    }
}

impl Observed {
    /// Returns the measurement of a queue before a transmitter of `rate`; `None` if the rate is
    /// unknown. `framing` gives the bytes that a packet occupies on the line. Measuring begins at
    /// `since`; the time series has a sample every `interval`, or none if that is 0.
    pub fn new(rate: Option<Rate>, framing: Framing, since: Nanos, interval: Nanos) -> Self {
        Self {
            series: Series { interval, next: interval, ..Series::default() },
            rate,
            clocking: Clocking::up(rate.unwrap_or(Rate::ONE)),
            framing,
            probe: LinkProbe::new(0),
            ledger: Ledger::default(),
            busy: 0,
            waiting: BTreeMap::new(),
            since,
        }
    }

    /// Records a sighting.
    pub fn see(&mut self, sighting: Sighting) {
        self.series.sample(sighting.at, self.rate.is_some(), self.probe.last_sojourn);
        if !sighting.leaves {
            self.waiting.entry(sighting.key).or_default().push_back(sighting);
            if sighting.at >= self.since {
                self.ledger.offered.count(sighting.length);
            }
            return;
        }
        let Some(list) = self.waiting.get_mut(&sighting.key) else { return };
        let Some(arrival) = list.pop_front() else { return };
        if list.is_empty() {
            self.waiting.remove(&sighting.key);
        }
        let marked = sighting.congested && !arrival.congested;
        let sojourn = sighting.at.saturating_sub(arrival.at);
        let length = self.framing.occupied(sighting.length);
        let busy = self.rate.map_or(0, |rate| self.clocking.step(rate.span(length)));
        self.probe.last_sojourn = sojourn;
        self.series.marks += u64::from(marked);
        self.series.busy += busy;
        self.series.until = sighting.at + busy;
        if sighting.at < self.since {
            return;
        }
        self.ledger.departed.count(sighting.length);
        if marked {
            self.ledger.marked.count(sighting.length);
        }
        self.probe.udp.departed += u64::from(sighting.udp);
        self.probe.sojourn.record(sojourn);
        self.busy += busy;
    }

    /// Records the backlog at `at` as read from the queue's own counters.
    pub fn backlog(&mut self, at: Nanos, backlog: Backlog) {
        self.probe.backlog(at, backlog);
        if at <= self.since {
            self.probe.packets.restart(at);
            self.probe.bytes.restart(at);
        }
    }

    /// Returns the metrics until `end`, the probe and the time series; `queued` is the number of
    /// packets in the queue at `end`.
    fn row(mut self, end: Nanos, queued: u32) -> (Row, LinkProbe, Series) {
        self.series.sample(end, self.rate.is_some(), self.probe.last_sojourn);
        // Packets since the warm-up that have not left are drops, except the latest `queued` ones.
        let mut rest: Vec<Sighting> = self.waiting.into_values().flatten().collect();
        rest.sort_by_key(|sighting| sighting.at);
        rest.truncate(rest.len().saturating_sub(queued as usize));
        for lost in rest.iter().filter(|sighting| sighting.at >= self.since) {
            self.ledger.dropped[DropReason::Overflow as usize].count(lost.length);
            self.probe.udp.dropped += u64::from(lost.udp);
        }
        let span = end.saturating_sub(self.since);
        let work = Work {
            busy: self.busy as f64,
            begun: self.ledger.departed,
            transmitted: self.ledger.departed.bytes,
            capacity: None,
        };
        let timed = u64::from(self.rate.is_some());
        let mut row = Row::default();
        link_report::append(&mut row, &self.probe, &self.ledger, &[work], timed, end, span);
        row.0.retain(|(name, _)| !REASONS.contains(name) && !UNOBSERVED.contains(name));
        (row, self.probe, self.series)
    }
}

/// Metrics that sightings cannot give, though a discipline's counters may.
const REASONS: [&str; 4] = ["drops_early", "drops_forced", "drops_overflow", "drops_ack_filter"];

/// Metrics that neither sightings nor a discipline's counters can give.
pub const UNOBSERVED: [&str; 4] =
    ["loss_events", "consecutive_loss_mean", "consecutive_loss_sd", "consecutive_loss_max"];

/// Returns the tables `queues`, `distributions` and `series` of queues measured from outside until
/// `end`. `queues` has for each queue the number of its link, its measurement, and the number of
/// packets in the queue at `end`.
pub fn tables(
    plan: &Plan,
    queues: Vec<(usize, Observed, u32)>,
    end: Nanos,
) -> (Table, Table, Table) {
    let mut rows = Vec::new();
    let (mut distributions, mut sampled) = (Table::default(), Table::default());
    for (link, observed, queued) in queues {
        let name = &plan.links[link].name;
        let mut row = Row::default();
        row.text("link", name);
        let (metrics, probe, series) = observed.row(end, queued);
        row.0.extend(metrics.0);
        rows.push(row);
        crate::report::append_times(&mut distributions, name, "sojourn", &probe.sojourn);
        let Series { utilisation, marked, last_sojourn, .. } = series;
        for (metric, unit, values) in [
            ("utilisation", "1", utilisation),
            ("marks", "1", marked),
            ("last_sojourn", "s", last_sojourn),
        ] {
            sampled.push(format!("{name}.{metric}"), unit, Values::Real(values));
        }
    }
    (table(rows), distributions, sampled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: Nanos, key: u64, leaves: bool, congested: bool) -> Sighting {
        Sighting { at, key, length: 1000, congested, udp: false, leaves }
    }

    fn value(row: &Row, name: &str) -> String {
        let found = row.0.iter().find(|(column, _)| *column == name);
        format!("{:?}", found.unwrap_or_else(|| panic!("{name}")).1)
    }

    #[test]
    fn packets_are_followed_through_a_queue() {
        let mut queue = Observed::new(Rate::new(8_000_000), Framing::default(), 100, 0);
        // Packet 1 is before the end of the warm-up. Packet 2 waits 50 ns and is marked, 3 is
        // dropped, and 4 is queued at the end.
        for sighting in [
            seen(10, 1, false, false),
            seen(20, 1, true, false),
            seen(110, 2, false, false),
            seen(120, 3, false, false),
            seen(130, 4, false, false),
            seen(160, 2, true, true),
        ] {
            queue.see(sighting);
        }
        let (row, probe, _) = queue.row(1100, 1);
        assert_eq!(value(&row, "arrivals"), "Integer(3)");
        assert_eq!(value(&row, "departures"), "Integer(1)");
        assert_eq!(value(&row, "drops"), "Integer(1)");
        assert_eq!(value(&row, "marks"), "Integer(1)");
        assert_eq!(probe.sojourn.moments().greatest(), 50);
        assert!(row.0.iter().all(|(name, _)| *name != "drops_early"));
    }

    #[test]
    fn a_transmission_counts_where_it_takes_place() {
        // The transmission takes 1000 ns and begins 500 ns before a sample.
        let mut queue = Observed::new(Rate::new(8_000_000_000), Framing::default(), 0, 2000);
        queue.see(seen(1400, 1, false, false));
        queue.see(seen(1500, 1, true, true));
        let (_, _, series) = queue.row(6000, 0);
        assert_eq!(series.utilisation, [0.25, 0.25, 0.0]);
        assert_eq!(series.marked, [1.0, 0.0, 0.0]);
        assert_eq!(series.last_sojourn, [1e-7; 3]);
    }

    #[test]
    fn equal_packets_leave_in_their_order() {
        let mut queue = Observed::new(None, Framing::default(), 0, 0);
        for sighting in [
            seen(10, 7, false, false),
            seen(20, 7, false, false),
            seen(30, 7, true, false),
            seen(50, 7, true, false),
        ] {
            queue.see(sighting);
        }
        let (_, probe, _) = queue.row(100, 0);
        assert_eq!((probe.sojourn.moments().least(), probe.sojourn.moments().greatest()), (20, 30));
    }
}
