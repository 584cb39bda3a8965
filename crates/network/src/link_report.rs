//! The metrics of a link, computed from its probe and its ledger.

use crate::probe::{Fates, LinkProbe, Work};
use crate::tables::Row;
use sojourn_link::{Capacity, Ledger};
use sojourn_queue::{DropReason, Leaf};
use sojourn_units::{Nanos, SECOND, time::seconds};

const SOJOURN: [(&str, f64); 4] =
    [("sojourn_p50", 0.5), ("sojourn_p95", 0.95), ("sojourn_p99", 0.99), ("sojourn_p999", 0.999)];

/// Returns `part` divided by `whole`; NaN if both are 0.
pub fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Returns the rate in bits per second of `bytes` in `span`.
pub fn rate(bytes: u64, span: Nanos) -> f64 {
    bytes as f64 * 8.0 / seconds(span)
}

/// Returns the number of dropped packets divided by that of dropped and departed packets in the
/// measured time. Arrivals are not the denominator, since a packet may arrive before the end of the
/// warm-up and be dropped after it.
fn loss(fates: Fates) -> f64 {
    share(fates.dropped, fates.dropped + fates.departed)
}

/// Returns the mean utilisation in `span` of links with `transmitters` transmitters: the share of
/// time in which a transmitter was busy or, if its rate changes, the share of its capacity that was
/// used. `works` is the work of each link in `span`. Returns NaN if `transmitters` is 0, which
/// means that one of the links has no rate limit.
pub fn utilisation(works: &[Work], transmitters: u64, span: Nanos) -> f64 {
    if transmitters == 0 {
        return f64::NAN;
    }
    let busy: f64 = works.iter().filter(|work| work.capacity.is_none()).map(|work| work.busy).sum();
    let used: f64 = works.iter().filter_map(|work| work.capacity).map(Capacity::share).sum();
    busy / (transmitters * span) as f64 + used / transmitters as f64
}

/// Appends the metrics of one link, or of several links together, measured over `span` up to `now`.
/// `all` is their ledger and `works` the work of each, both in `span`. `transmitters` is the number
/// of transmitters, 0 if one of the links has no rate limit.
pub fn append(
    row: &mut Row,
    probe: &LinkProbe,
    all: &Ledger,
    works: &[Work],
    transmitters: u64,
    now: Nanos,
    span: Nanos,
) {
    let work: Work = works.iter().copied().sum();
    row.real("throughput", rate(work.begun.bytes, span));
    row.real("utilisation", utilisation(works, transmitters, span));
    row.integer("arrivals", all.offered.packets);
    row.real("arrival_rate", rate(all.offered.bytes, span));
    row.integer("departures", work.begun.packets);
    row.integer("abandoned", all.abandoned.packets);
    row.integer("drops", all.drops().packets);
    let dropped = |reason: DropReason| all.dropped[reason as usize].packets;
    row.integer("drops_early", dropped(DropReason::Early));
    row.integer("drops_forced", dropped(DropReason::Forced));
    row.integer("drops_overflow", dropped(DropReason::Overflow));
    row.integer("drops_ack_filter", dropped(DropReason::AckFilter));
    row.integer("drops_measurement", dropped(DropReason::Measurement));
    row.integer("marks", all.marked.packets);
    let (fates, udp) = (Fates::of(all), probe.measured_udp());
    row.real("loss", loss(fates));
    row.real("tcp_loss", loss(fates - udp));
    row.real("udp_loss", loss(udp));
    row.real("mark_share", share(all.marked.packets, all.offered.packets));
    row.integer("line_losses", all.lost.packets);
    row.integer("duplicates", all.duplicated.packets);

    let runs = &probe.runs;
    row.integer("loss_events", runs.events());
    row.real("consecutive_loss_mean", runs.mean());
    row.real("consecutive_loss_sd", runs.deviation());
    row.integer("consecutive_loss_max", runs.greatest());

    let sojourn = probe.sojourn.moments();
    row.real("sojourn_mean", sojourn.mean() / SECOND as f64);
    row.real("sojourn_sd", sojourn.deviation() / SECOND as f64);
    row.quantiles(&probe.sojourn, &SOJOURN);
    row.real(
        "sojourn_max",
        if sojourn.count() == 0 { f64::NAN } else { seconds(sojourn.greatest()) },
    );

    row.real("queue_mean", probe.packets.mean(now));
    row.real("queue_sd", probe.packets.deviation(now));
    row.integer("queue_max", probe.packets.greatest());
    row.real("backlog_mean", probe.bytes.mean(now));
    row.real("backlog_sd", probe.bytes.deviation(now));
    row.integer("backlog_max", probe.bytes.greatest());
}

/// Returns the metrics of a queue's class, measured over `span`.
pub fn class(leaf: Leaf<'_>, span: Nanos) -> Row {
    let mut row = Row::default();
    row.real("throughput", rate(leaf.sent.bytes, span));
    row.integer("departures", leaf.sent.packets);
    row.integer("drops", leaf.drops());
    row.real("loss", share(leaf.drops(), leaf.drops() + leaf.sent.packets));
    row.real("sojourn_mean", leaf.sojourn.moments().mean() / SECOND as f64);
    row.quantiles(leaf.sojourn, &SOJOURN[1..3]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_utilisation_of_links_without_a_rate_limit_is_missing() {
        let used = Capacity { used: 1, offered: 2 };
        let works = [Work { capacity: Some(used), ..Work::default() }, Work::default()];
        assert!(utilisation(&works, 0, 1).is_nan());
        assert!((utilisation(&works, 2, 1) - 0.25).abs() < 1e-12);
    }
}
