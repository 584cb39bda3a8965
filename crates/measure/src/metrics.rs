//! The registry of metrics. For each metric it has unit, direction, label, smallest difference of
//! interest and definition. The documentation, reports, comparisons and `explain` use it.
//!
//! Metrics cover the time from the end of the warm-up to the end of the run, unless their
//! definition says otherwise. Means include zeros. A metric without the name of a link, group or
//! other part of the scenario belongs to the bottleneck, to all flows together, or to the run.

use serde::Serialize;

/// Direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither direction is better: the metric describes a run without rating it.
    Neutral,
}

/// Kind of users who notice a change of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Felt {
    /// Persons who wait for an answer, talk, or play.
    Interactive,
    /// Persons or programs that transfer large amounts of data.
    Bulk,
    /// Operators of the network, its links and its balancers.
    Operator,
    /// Clients of a replicated store.
    StoreClient,
    /// No users: the metric only describes the run.
    Nobody,
}

/// Form in which a metric is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One number for a whole run, or for a link, group or flow.
    Number,
    /// A distribution, whose mean and percentiles are separate metrics.
    Distribution,
    /// Values over time, but no number for the whole run.
    Series,
    /// A value in each row of a table, but no number for the whole run.
    Row,
}

/// Smallest difference of interest. A smaller difference is irrelevant in practice, even if it is
/// statistically significant.
///
/// The difference of interest is the larger one of `share` times the reference value, and
/// `absolute`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interest {
    /// Share of the reference value.
    pub share: f64,
    /// Minimum difference, in the metric's unit.
    pub absolute: f64,
    /// Source of the two numbers.
    pub source: &'static str,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Name of the metric: the part of a column's name after the last dot, or all of it without a
    /// dot.
    pub name: &'static str,
    /// Subject of the metric: the `run`, a `link`, a shared `medium`, a `flow` (or a group of
    /// flows), a `balancer`, a `store`, or a `server` with its receive buffers. `series` is a
    /// metric of time series only, `monitor` one of the monitor's series of flows, and `text` a
    /// text or number that identifies a row.
    pub of: &'static str,
    /// Unit: `s`, `bit/s`, `B`, `1/min`, or `1` for a number; empty for a text.
    pub unit: &'static str,
    /// Direction in which the metric is better.
    pub better: Better,
    /// Users who notice a change of the metric.
    pub felt: Felt,
    /// Smallest difference of interest.
    pub interest: Interest,
    /// Name for use in sentences and on axes.
    pub label: &'static str,
    /// Definition in one sentence.
    pub definition: &'static str,
    /// Form in which the metric is recorded.
    pub form: Form,
    /// Whether the metric is a share of a whole, which is shown in percent.
    pub percent: bool,
    /// Whether tables omit the metric if it is zero.
    pub rare: bool,
    /// Whether the value of a group is the sum over its flows.
    pub sum: bool,
    /// Further subjects that have this metric: the `run` (for all flows together), a `store` (for
    /// its connections), or a `server` (for its messages).
    pub also_of: &'static [&'static str],
    /// Applications whose flows have the metric; empty if all flows have it.
    pub apps: &'static [&'static str],
}

const fn interest(share: f64, absolute: f64, source: &'static str) -> Interest {
    Interest { share, absolute, source }
}

const OURS: &str = "our choice";
const ANY: Interest = interest(0.05, 0.0, OURS);
const NONE: Interest = interest(0.0, 0.0, "the value is a text, not a quantity");
const COUNT: Interest = interest(0.1, 1.0, OURS);
const BYTES: Interest = interest(0.1, 1514.0, "our choice; at least one full frame");
const RATE: Interest = interest(0.05, 0.0, OURS);
const POINTS: Interest = interest(0.0, 0.01, "our choice: one percentage point");
const JAIN: Interest = interest(0.0, 0.02, "our choice; two flows that share 60 to 40 have 0.96");
const LOSS: Interest = interest(
    0.1,
    0.001,
    "ITU-T G.107 and G.113: 0.1 % of loss lowers the MOS of a G.711 call by 0.05; Mathis et al. 1997: a loss higher by 10 % lowers TCP's rate by 5 %",
);
const QUEUEING: Interest =
    interest(0.05, 0.0001, "our choice; a full frame takes 0.12 ms at 100 Mbit/s");
const DELAY: Interest = interest(
    0.05,
    0.002,
    "our choice: an eighth of the time between two pictures at 60 pictures per second; calls are rated by their quality instead",
);
const JITTER: Interest = interest(0.1, 0.001, OURS);
const MOS: Interest = interest(
    0.0,
    0.1,
    "our choice: a third of the narrowest step between the categories of ITU-T G.107",
);
const PAGE: Interest = interest(
    0.1,
    0.1,
    "Card, Moran and Newell 1983: 0.1 s is one cycle of perception; Seow 2008: users notice 20 %, of which half is taken here",
);
const COMPLETION: Interest =
    interest(0.1, 0.01, "our choice; the share is that of page load times");
