//! Every metric: its name, unit and definition, once. Docs, report and `explain` are made from this.
//!
//! Everything is counted after the warm-up and up to the run's end. Means include zeros. A metric of
//! the run without a group's or link's name is the bottleneck's, or the sum over all flows.

use serde::Serialize;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its name: a column's name, without the group or link before the last point.
    pub name: &'static str,
    /// Whose it is: of the `run`, a `link`, a shared `medium`, a `flow` (and groups of them), a `balancer`; of `series`
    /// only; of the `monitor`'s series of flows; a `text` or number that says what a row is about.
    pub of: &'static str,
    /// Its unit: `s`, `bit/s`, `B`, `1`; empty for texts.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub definition: &'static str,
}

macro_rules! metrics {
    ($($of:literal { $($name:literal $unit:literal $definition:literal)* })*) => {
        &[$($(Metric { name: $name, of: $of, unit: $unit, definition: $definition },)*)*]
    };
}

/// All metrics.
pub const METRICS: &[Metric] = metrics! {
    "run" {
        "measured" "s" "Simulated time from the end of the warm-up to the end of the run."
        "events" "1" "Events that the simulator processed, warm-up included."
        "packets" "1" "Packets that hosts handed to the network, warm-up included."
    }
    "link" {
        "throughput" "bit/s" "Frame bits whose transmission on the link began, per second; in time series, bits transmitted."
        "utilisation" "1" "Share of the time that transmissions on the link take, its overhead included; where its rate changes, share of its capacity that they use; on a shared medium, share of the time that they occupy it, propagation included; the mean over several links."
        "utilisation_jain" "1" "Jain's index over the utilisations of several links taken together: 1 if all are used alike for their rates, 1/n if one has all."
        "arrivals" "1" "Packets offered to the link's queue."
        "arrival_rate" "bit/s" "Frame bits offered to the link's queue, per second."
        "departures" "1" "Packets whose transmission on the link began."
        "abandoned" "1" "Packets that the transmitter gave up because the shared medium was busy at every attempt."
        "drops" "1" "Packets that the queue dropped, for any reason."
        "drops_early" "1" "Packets that the policy dropped by its probability or schedule, before it had to."
        "drops_forced" "1" "Packets that the policy dropped because its upper threshold was reached."
        "drops_overflow" "1" "Packets dropped for lack of room in the queue."
        "drops_ack_filter" "1" "TCP acknowledgements dropped because a later one in the queue makes them redundant."
        "drops_measurement" "1" "Packets that the policy dropped to learn how long they had waited; only faulty ones do."
        "marks" "1" "Packets on which the queue set Congestion Experienced."
        "loss" "1" "Packets that the queue dropped, divided by those that it dropped or sent on."
        "tcp_loss" "1" "TCP packets that the queue dropped, divided by those that it dropped or sent on."
        "udp_loss" "1" "UDP packets that the queue dropped, divided by those that it dropped or sent on."
        "mark_share" "1" "Packets on which the queue set Congestion Experienced, divided by packets offered to it."
        "line_losses" "1" "Packets lost on the line, after the queue, by the link's impairments; corrupted ones are lost at their host."
        "duplicates" "1" "Packets copied on the line by the link's impairments."
        "consecutive_loss_mean" "1" "Mean number of packets lost in a row; a loss event begins with the first packet dropped and ends when the next arriving packet is accepted."
        "consecutive_loss_sd" "1" "Standard deviation of the number of packets lost in a row."
        "consecutive_loss_max" "1" "Greatest number of packets lost in a row."
        "consecutive_loss" "1" "Number of packets lost in a row, as a distribution over loss events."
        "loss_events" "1" "Number of loss events that ended."
        "sojourn" "s" "Time from a packet's arrival at the queue to the start of its transmission (or its way into the transmit ring), as a distribution over packets that left."
        "sojourn_mean" "s" "Mean time from a packet's arrival at the queue to the start of its transmission (or its way into the transmit ring): queueing delay, over packets that left."
        "sojourn_sd" "s" "Standard deviation of the queueing delay."
        "sojourn_p50" "s" "Median of the queueing delay."
        "sojourn_p95" "s" "95th percentile of the queueing delay."
        "sojourn_p99" "s" "99th percentile of the queueing delay."
        "sojourn_p999" "s" "99.9th percentile of the queueing delay."
        "sojourn_max" "s" "Greatest queueing delay."
        "queue_mean" "1" "Mean number of packets queued, over time, in several queues together; the packet in transmission is not queued."
        "queue_sd" "1" "Standard deviation over time of the number of packets queued."
        "queue_max" "1" "Greatest number of packets queued."
        "backlog_mean" "B" "Mean number of bytes queued, over time."
        "backlog_sd" "B" "Standard deviation over time of the number of bytes queued."
        "backlog_max" "B" "Greatest number of bytes queued."
    }
    "medium" {
        "occupancy" "1" "Share of the time that the shared medium is occupied, by transmissions and their propagation."
        "attempts" "1" "Times that a station sensed the shared medium to send a frame."
        "deferrals" "1" "Attempts that found the shared medium busy."
    }
    "flow" {
        "flows" "1" "Number of flows; for Web traffic, of objects transferred."
        "goodput" "bit/s" "TCP application payload delivered once and in order, per second."
        "udp_goodput" "bit/s" "UDP application payload received, copies made on the way left out, per second."
        "bytes" "B" "Application payload delivered once; for TCP in order."
        "jain" "1" "Jain's index of fairness over the flows' goodputs: 1 if all are equal, 1/n if one has all."
        "delay" "s" "Time of a packet from host to host, as a distribution; for TCP, of packets with data; for packet sources over TCP, of a write, from when the source emits it to the delivery of its last byte in order."
        "delay_mean" "s" "Mean time of a packet from host to host (one-way delay); for TCP, of packets with data; for packet sources over TCP, of their writes."
        "delay_sd" "s" "Standard deviation of the one-way delay."
        "delay_p50" "s" "Median of the one-way delay."
        "delay_p95" "s" "95th percentile of the one-way delay."
        "delay_p99" "s" "99th percentile of the one-way delay."
        "delay_p999" "s" "99.9th percentile of the one-way delay."
        "packet_delay" "s" "Time of a packet with data from host to host, as a distribution; given where `delay` is that of writes."
        "packet_delay_mean" "s" "Mean time of a packet with data from host to host; differs from `delay_mean` where that is of writes."
        "packet_delay_sd" "s" "Standard deviation of the time of a packet with data from host to host."
        "packet_delay_p50" "s" "Median of the time of a packet with data from host to host."
        "packet_delay_p95" "s" "95th percentile of the time of a packet with data from host to host."
        "packet_delay_p99" "s" "99th percentile of the time of a packet with data from host to host."
        "rtt" "s" "Round-trip time samples of the TCP senders, as a distribution."
        "rtt_mean" "s" "Mean of the TCP senders' round-trip time samples."
        "rtt_p50" "s" "Median of the TCP senders' round-trip time samples."
        "rtt_p95" "s" "95th percentile of the TCP senders' round-trip time samples."
        "rtt_p99" "s" "99th percentile of the TCP senders' round-trip time samples."
        "sent" "1" "Packets that the senders handed to the network; for TCP, packets with data."
        "received" "1" "Packets of the senders that the receivers took, copies made on the way included; for TCP, packets with data."
        "packet_loss" "1" "Packets dropped or lost anywhere on their way, divided by packets sent."
        "retransmissions" "1" "TCP segments sent again."
        "timeouts" "1" "Expiries of TCP's retransmission timer."
        "recoveries" "1" "Times that a TCP sender entered loss recovery without a timeout."
        "writes" "1" "Writes that packet sources wanted to make into TCP."
        "refused" "1" "Writes of packet sources that were refused, TCP's send buffer being full."
        "cwnd" "B" "Congestion window."
        "cwnd_mean" "B" "Mean congestion window over time, averaged over flows."
        "srtt" "s" "Smoothed round-trip time of a TCP sender."
        "active" "1" "Number of flows that have begun and not ended."
        "active_mean" "1" "Mean over time of the number of flows that have begun and not ended."
        "finished" "1" "Transfers that ended, flows of writes that were delivered wholly among them."
        "unfinished" "1" "Transfers begun but not ended by the end of the run."
        "fct" "s" "Flow completion time, as a distribution: from a transfer's start to its last byte's delivery, finished transfers only."
        "fct_mean" "s" "Mean flow completion time, finished transfers only."
        "fct_p50" "s" "Median flow completion time, finished transfers only."
        "fct_p95" "s" "95th percentile of the flow completion time, finished transfers only."
        "fct_p99" "s" "99th percentile of the flow completion time, finished transfers only."
        "jitter" "s" "Interarrival jitter of RFC 3550: smoothed absolute difference of successive one-way delays, at the end, averaged over flows."
        "mos" "1" "Mean opinion score of a call, 1 to 4.5, from delay, jitter buffer and loss (ITU-T G.107), averaged over flows."
        "mos_min" "1" "Mean opinion score of the worst call."
        "page" "s" "Page load time, as a distribution: from a page's first request to its last object's end."
        "page_mean" "s" "Mean page load time."
        "page_p50" "s" "Median page load time."
        "page_p95" "s" "95th percentile of the page load time."
        "page_p99" "s" "99th percentile of the page load time."
        "pages" "1" "Web pages loaded."
        "objects" "1" "Web objects loaded."
        "start" "s" "When the flow began."
        "end" "s" "When the flow ended; not a number if it did not."
    }
    "balancer" {
        "choices" "1" "Flows or connections that the balancer has given a server."
        "choices_refused" "1" "Times that the balancer gave a flow no server."
        "choices_jain" "1" "Jain's index over the servers' numbers of choices: 1 if all were chosen as often."
        "choices_repeated" "1" "Share of choices that fell on the same server as the choice before: 1/n if n servers are drawn, near 1 where flows herd."
        "choices_unreachable" "1" "Share of choices whose server could not be reached when the flow began."
        "misplaced" "1" "Share of choices whose port, when the flow began, held a wait longer than the shortest of all ports by more than a full frame."
        "excess_wait_mean" "s" "Mean wait in the chosen port's queue above that in the shortest, when the flow began; waits are backlog over rate."
        "age_mean" "s" "Mean age, when a server was chosen, of what was known of it; of choices that looked at something."
        "decision_mean" "s" "Mean time from a flow's first packet at the switch until the flow could go on."
        "decision_p50" "s" "Median of the time that decisions took."
        "decision_p99" "s" "99th percentile of the time that decisions took."
    }
    "store" {
        "requests" "1" "Requests to a store that are measured: those after its warm-up."
        "acknowledged" "1" "Requests that as many replicas answered as the consistency level wants."
        "unavailable" "1" "Requests refused at once, too few replicas being up."
        "errors" "1" "Requests that failed otherwise: too many replicas failed, or no node was up."
        "timed_out" "1" "Requests that were not answered in time: nobody knows whether they took effect."
        "pending" "1" "Requests without an outcome at the end of the run."
        "latency" "s" "Latency of acknowledged requests, as a distribution: from the time when a request was to be made until its client has the answer."
        "latency_mean" "s" "Mean latency of acknowledged requests."
        "latency_sd" "s" "Standard deviation of the latency of acknowledged requests."
        "latency_p50" "s" "Median latency of acknowledged requests."
        "latency_p95" "s" "95th percentile of the latency of acknowledged requests."
        "latency_p99" "s" "99th percentile of the latency of acknowledged requests."
        "latency_p999" "s" "99.9th percentile of the latency of acknowledged requests."
        "latency_max" "s" "Greatest latency of an acknowledged request."
        "elapsed" "s" "Time from the first request measured to the last one's end."
        "messages" "1" "Messages that the store's hosts sent to each other."
        "messages_lost" "1" "Messages lost with their connections."
        "speculations" "1" "Reads for which another replica was asked before the first had answered."
        "mismatches" "1" "Reads whose replicas differed."
        "read_repairs" "1" "Writes that reads made to replicas that were behind."
        "hints" "1" "Writes kept for replicas that were away or slow."
        "hints_handed" "1" "Writes kept and handed over when the replica was back."
        "unconverged" "1" "Records that at the end not all of their replicas have in the newest version."
        "coordinated" "1" "Requests that a node coordinated, those before the warm-up's end too."
        "stored" "1" "Writes that a node took as a replica, those before the warm-up's end too."
    }
    "series" {
        "time" "s" "Simulated time since the start of the run."
        "queue" "1" "Packets queued."
        "backlog" "B" "Bytes queued."
        "last_sojourn" "s" "Queueing delay of the packet that left last."
    }
    "monitor" {
        "back" "" "Whether the row is about the packets that answer a flow's."
        "received_bytes" "B" "Frame bytes of the packets that the receiving host took."
        "dropped" "1" "Packets of one direction of a flow that queues dropped, for any reason."
        "measurement_drops" "1" "Those of them that queues dropped by measuring."
        "lost" "1" "Packets of one direction of a flow that were lost on lines."
        "delay_sum" "s" "Sum of the one-way delays of the packets that the receiving host took."
        "first_sent" "s" "When the first packet of one direction of a flow was sent."
        "last_received" "s" "When the last packet was taken by the receiving host; not a number before the first."
    }
    "text" {
        "link" "" "Name of the link."
        "group" "" "Name of the group of flows."
        "flow" "1" "Number of the flow within its group."
        "from" "" "Name of the sending node."
        "to" "" "Name of the receiving node."
        "place" "" "Link or group that a distribution belongs to."
        "metric" "" "Metric that a distribution is of."
        "low" "" "Least value of a bin, in the metric's unit."
        "high" "" "Greatest value of a bin, in the metric's unit."
        "count" "1" "Number of values in a bin."
    }
};

/// The metric that a column shows: what follows the last point of its name. Columns of a policy's
/// internal state, `<link>.state.<name>`, show no metric: the kernel's code defines them.
pub fn of_column(column: &str) -> Option<&'static Metric> {
    let name = column.rsplit('.').next()?;
    METRICS.iter().find(|m| m.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once_and_each_definition_is_a_sentence() {
        for (i, metric) in METRICS.iter().enumerate() {
            assert!(METRICS[..i].iter().all(|m| m.name != metric.name), "{}", metric.name);
            assert!(metric.definition.ends_with('.'), "{}", metric.name);
            assert!(["s", "bit/s", "B", "1", ""].contains(&metric.unit), "{}", metric.name);
        }
    }

    #[test]
    fn columns_are_found_by_their_last_word() {
        assert_eq!(of_column("uplink.reverse.sojourn_p99").unwrap().unit, "s");
        assert_eq!(of_column("goodput").unwrap().unit, "bit/s");
        assert!(of_column("uplink.nonsense").is_none());
    }
}
