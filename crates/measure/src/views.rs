//! Selections of metrics for tables and texts, in the order in which these show them.

use serde::Serialize;

/// A selection of metrics, such as those of a link in a run's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// Name of the view. Views for different kinds of groups can have the same name.
    pub name: &'static str,
    /// Metric that only groups of this kind have; empty if the view applies to all kinds.
    pub sign: &'static str,
    /// Names of the metrics. Each has a short label for this view; if it is empty, the registry's
    /// label is used.
    pub metrics: &'static [(&'static str, &'static str)],
}

macro_rules! views {
    ($($name:literal $(if $sign:literal)? { $($metric:literal $(as $short:literal)?)* })*) => {
        &[$(View {
            name: $name,
            sign: concat!($($sign)?),
            metrics: &[$(($metric, concat!($($short)?)),)*],
        },)*]
    };
}

/// All views. If several views have the same name, the first one whose kind fits is used.
pub const VIEWS: &[View] = views! {
    "summary.link" {
        "utilisation"
        "utilisation_jain" as "evenness"
        "sojourn_mean" as "queueing delay, mean"
        "sojourn_p95" as "95 %"
        "sojourn_p99" as "99 %"
        "sojourn_max" as "max"
        "queue_mean" as "queue, mean"
        "queue_max" as "max"
        "loss"
        "drops_early" as "early drops"
        "drops_forced" as "forced"
        "drops_overflow" as "overflow"
        "drops_ack_filter" as "filtered ACKs"
        "drops_measurement" as "by measuring"
        "abandoned" as "given up"
        "marks" as "marks"
    }
    "summary.flow" {
        "flows"
        "goodput"
        "udp_goodput" as "goodput"
        "jain" as "fairness"
        "delay_mean" as "delay"
        "delay_p95" as "95 %"
        "jitter"
        "packet_loss" as "loss"
        "retransmissions" as "sent again"
        "fct_mean" as "completion"
        "page_mean" as "page load"
        "page_p95" as "95 %"
        "mos" as "MOS"
        "responsiveness_08" as "responsiveness"
        "responsiveness_08_foreign" as "of new connections"
        "responsiveness_08_loaded" as "of loaded ones"
    }
    "summary.balancer" {
        "choices" as "choices"
        "choices_refused" as "refused"
        "choices_repeated" as "same server as before"
        "misplaced" as "misplaced"
        "excess_wait_mean" as "wait beyond the least"
        "age_mean" as "age of information"
        "decision_mean" as "decision"
        "decision_p99" as "99 %"
    }
    "summary.outcomes" {
        "acknowledged" as "acknowledged"
        "unavailable" as "unavailable"
        "errors" as "failed"
        "timed_out" as "timed out"
        "pending" as "pending"
    }
    "summary.latency" {
        "latency_mean" as "mean"
        "latency_p50" as "50 %"
        "latency_p95" as "95 %"
        "latency_p99" as "99 %"
        "latency_max" as "max"
    }
    "summary.store" {
        "retransmissions" as "sent again"
        "speculations"
        "mismatches" as "reads that differed"
        "hints"
        "unconverged"
    }
    "report.link" {
        "utilisation" "throughput" "loss"
        "drops_early" "drops_forced" "drops_overflow" "drops_ack_filter" "drops_measurement" "marks"
        "sojourn_mean" "sojourn_p95" "sojourn_p99" "queue_mean" "queue_max"
    }
    "report.flow" {
        "goodput" "udp_goodput" "packet_loss" "retransmissions" "timeouts" "delay_mean" "jitter" "mos"
    }
    "report.series" { "last_sojourn" "queue" "throughput" }
    "live.link" {
        "sojourn_mean" as "queueing delay, mean"
        "sojourn_p95" as "queueing delay, 95 %"
        "sojourn_p99" as "queueing delay, 99 %"
        "queue_mean" as "packets queued, mean"
        "utilisation"
        "loss"
        "marks" as "marks"
    }
    "live.flow" {
        "delay_p95" as "delay, 95 %"
        "packet_loss" as "loss"
        "mos" as "MOS"
        "page_mean" as "page load, mean"
        "fct_mean" as "completion, mean"
        "responsiveness_08" as "responsiveness"
    }
    "live.store" {
        "latency_mean" as "latency, mean"
        "latency_p99" as "latency, 99 %"
        "acknowledged" as "acknowledged"
    }
    "wire" {
        "throughput" "arrivals" "drops" "marks" "line_losses"
        "sojourn_mean" "sojourn_p95" "sojourn_max" "backlog_max"
    }
    // A comparison shows the compared metric first, followed by these.
    "compare" { "sojourn_mean" "sojourn_p95" "sojourn_p99" "goodput" "utilisation" "loss" }
    "compare.balancer" { "utilisation_jain" }
    "compare.store" { "latency_p99" "latency_mean" "acknowledged" "timed_out" "unavailable" "errors" }
    "compare.group" if "mos" { "mos" }
    "compare.group" if "jitter" { "delay_p95" "jitter" "packet_loss" }
    "compare.group" if "page_mean" { "page_p95" "page_mean" }
    "compare.group" if "fct_mean" { "fct_mean" "fct_p95" }
    "compare.group" if "responsiveness_08" { "responsiveness_08" "probe_added" }
    "compare.series" { "last_sojourn" "throughput" }
    // A group belongs to the first line whose condition (`if`) names one of its metrics. The users
    // of the group notice the first metric of the line first. To choose its default metric,
    // `compare` searches the lines in this order.
    "felt" if "mos" { "mos" "delay_p99" }
    "felt" if "page_mean" { "page_p95" }
    "felt" if "fct_mean" { "fct_p95" }
    "felt" if "responsiveness_08" { "responsiveness_08" }
    "felt" if "jitter" { "delay_p99" }
    "study" {
        "sojourn_mean" "sojourn_p95" "sojourn_p99" "sojourn_sd" "goodput" "utilisation" "loss"
        "udp_loss" "consecutive_loss_mean" "jain"
    }
    "study.store" { "latency_mean" "latency_p99" "timed_out" }
    "study.group" { "mos" "page_p95" "fct_mean" "fct_p95" "responsiveness_08" }
    "headline" { "sojourn_p95" "goodput" }
    "headline.store" { "latency_mean" "latency_p99" "acknowledged" "timed_out" "unavailable" }
    "suite" { "sojourn_p95" "utilisation" "loss" "goodput" }
    "tradeoff" { "sojourn_mean" "goodput" }
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::METRICS;

    #[test]
    fn views_show_metrics_of_the_registry_and_are_unique() {
        let known = |name: &str| METRICS.iter().any(|m| m.name == name);
        for (i, view) in VIEWS.iter().enumerate() {
            let twice = VIEWS[..i].iter().any(|v| (v.name, v.sign) == (view.name, view.sign));
            assert!(!twice, "{} {}", view.name, view.sign);
            assert!(view.sign.is_empty() || known(view.sign), "{} {}", view.name, view.sign);
            for (metric, _) in view.metrics {
                assert!(known(metric), "{}: {metric}", view.name);
            }
        }
    }
}