const LATENCY: Interest = interest(0.05, 0.0001, OURS);
const TRIPS: Interest = interest(
    0.1,
    0.0,
    "our choice: 10 % of 3000 round trips per minute correspond to 2 ms per round trip, the smallest difference of interest of a delay",
);
const REQUESTS: Interest =
    interest(0.01, 1.0, "our choice: the share by which `compare` distinguishes stores");

macro_rules! metrics {
    ($($of:literal $better:ident $felt:ident $interest:ident {
        $($name:literal $unit:literal $label:literal $definition:literal $({ $($field:ident: $value:expr),* })?)*
    })*) => {
        &[$($(Metric {
            $($($field: $value,)*)?
            ..Metric {
                name: $name,
                of: $of,
                unit: $unit,
                better: Better::$better,
                felt: Felt::$felt,
                interest: $interest,
                label: $label,
                definition: $definition,
                form: Form::Number,
                percent: false,
                rare: false,
                sum: false,
                also_of: &[],
                apps: &[],
            }
        },)*)*]
    };
}

/// All metrics, in blocks of metrics that share subject, direction, users and smallest difference.
/// A line contains the name, unit, label and definition of a metric, and in braces the values of further fields.
pub const METRICS: &[Metric] = metrics! {
    "run" Neutral Nobody ANY {
        "measured" "s" "time measured" "Time from the end of the warm-up to the end of the run, on the run's clock."
        "events" "1" "events" "Number of events that the simulator executed, including the warm-up: arrivals of packets at the ends of links, starts of transmissions of packets that had waited in a queue, and timers."
        "packets" "1" "packets sent by hosts" "Packets that hosts sent into the network, including the warm-up."
    }
    "link" Higher Operator RATE {
        "throughput" "bit/s" "throughput" "Bits of the frames whose transmission on the link began, per second. In time series, bits of the frames that were transmitted, per second." { also_of: &["server"] }
    }
    "link" Higher Operator POINTS {
        "utilisation" "1" "utilisation" "Share of the time in which the link transmits, including its overhead per packet. If the link's rate changes, share of the link's capacity that is used. On a shared medium, share of the time in which the link's transmissions occupy the medium, including propagation. For several links together, the mean over the links." { percent: true, also_of: &["server"] }
    }
    "link" Higher Operator JAIN {
        "utilisation_jain" "1" "evenness of the links' utilisation (Jain's index)" "Jain's index over the utilisations of n links: 1 if all links have the same utilisation, 1/n if only one link is used."
    }
    "link" Neutral Operator COUNT {
        "arrivals" "1" "packets offered to the queue" "Packets that arrived at the link's queue, including those that the queue dropped."
        "arrival_rate" "bit/s" "rate offered to the queue" "Bits of the frames that arrived at the link's queue, including those that the queue dropped, per second."
        "departures" "1" "packets sent on the link" "Packets whose transmission on the link began."
    }
    "link" Lower Operator COUNT {
        "abandoned" "1" "packets given up by the transmitter" "Packets that the transmitter discarded because the shared medium was busy at every attempt." { rare: true }
        "drops" "1" "packets dropped" "Packets that the queue dropped, for any reason."
        "drops_early" "1" "packets dropped early" "Packets that the queue policy dropped by its probability or schedule, before a limit of the queue was reached." { rare: true }
        "drops_forced" "1" "packets dropped above the threshold" "Packets that the queue policy dropped because a threshold was reached, such as RED's `max`." { rare: true }
        "drops_overflow" "1" "packets dropped for lack of space" "Packets dropped because the queue was full."
    }
    "link" Neutral Operator COUNT {
        "drops_ack_filter" "1" "acknowledgements filtered" "TCP acknowledgements that the queue dropped because a later acknowledgement in the queue makes them redundant." { rare: true }
    }
    "link" Lower Operator COUNT {
        "drops_measurement" "1" "packets dropped by measurements" "Packets that the queue policy dropped in order to measure their waiting time. Only faulty policies do this." { rare: true }
        "marks" "1" "packets marked" "Packets in which the queue set Congestion Experienced." { rare: true }
    }
    "link" Lower Operator LOSS {
        "loss" "1" "loss" "Packets that the queue dropped, divided by the packets that the queue dropped or passed to the link." { percent: true }
        "tcp_loss" "1" "TCP loss" "TCP packets that the queue dropped, divided by the TCP packets that the queue dropped or passed to the link." { percent: true }
        "udp_loss" "1" "UDP loss" "UDP packets that the queue dropped, divided by the UDP packets that the queue dropped or passed to the link." { percent: true }
        "mark_share" "1" "share of packets marked" "Packets in which the queue set Congestion Experienced, divided by the packets that arrived at the queue." { percent: true }
    }
    "link" Lower Operator COUNT {
        "line_losses" "1" "packets lost on the line" "Packets that the link's impairments lost after the queue. Corrupted packets are not included, since the receiving host discards them."
    }
    "link" Neutral Operator COUNT {
        "duplicates" "1" "packets duplicated on the line" "Packets that the link's impairments duplicated after the queue."
    }
    "link" Lower Operator COUNT {
        "consecutive_loss_mean" "1" "mean number of packets lost in a row" "Mean number of packets dropped per loss event. A loss event begins when the queue drops a packet and ends when the queue accepts the next arriving packet."
        "consecutive_loss_sd" "1" "deviation of the number of packets lost in a row" "Standard deviation of the number of packets dropped per loss event."
        "consecutive_loss_max" "1" "greatest number of packets lost in a row" "Greatest number of packets dropped in one loss event."
        "consecutive_loss" "1" "packets lost in a row" "Number of packets dropped per loss event, as a distribution over loss events." { form: Form::Distribution }
        "loss_events" "1" "loss events" "Number of loss events that have ended: sequences of packets dropped in a row."
    }
    "link" Lower Operator QUEUEING {
        "sojourn" "s" "queueing delay" "Time from a packet's arrival at the queue to the start of its transmission (or its move to the transmit ring), as a distribution over the packets that left the queue." { form: Form::Distribution }
        "sojourn_mean" "s" "mean queueing delay" "Mean time from a packet's arrival at the queue to the start of its transmission (or its move to the transmit ring), over the packets that left the queue."
        "sojourn_sd" "s" "deviation of the queueing delay" "Standard deviation of the queueing delay."
        "sojourn_p50" "s" "median of the queueing delay" "Median of the queueing delay." { also_of: &["server"] }
        "sojourn_p95" "s" "95th percentile of the queueing delay" "95th percentile of the queueing delay."
        "sojourn_p99" "s" "99th percentile of the queueing delay" "99th percentile of the queueing delay." { also_of: &["server"] }
        "sojourn_p999" "s" "99.9th percentile of the queueing delay" "99.9th percentile of the queueing delay."
        "sojourn_max" "s" "greatest queueing delay" "Greatest queueing delay."
    }
    "link" Lower Operator COUNT {
        "queue_mean" "1" "mean queue length" "Mean number of packets in the queue over time, without the packet in transmission. For several links together, the mean of the sum over their queues."
        "queue_sd" "1" "deviation of the queue length" "Standard deviation over time of the number of packets in the queue."
        "queue_max" "1" "greatest queue length" "Greatest number of packets in the queue."
    }
    "link" Lower Operator BYTES {
        "backlog_mean" "B" "mean backlog" "Mean number of bytes in the queue over time."
        "backlog_sd" "B" "deviation of the backlog" "Standard deviation over time of the number of bytes in the queue."
        "backlog_max" "B" "greatest backlog" "Greatest number of bytes in the queue."
    }
    "medium" Neutral Operator POINTS {
        "occupancy" "1" "occupancy of the medium" "Share of the time in which transmissions and their propagation occupy the shared medium." { percent: true }
    }
    "medium" Neutral Operator COUNT {
        "attempts" "1" "attempts to send" "Number of times that a station sensed the shared medium in order to send a frame."
        "deferrals" "1" "attempts that found the medium busy" "Number of times that a station sensed the shared medium in order to send a frame and the medium was busy."
    }
    "flow" Neutral Nobody COUNT {
        "flows" "1" "flows" "Number of flows that were active at the end of the warm-up or began later. Transfers and Web objects are counted instead of their flows." { sum: true }
    }
    "flow" Higher Bulk RATE {
        "goodput" "bit/s" "goodput" "Payload that TCP brought to the receiving host, in order or not and without duplicates, per second. Data count when they arrive, so those that were on the wire when the warm-up ended count too. With the engine `kernel`, as delivered to the application." { rare: true, sum: true, also_of: &["run"] }
        "delivered" "bit/s" "delivered rate" "Payload that TCP delivered to the receiving application, in order and without duplicates, per second. Data that waited for a lost packet count when this packet has arrived." { sum: true, also_of: &["run"] }
        "udp_goodput" "bit/s" "UDP goodput" "Payload that UDP receivers received, without duplicates, per second." { rare: true, sum: true, also_of: &["run"] }
        "bytes" "B" "bytes delivered" "Application payload delivered, without duplicates. For TCP, payload delivered in order." { sum: true, also_of: &["run"] }
    }
    "flow" Higher Bulk JAIN {
        "jain" "1" "fairness (Jain's index)" "Jain's index of fairness over the goodputs of n flows: 1 if all goodputs are equal, 1/n if only one flow has goodput. For the run, only TCP flows count." { also_of: &["run"] }
    }
    "flow" Lower Interactive DELAY {
        "delay" "s" "one-way delay" "Time of a packet from the sending to the receiving host, as a distribution. For TCP, only packets with data count. For packet sources over TCP, time from the due time of a write to the in-order delivery of its last byte." { form: Form::Distribution }
        "delay_mean" "s" "mean one-way delay" "Mean time of a packet from the sending to the receiving host. For TCP, only packets with data count. For packet sources over TCP, mean time from the due time of a write to the in-order delivery of its last byte."
        "delay_sd" "s" "deviation of the one-way delay" "Standard deviation of the one-way delay."
        "delay_p50" "s" "median one-way delay" "Median of the one-way delay."
        "delay_p95" "s" "95th percentile of the one-way delay" "95th percentile of the one-way delay."
        "delay_p99" "s" "99th percentile of the one-way delay" "99th percentile of the one-way delay."
        "delay_p999" "s" "99.9th percentile of the one-way delay" "99.9th percentile of the one-way delay."
    }
    "flow" Lower Operator QUEUEING {
        "packet_delay" "s" "one-way delay of packets" "Time of a packet with data from the sending to the receiving host, as a distribution. It is measured for packet sources over TCP, where `delay` is the delay of writes." { form: Form::Distribution }
        "packet_delay_mean" "s" "mean one-way delay of packets" "Mean time of a packet with data from the sending to the receiving host. It differs from `delay_mean` for packet sources over TCP, where `delay_mean` is the mean delay of writes."
        "packet_delay_sd" "s" "deviation of the one-way delay of packets" "Standard deviation of the time of a packet with data from the sending to the receiving host."
        "packet_delay_p50" "s" "median one-way delay of packets" "Median of the time of a packet with data from the sending to the receiving host."
        "packet_delay_p95" "s" "95th percentile of the one-way delay of packets" "95th percentile of the time of a packet with data from the sending to the receiving host."
        "packet_delay_p99" "s" "99th percentile of the one-way delay of packets" "99th percentile of the time of a packet with data from the sending to the receiving host."
        "rtt" "s" "round-trip time" "Round-trip time samples of the TCP senders, as a distribution. Each sample is for the last segment that an acknowledgement covers, so it excludes the delay of a delayed acknowledgement." { form: Form::Distribution }
        "rtt_mean" "s" "mean round-trip time" "Mean of the TCP senders' round-trip time samples. Each sample is for the last segment that an acknowledgement covers, so it excludes the delay of a delayed acknowledgement."
        "rtt_p50" "s" "median round-trip time" "Median of the TCP senders' round-trip time samples."
        "rtt_p95" "s" "95th percentile of the round-trip time" "95th percentile of the TCP senders' round-trip time samples."
        "rtt_p99" "s" "99th percentile of the round-trip time" "99th percentile of the TCP senders' round-trip time samples."
        "srtt_mean" "s" "mean smoothed round-trip time" "Mean of the TCP senders' smoothed round-trip times at each acknowledgement. The samples are for the first segment that an acknowledgement covers, so they include the delay of a delayed acknowledgement, as in Linux's `ss` and TCP_INFO."
        "srtt_p50" "s" "median smoothed round-trip time" "Median of the TCP senders' smoothed round-trip times at each acknowledgement."
        "srtt_p95" "s" "95th percentile of the smoothed round-trip time" "95th percentile of the TCP senders' smoothed round-trip times at each acknowledgement."
    }
    "flow" Neutral Operator COUNT {
        "sent" "1" "packets sent" "Packets that the senders sent into the network. For TCP, packets without data, such as SYN, count too, but the receivers' acknowledgements do not." { sum: true, also_of: &["run"] }
        "received" "1" "packets received" "Packets of the senders that arrived at the receivers, including duplicates. For TCP, packets without data, such as SYN, count too, but the receivers' acknowledgements do not." { sum: true, also_of: &["run"] }
    }
    "flow" Lower Interactive LOSS {
        "packet_loss" "1" "packet loss" "Packets of the senders that queues dropped, links lost or receivers discarded as corrupted, divided by the packets sent. A duplicated packet counts if no copy arrived." { percent: true, also_of: &["run"] }
    }
    "flow" Lower Operator COUNT {
        "retransmissions" "1" "retransmitted segments" "TCP segments that were retransmitted." { rare: true, sum: true, also_of: &["run", "store"] }
        "timeouts" "1" "retransmission timeouts" "Expiries of TCP's retransmission timer." { sum: true, also_of: &["run", "store"] }
        "recoveries" "1" "loss recoveries" "Number of times that a TCP sender entered loss recovery without a timeout." { sum: true, also_of: &["run", "store"] }
    }
    "flow" Neutral Bulk COUNT {
        "writes" "1" "writes" "Writes into a TCP connection that packet sources attempted, including refused writes." { sum: true, also_of: &["run"] }
    }
    "flow" Lower Interactive COUNT {
        "refused" "1" "writes refused" "Writes of packet sources that were refused because TCP's send buffer was full." { sum: true, also_of: &["run"] }
    }
    "flow" Neutral Operator ANY {
        "cwnd" "B" "congestion window" "Congestion window of a TCP sender." { form: Form::Series }
        "cwnd_mean" "B" "mean congestion window" "Mean congestion window of a TCP sender over time, averaged over flows." { also_of: &["run"] }
    }
    "flow" Neutral Operator POINTS {
        "rwnd_limited" "1" "time held by the receive window" "Share of the time of the TCP connections that send the flow's data in which data waited for the receiver's window (Linux: `tcpi_rwnd_limited`)." { percent: true, also_of: &["run"] }
        "sndbuf_limited" "1" "time held by the send buffer" "Share of the time of the TCP connections that send the flow's data in which the sender had sent all data in its send buffer, and the application waited for space (Linux: `tcpi_sndbuf_limited`)." { percent: true, also_of: &["run"] }
    }
    "flow" Lower Operator QUEUEING {
        "srtt" "s" "smoothed round-trip time" "Smoothed round-trip time of a TCP sender." { form: Form::Series }
    }
    "flow" Neutral Operator COUNT {
        "active" "1" "active flows" "Number of flows, transfers or Web objects that have begun and not yet ended." { form: Form::Series }
        "active_mean" "1" "mean number of active flows" "Mean over time of the number of flows, transfers or Web objects that have begun and not yet ended." { also_of: &["run"] }
    }
    "flow" Higher Bulk COUNT {
        "finished" "1" "transfers finished" "Transfers and Web objects that were delivered completely. A flow of a packet source over TCP counts as one transfer if it ends." { sum: true, also_of: &["run"] }
    }
    "flow" Lower Bulk COUNT {
        "unfinished" "1" "transfers unfinished" "Transfers and Web objects that had begun and had not ended at the end of the run." { sum: true }
    }
    "flow" Higher Bulk ANY {
        "score" "1" "score of a program" "Number that a program of `command` prints, of which more is better." { apps: &["command"] }
    }
    "flow" Lower Bulk ANY {
        "cost" "1" "cost of a program" "Number that a program of `command` prints, of which less is better." { apps: &["command"] }
    }
    "flow" Lower Interactive COMPLETION {
        "fct" "s" "flow completion time" "Time from the start of a transfer to the delivery of its last byte, as a distribution over the finished transfers; of `command`, from the start to the end of a client that ends by itself." { form: Form::Distribution, apps: &["command", "transfer", "web"] }
        "fct_mean" "s" "mean flow completion time" "Mean time from the start of a transfer to the delivery of its last byte, over the finished transfers." { apps: &["command", "transfer", "web"] }
        "fct_p50" "s" "median flow completion time" "Median of the flow completion time of the finished transfers." { apps: &["command", "transfer", "web"] }
        "fct_p95" "s" "95th percentile of the flow completion time" "95th percentile of the flow completion time of the finished transfers." { apps: &["command", "transfer", "web"] }
        "fct_p99" "s" "99th percentile of the flow completion time" "99th percentile of the flow completion time of the finished transfers." { apps: &["command", "transfer", "web"] }
        "fct_mean_all" "s" "mean flow completion time of all transfers" "As `fct_mean`, but over all transfers: those that had not ended at the end of the run count with their age (product-limit estimate). If the longest had not ended, the value is a lower bound." { apps: &["command", "transfer", "web"] }
        "fct_p50_all" "s" "median flow completion time of all transfers" "As `fct_p50`, but over all transfers, as `fct_mean_all`." { apps: &["command", "transfer", "web"] }
        "fct_p95_all" "s" "95th percentile of the flow completion time of all transfers" "As `fct_p95`, but over all transfers, as `fct_mean_all`." { apps: &["command", "transfer", "web"] }
        "fct_p99_all" "s" "99th percentile of the flow completion time of all transfers" "As `fct_p99`, but over all transfers, as `fct_mean_all`." { apps: &["command", "transfer", "web"] }
    }
    "flow" Lower Interactive JITTER {
        "jitter" "s" "jitter" "Interarrival jitter of RFC 3550 at the end of the run, averaged over flows: the smoothed absolute difference of successive one-way delays." { apps: &["cbr", "packets", "voip"] }
    }
    "flow" Higher Interactive MOS {
        "mos" "1" "call quality (MOS)" "Mean opinion score of a call from 1 to 4.5, averaged over calls. It is computed from the delay, the jitter buffer and the loss (ITU-T G.107)." { apps: &["voip"] }
        "mos_min" "1" "quality of the worst call (MOS)" "Mean opinion score of the worst call." { apps: &["voip"] }
    }
    "flow" Lower Interactive PAGE {
        "page" "s" "page load time" "Time from the first request of a page to the end of its last object, as a distribution over pages." { form: Form::Distribution, apps: &["web"] }
        "page_mean" "s" "mean page load time" "Mean time from the first request of a page to the end of its last object." { apps: &["web"] }
        "page_p50" "s" "median page load time" "Median page load time." { apps: &["web"] }
        "page_p95" "s" "95th percentile of the page load time" "95th percentile of the page load time." { apps: &["web"] }
        "page_p99" "s" "99th percentile of the page load time" "99th percentile of the page load time." { apps: &["web"] }
        "page_mean_all" "s" "mean page load time of all pages" "As `page_mean`, but over all pages, as `fct_mean_all`." { apps: &["web"] }
        "page_p50_all" "s" "median page load time of all pages" "As `page_p50`, but over all pages, as `fct_mean_all`." { apps: &["web"] }
        "page_p95_all" "s" "95th percentile of the page load time of all pages" "As `page_p95`, but over all pages, as `fct_mean_all`." { apps: &["web"] }
        "page_p99_all" "s" "99th percentile of the page load time of all pages" "As `page_p99`, but over all pages, as `fct_mean_all`." { apps: &["web"] }
    }
    "flow" Higher Interactive COUNT {
        "pages" "1" "pages loaded" "Web pages loaded." { sum: true, apps: &["web"] }
        "objects" "1" "objects loaded" "Web objects loaded." { sum: true, apps: &["web"] }
    }
    "flow" Higher Interactive TRIPS {
        "responsiveness_08" "1/min" "responsiveness" "Responsiveness under working conditions in round trips per minute (draft-ietf-ippm-responsiveness-08): the mean of the responsiveness of foreign probes and of self probes." { apps: &["responsiveness"] }
        "responsiveness_08_foreign" "1/min" "responsiveness on new connections" "Round trips per minute of foreign probes, which use new connections: 60 s divided by the mean of three times: of the TCP handshake, of one round trip of the TLS handshake (not with `tls 0`), and of an HTTP request. Each time is a trimmed mean." { apps: &["responsiveness"] }
        "responsiveness_08_loaded" "1/min" "responsiveness on loaded connections" "Round trips per minute of self probes: 60 s divided by the trimmed mean of the time of an HTTP request on a connection that carries load." { apps: &["responsiveness"] }
        "responsiveness_08_idle" "1/min" "responsiveness without the test's load" "Round trips per minute of foreign probes before the test's load begins." { apps: &["responsiveness"] }
    }
    "flow" Neutral Nobody COUNT {
        "responsiveness_08_confidence" "1" "confidence in the responsiveness" "Confidence in the responsiveness: 3 (high) if the averages of goodput and of responsiveness were stable, 2 (medium) if only those of goodput were stable, 1 (low) if those of goodput were not stable or there were too few averages." { apps: &["responsiveness"] }
    }
    "flow" Lower Interactive DELAY {
        "probe_tcp" "s" "TCP handshake of foreign probes" "Trimmed mean of the time of the TCP handshake of foreign probes." { apps: &["responsiveness"] }
        "probe_tls" "s" "TLS round trip of foreign probes" "Trimmed mean of the time of one round trip of the TLS handshake of foreign probes." { apps: &["responsiveness"] }
        "probe_http" "s" "HTTP request of foreign probes" "Trimmed mean of the time from an HTTP request of a foreign probe to the answer." { apps: &["responsiveness"] }
        "probe_loaded" "s" "HTTP request on a loaded connection" "Trimmed mean of the time from an HTTP request on a connection that carries load to the answer." { apps: &["responsiveness"] }
        "probe_added" "s" "delay that load adds to a round trip" "Delay in the queues that the load fills: the time of a round trip under load (60 s divided by the responsiveness) minus the time of a foreign probe's round trip before the load began." { apps: &["responsiveness"] }
    }
    "flow" Neutral Nobody ANY {
        "start" "s" "start of the flow" "Time when the flow began." { form: Form::Row }
        "end" "s" "end of the flow" "Time when the flow ended; not a number if the flow did not end." { form: Form::Row }
    }
    "balancer" Neutral Operator COUNT {
        "choices" "1" "choices of a server" "Number of flows or connections for which the balancer chose a server."
    }
    "balancer" Lower Operator COUNT {
        "choices_refused" "1" "refused requests for a server" "Number of times that a flow or connection asked for a server and got none, because none was available or the policy chose none." { rare: true }
    }
    "balancer" Higher Operator JAIN {
        "choices_jain" "1" "evenness of the choices (Jain's index)" "Jain's index over the numbers of choices of n servers: 1 if all servers were chosen equally often, 1/n if only one server was chosen."
    }
    "balancer" Lower Operator POINTS {
        "choices_repeated" "1" "share of choices that repeat the previous one" "Share of choices with the same server as the previous choice: about 1/n for random choices among n servers, near 1 if successive flows all choose the same server." { percent: true }
        "choices_unreachable" "1" "share of choices with an unreachable server" "Share of choices whose server could not be reached when the flow began." { percent: true }
        "misplaced" "1" "share of flows that did not get the shortest queue" "Share of choices whose port had a wait that exceeded the shortest wait of all ports by more than the transmission time of a full frame, when the flow began." { percent: true }
    }
    "balancer" Lower Operator QUEUEING {
        "excess_wait_mean" "s" "mean wait in excess of the shortest" "Mean wait in the queue of the chosen port minus the shortest wait of all ports, when the flow began. The wait is the backlog divided by the rate."
        "age_mean" "s" "mean age of the readings of a server" "Mean age of the chosen server's readings, over the choices that used readings."
    }
    "balancer" Lower Interactive QUEUEING {
        "decision_mean" "s" "mean time of a decision" "Mean time from the arrival of a flow's first packet at the switch until the switch forwards the flow."
        "decision_p50" "s" "median time of a decision" "Median of the time from a flow's first packet at the switch until the switch forwards the flow."
        "decision_p99" "s" "99th percentile of the time of a decision" "99th percentile of the time from a flow's first packet at the switch until the switch forwards the flow."
    }
    "store" Neutral StoreClient COUNT {
        "requests" "1" "requests" "Requests to a store after the run's warm-up and the store's own warm-up. Only these requests are measured."
    }
    "store" Higher StoreClient REQUESTS {
        "acknowledged" "1" "number of requests acknowledged" "Requests that as many replicas have acknowledged as the consistency level requires."
    }
    "store" Lower StoreClient COUNT {
        "unavailable" "1" "number of requests refused" "Requests that were refused immediately because too few replicas were up."
        "errors" "1" "number of requests that failed" "Requests that failed because too many replicas failed or no node was up."
        "timed_out" "1" "number of requests that timed out" "Requests that were not answered in time or whose connection broke. Whether such a write took effect is unknown."
    }
    "store" Neutral StoreClient COUNT {
        "pending" "1" "number of requests pending" "Requests that had neither succeeded nor failed at the end of the run."
    }
    "store" Lower StoreClient LATENCY {
        "latency" "s" "latency" "Time from the scheduled start of a request to the arrival of its answer at the client, as a distribution over the acknowledged requests." { form: Form::Distribution }
        "latency_mean" "s" "mean latency" "Mean time from the scheduled start of a request to the arrival of its answer at the client, over the acknowledged requests."
        "latency_sd" "s" "deviation of the latency" "Standard deviation of the latency of acknowledged requests."
        "latency_p50" "s" "median latency" "Median latency of acknowledged requests."
        "latency_p95" "s" "95th percentile of the latency" "95th percentile of the latency of acknowledged requests."
        "latency_p99" "s" "99th percentile of the latency" "99th percentile of the latency of acknowledged requests."
        "latency_p999" "s" "99.9th percentile of the latency" "99.9th percentile of the latency of acknowledged requests."
        "latency_max" "s" "greatest latency" "Greatest latency of an acknowledged request."
    }
    "store" Neutral Operator ANY {
        "elapsed" "s" "time of all requests" "Time from the start of the first measured request to the end of the last one."
        "messages" "1" "messages" "Messages that the hosts of the store sent to each other, including the warm-up."
    }
    "store" Lower Operator COUNT {
        "messages_lost" "1" "messages lost" "Messages that were lost because their connection broke, including the warm-up."
    }
    "store" Neutral Operator COUNT {
        "speculations" "1" "speculative reads" "Requests that coordinators sent to further replicas because a read had too few answers after the time `speculative`, including the warm-up." { rare: true }
    }
    "store" Lower Operator COUNT {
        "mismatches" "1" "reads whose replicas differed" "Reads for which the replicas answered with different versions, including the warm-up." { rare: true }
    }
    "store" Neutral Operator COUNT {
        "read_repairs" "1" "read repairs" "Writes to stale replicas that were caused by reads, including the warm-up."
        "hints" "1" "hints" "Writes that a coordinator stored for a replica that was down or too slow, including the warm-up." { rare: true }
        "hints_handed" "1" "hints delivered" "Stored writes that were sent when the replica could be reached again, including the warm-up."
    }
    "store" Lower StoreClient COUNT {
        "unconverged" "1" "records that differ at the end" "Records whose newest version is missing on a replica at the end of the run." { rare: true }
    }
    "store" Lower StoreClient POINTS {
        "stale_0ms" "1" "probability of a stale read at once" "Probability that a read at the moment of a write's acknowledgement misses the write. Randomly drawn replicas answer the read, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
        "stale_10ms" "1" "probability of a stale read 10 ms later" "Probability that a read 10 ms after a write's acknowledgement misses the write. Randomly drawn replicas answer the read, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
        "stale_100ms" "1" "probability of a stale read 100 ms later" "Probability that a read 100 ms after a write's acknowledgement misses the write. Randomly drawn replicas answer the read, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
        "stale_1s" "1" "probability of a stale read 1 s later" "Probability that a read 1 s after a write's acknowledgement misses the write. Randomly drawn replicas answer the read, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
    }
    "store" Neutral Operator COUNT {
        "coordinated" "1" "requests coordinated" "Requests that a node coordinated, including the warm-up."
        "stored" "1" "writes stored" "Writes that a node stored as a replica, including the warm-up."
    }
    "server" Neutral Operator COUNT {
        "arrived" "1" "messages arrived" "Messages that arrived at a server, without repetitions of messages that the server had accepted."
    }
    "server" Lower Operator COUNT {
        "discarded" "1" "messages discarded" "Messages that a server discarded because its receive buffer was full."
        "repeated" "1" "messages sent again" "Messages that clients sent again because no acknowledgement came in time."
    }
    "server" Lower Operator LOSS {
        "exhaustion" "1" "share of messages discarded" "Messages that a server discarded because its receive buffer was full, divided by the messages that arrived at the server." { percent: true }
    }
    "server" Lower Operator BYTES {
        "peak_size" "B" "greatest size of the buffers" "Greatest total size of all receive buffers of a server, including the warm-up."
        "peak_occupied" "B" "greatest occupancy of the buffers" "Greatest total number of bytes in all receive buffers of a server, including the warm-up."
        "mean_size" "B" "mean size of the buffers" "Mean over time of the total size of all receive buffers of a server."
    }
    "server" Lower Operator ANY {
        "cpu_receive" "s" "CPU time of receiving" "CPU time of the receiving thread of a real server."
        "cpu_handle" "s" "CPU time of the handler" "CPU time of the handler of a real server."
        "cpu_per_gbit" "s" "CPU time per Gbit" "CPU time of a real server per Gbit of messages that the server processes."
    }
    "series" Neutral Nobody ANY {
        "time" "s" "time" "Time since the start of the run."
    }
    "series" Lower Operator COUNT {
        "queue" "1" "queue length" "Number of packets in the queue."
    }
    "series" Lower Operator BYTES {
        "backlog" "B" "backlog" "Number of bytes in the queue."
    }
    "series" Lower Operator QUEUEING {
        "last_sojourn" "s" "queueing delay" "Queueing delay of the last packet that left the queue."
    }
    "monitor" Neutral Nobody NONE {
        "back" "" "back" "Whether the row contains values of the packets from the flow's receiver to its sender; otherwise of the packets from the sender to the receiver."
    }
    "monitor" Neutral Nobody ANY {
        "received_bytes" "B" "bytes received" "Bytes of the frames that arrived at the receiving host."
    }
    "monitor" Lower Nobody COUNT {
        "dropped" "1" "packets dropped" "Packets of one direction of a flow that queues dropped for any reason."
        "measurement_drops" "1" "packets dropped by measurements" "Packets of one direction of a flow that queue policies dropped in order to measure their waiting time."
        "lost" "1" "packets lost on links" "Packets of one direction of a flow that links lost or the receiving host discarded as corrupted."
    }
    "monitor" Neutral Nobody ANY {
        "delay_sum" "s" "sum of one-way delays" "Sum of the one-way delays of the packets that arrived at the receiving host."
        "first_sent" "s" "time of the first packet" "Time when the first packet of one direction of a flow was sent."
        "last_received" "s" "time of the last packet" "Time when the last packet arrived at the receiving host; not a number before the first packet."
    }
    "text" Neutral Nobody NONE {
        "link" "" "link" "Name of the link."
        "group" "" "group" "Name of the group of flows."
        "flow" "1" "flow" "Number of the flow within its group."
        "from" "" "sender" "Name of the sending node."
        "to" "" "receiver" "Name of the receiving node."
        "place" "" "place" "Name of the link or group to which a distribution belongs, or of a store and a kind of request (`store.reads`)."
        "metric" "" "metric" "Name of the metric of a distribution."
        "low" "" "least value" "Least value of a bin, in the metric's unit."
        "high" "" "greatest value" "Greatest value of a bin, in the metric's unit."
        "count" "1" "count" "Number of values in a bin."
    }
};

/// Returns the metric of a column: the part of its name after the last dot. Columns of a policy's
/// internal state, `<link>.state.<name>`, have no metric.
pub fn of_column(column: &str) -> Option<&'static Metric> {
    let name = column.rsplit('.').next()?;
    METRICS.iter().find(|m| m.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_unique_and_each_definition_is_a_sentence() {
        for (i, metric) in METRICS.iter().enumerate() {
            assert!(METRICS[..i].iter().all(|m| m.name != metric.name), "{}", metric.name);
            assert!(metric.definition.ends_with('.'), "{}", metric.name);
            assert!(
                ["s", "bit/s", "B", "1/min", "1", ""].contains(&metric.unit),
                "{}",
                metric.name
            );
            assert!(!metric.label.is_empty() && !metric.label.ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn statistics_of_a_distribution_share_its_direction_and_those_who_notice() {
        for whole in METRICS.iter().filter(|m| m.form == Form::Distribution) {
            let parts = METRICS.iter().filter(|m| {
                m.name.rsplit_once('_').is_some_and(|(stem, _)| stem == whole.name)
                    && m.unit == whole.unit
            });
            for part in parts.filter(|m| m.of == whole.of) {
                assert_eq!((part.better, part.felt), (whole.better, whole.felt), "{}", part.name);
                assert_eq!(
                    (part.interest, part.apps),
                    (whole.interest, whole.apps),
                    "{}",
                    part.name
                );
            }
        }
    }

    #[test]
    fn every_quantity_has_a_smallest_difference_with_its_source() {
        for metric in METRICS {
            let Interest { share, absolute, source } = metric.interest;
            assert!(!source.is_empty(), "{}", metric.name);
            assert!((0.0..1.0).contains(&share) && absolute >= 0.0, "{}", metric.name);
            if metric.of != "text" && !metric.unit.is_empty() {
                assert!(share > 0.0 || absolute > 0.0, "{}", metric.name);
            }
            assert!(!metric.percent || metric.unit == "1", "{}", metric.name);
        }
    }

    #[test]
    fn columns_are_found_by_their_last_word() {
        assert_eq!(of_column("uplink.reverse.sojourn_p99").unwrap().unit, "s");
        assert_eq!(of_column("goodput").unwrap().unit, "bit/s");
        assert!(of_column("uplink.nonsense").is_none());
    }
}
