//! The registry of metrics: unit, direction, label, smallest difference of interest and definition
//! of each metric. Documentation, reports, comparisons and `explain` are generated from it.
//!
//! All metrics cover the time from the end of the warm-up to the run's end. Means include zeros. A
//! metric of the run without the name of a group or link belongs to the bottleneck, or is the sum
//! over all flows.

use serde::Serialize;

/// The direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither: the metric describes a run, but does not rate it.
    Neutral,
}

/// Users who notice a change of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Felt {
    /// A person who waits, talks or plays.
    Interactive,
    /// A person or program that moves much data.
    Bulk,
    /// The operator of the network, its links and its balancers.
    Operator,
    /// A client of a replicated store.
    StoreClient,
    /// None: the metric describes the run.
    Nobody,
}

/// Form in which a metric is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One number for a whole run, a link, a group or a flow.
    Number,
    /// A distribution; its mean and percentiles are separate metrics.
    Distribution,
    /// Values over time only.
    Series,
    /// A value for each row of a table, never for a whole run.
    Row,
}

/// Smallest difference of interest: smaller differences are irrelevant in practice, even if they
/// are statistically certain.
///
/// The larger of `share` of the reference value and `absolute` in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interest {
    /// Share of the reference value.
    pub share: f64,
    /// Least difference in the metric's unit.
    pub absolute: f64,
    /// Source of the two numbers.
    pub source: &'static str,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Name: a column's name without the group or link before the last point.
    pub name: &'static str,
    /// Subject: the `run`, a `link`, a shared `medium`, a `flow` (and groups of flows), a
    /// `balancer`, a `store`, a `server` with its receive buffers; `series` for metrics of time
    /// series only; `monitor` for the monitor's series of flows; `text` for a text or number that
    /// identifies a row.
    pub of: &'static str,
    /// Unit: `s`, `bit/s`, `B`, `1/min`, `1`; empty for texts.
    pub unit: &'static str,
    /// Direction in which the metric is better.
    pub better: Better,
    /// Users who notice a change of the metric.
    pub felt: Felt,
    /// Smallest difference of interest.
    pub interest: Interest,
    /// Name in sentences and on axes.
    pub label: &'static str,
    /// Definition in one sentence.
    pub definition: &'static str,
    /// Form in which the metric is recorded.
    pub form: Form,
    /// Whether it is a share of a whole, shown in percent.
    pub percent: bool,
    /// Whether tables omit it if it is zero.
    pub rare: bool,
    /// Whether a group's value is the sum over its flows.
    pub sum: bool,
    /// Further subjects: the `run`, for all flows together; a `store`, for its connections; a
    /// `server`, for its messages.
    pub also_of: &'static [&'static str],
    /// Applications whose flows have the metric; empty if all have it.
    pub apps: &'static [&'static str],
}

const fn interest(share: f64, absolute: f64, source: &'static str) -> Interest {
    Interest { share, absolute, source }
}

const OURS: &str = "our choice";
const ANY: Interest = interest(0.05, 0.0, OURS);
const NONE: Interest = interest(0.0, 0.0, "not a quantity");
const COUNT: Interest = interest(0.1, 1.0, OURS);
const BYTES: Interest = interest(0.1, 1514.0, "our choice; at least one full frame");
const RATE: Interest = interest(0.05, 0.0, OURS);
const POINTS: Interest = interest(0.0, 0.01, "our choice: one percentage point");
const JAIN: Interest = interest(0.0, 0.02, "our choice; two flows that share 60 to 40 have 0.96");
const LOSS: Interest = interest(
    0.1,
    0.001,
    "ITU-T G.107 and G.113: 0.1 % costs a G.711 call 0.05 of MOS; Mathis et al. 1997: 10 % of loss is 5 % of TCP's rate",
);
const QUEUEING: Interest =
    interest(0.05, 0.0001, "our choice; a full frame takes 0.12 ms at 100 Mbit/s");
const DELAY: Interest = interest(
    0.05,
    0.002,
    "our choice: an eighth of a picture at 60 pictures a second; calls have their quality",
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
    "Card, Moran and Newell 1983: 0.1 s is one cycle of perception; Seow 2008: 20 % is noticed, of which we take half",
);
const COMPLETION: Interest = interest(0.1, 0.01, "our choice; the share is that of pages");
const LATENCY: Interest = interest(0.05, 0.0001, OURS);
const TRIPS: Interest = interest(
    0.1,
    0.0,
    "our choice: of 3000 round trips a minute it is 2 ms a round trip, the smallest difference of a delay",
);
const REQUESTS: Interest =
    interest(0.01, 1.0, "our choice: the share that `compare` demands of a store");

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

/// All metrics, in blocks with the same subject, direction, users and smallest difference: `name
/// unit label definition { exceptions }`.
pub const METRICS: &[Metric] = metrics! {
    "run" Neutral Nobody ANY {
        "measured" "s" "time measured" "Simulated time from the end of the warm-up to the end of the run."
        "events" "1" "events" "Arrivals at far ends of links, transmissions of packets that had waited, and timers, warm-up included."
        "packets" "1" "packets sent by hosts" "Packets that hosts handed to the network, warm-up included."
    }
    "link" Higher Operator RATE {
        "throughput" "bit/s" "throughput" "Frame bits whose transmission on the link began, per second; in time series, bits transmitted." { also_of: &["server"] }
    }
    "link" Higher Operator POINTS {
        "utilisation" "1" "utilisation" "Share of the time that transmissions on the link take, its overhead included; where its rate changes, share of its capacity that they use; on a shared medium, share of the time that they occupy it, propagation included; the mean over several links." { percent: true, also_of: &["server"] }
    }
    "link" Higher Operator JAIN {
        "utilisation_jain" "1" "evenness of the links' utilisation (Jain's index)" "Jain's index over the utilisations of several links together: 1 if all are used alike for their rates, 1/n if only one is used."
    }
    "link" Neutral Operator COUNT {
        "arrivals" "1" "packets offered to the queue" "Packets offered to the link's queue."
        "arrival_rate" "bit/s" "rate offered to the queue" "Frame bits offered to the link's queue, per second."
        "departures" "1" "packets sent on the link" "Packets whose transmission on the link began."
    }
    "link" Lower Operator COUNT {
        "abandoned" "1" "packets given up by the transmitter" "Packets that the transmitter gave up because the shared medium was busy at every attempt." { rare: true }
        "drops" "1" "packets dropped" "Packets that the queue dropped, for any reason."
        "drops_early" "1" "packets dropped early" "Packets that the policy dropped by its probability or schedule, before a limit was reached." { rare: true }
        "drops_forced" "1" "packets dropped above the threshold" "Packets that the policy dropped because its upper threshold was reached." { rare: true }
        "drops_overflow" "1" "packets dropped for lack of room" "Packets dropped for lack of room in the queue."
    }
    "link" Neutral Operator COUNT {
        "drops_ack_filter" "1" "acknowledgements filtered" "TCP acknowledgements dropped because a later one in the queue makes them redundant." { rare: true }
    }
    "link" Lower Operator COUNT {
        "drops_measurement" "1" "packets dropped by measuring" "Packets that the policy dropped to learn how long they had waited; only faulty ones do." { rare: true }
        "marks" "1" "packets marked" "Packets on which the queue set Congestion Experienced." { rare: true }
    }
    "link" Lower Operator LOSS {
        "loss" "1" "loss" "Packets that the queue dropped, divided by those that it dropped or sent on." { percent: true }
        "tcp_loss" "1" "TCP loss" "TCP packets that the queue dropped, divided by those that it dropped or sent on." { percent: true }
        "udp_loss" "1" "UDP loss" "UDP packets that the queue dropped, divided by those that it dropped or sent on." { percent: true }
        "mark_share" "1" "share of packets marked" "Packets on which the queue set Congestion Experienced, divided by packets offered to it." { percent: true }
    }
    "link" Lower Operator COUNT {
        "line_losses" "1" "packets lost on the line" "Packets lost on the line, after the queue, by the link's impairments; corrupted ones are lost at their host."
    }
    "link" Neutral Operator COUNT {
        "duplicates" "1" "packets duplicated on the line" "Packets copied on the line by the link's impairments."
    }
    "link" Lower Operator COUNT {
        "consecutive_loss_mean" "1" "mean number of packets lost in a row" "Mean number of packets lost in a row; a loss event begins with the first packet dropped and ends when the next arriving packet is accepted."
        "consecutive_loss_sd" "1" "deviation of the number of packets lost in a row" "Standard deviation of the number of packets lost in a row."
        "consecutive_loss_max" "1" "greatest number of packets lost in a row" "Greatest number of packets lost in a row."
        "consecutive_loss" "1" "packets lost in a row" "Number of packets lost in a row, as a distribution over loss events." { form: Form::Distribution }
        "loss_events" "1" "loss events" "Number of loss events that ended."
    }
    "link" Lower Operator QUEUEING {
        "sojourn" "s" "queueing delay" "Time from a packet's arrival at the queue to the start of its transmission (or its way into the transmit ring), as a distribution over packets that left." { form: Form::Distribution }
        "sojourn_mean" "s" "mean queueing delay" "Mean time from a packet's arrival at the queue to the start of its transmission (or its way into the transmit ring): queueing delay, over packets that left."
        "sojourn_sd" "s" "deviation of the queueing delay" "Standard deviation of the queueing delay."
        "sojourn_p50" "s" "median of the queueing delay" "Median of the queueing delay." { also_of: &["server"] }
        "sojourn_p95" "s" "95th percentile of the queueing delay" "95th percentile of the queueing delay."
        "sojourn_p99" "s" "99th percentile of the queueing delay" "99th percentile of the queueing delay." { also_of: &["server"] }
        "sojourn_p999" "s" "99.9th percentile of the queueing delay" "99.9th percentile of the queueing delay."
        "sojourn_max" "s" "greatest queueing delay" "Greatest queueing delay."
    }
    "link" Lower Operator COUNT {
        "queue_mean" "1" "mean queue length" "Mean number of packets queued, over time, in several queues together; the packet in transmission is not queued."
        "queue_sd" "1" "deviation of the queue length" "Standard deviation over time of the number of packets queued."
        "queue_max" "1" "greatest queue length" "Greatest number of packets queued."
    }
    "link" Lower Operator BYTES {
        "backlog_mean" "B" "mean backlog" "Mean number of bytes queued, over time."
        "backlog_sd" "B" "deviation of the backlog" "Standard deviation over time of the number of bytes queued."
        "backlog_max" "B" "greatest backlog" "Greatest number of bytes queued."
    }
    "medium" Neutral Operator POINTS {
        "occupancy" "1" "occupancy of the medium" "Share of the time that the shared medium is occupied, by transmissions and their propagation." { percent: true }
    }
    "medium" Neutral Operator COUNT {
        "attempts" "1" "attempts to send" "Times that a station sensed the shared medium to send a frame."
        "deferrals" "1" "attempts that found the medium busy" "Attempts that found the shared medium busy."
    }
    "flow" Neutral Nobody COUNT {
        "flows" "1" "flows" "Number of flows; for Web traffic, of objects transferred." { sum: true }
    }
    "flow" Higher Bulk RATE {
        "goodput" "bit/s" "goodput" "TCP application payload delivered once and in order, per second." { rare: true, sum: true, also_of: &["run"] }
        "udp_goodput" "bit/s" "UDP goodput" "UDP application payload received, copies made on the way left out, per second." { rare: true, sum: true, also_of: &["run"] }
        "bytes" "B" "bytes delivered" "Application payload delivered once; for TCP in order." { sum: true, also_of: &["run"] }
    }
    "flow" Higher Bulk JAIN {
        "jain" "1" "fairness (Jain's index)" "Jain's index of fairness over the flows' goodputs: 1 if all are equal, 1/n if one has all." { also_of: &["run"] }
    }
    "flow" Lower Interactive DELAY {
        "delay" "s" "one-way delay" "Time of a packet from host to host, as a distribution; for TCP, of packets with data; for packet sources over TCP, of a write, from when the source emits it to the delivery of its last byte in order." { form: Form::Distribution }
        "delay_mean" "s" "mean one-way delay" "Mean time of a packet from host to host (one-way delay); for TCP, of packets with data; for packet sources over TCP, of their writes."
        "delay_sd" "s" "deviation of the one-way delay" "Standard deviation of the one-way delay."
        "delay_p50" "s" "median one-way delay" "Median of the one-way delay."
        "delay_p95" "s" "95th percentile of the one-way delay" "95th percentile of the one-way delay."
        "delay_p99" "s" "99th percentile of the one-way delay" "99th percentile of the one-way delay."
        "delay_p999" "s" "99.9th percentile of the one-way delay" "99.9th percentile of the one-way delay."
    }
    "flow" Lower Operator QUEUEING {
        "packet_delay" "s" "one-way delay of packets" "Time of a packet with data from host to host, as a distribution; given where `delay` is that of writes." { form: Form::Distribution }
        "packet_delay_mean" "s" "mean one-way delay of packets" "Mean time of a packet with data from host to host; differs from `delay_mean` where that is of writes."
        "packet_delay_sd" "s" "deviation of the one-way delay of packets" "Standard deviation of the time of a packet with data from host to host."
        "packet_delay_p50" "s" "median one-way delay of packets" "Median of the time of a packet with data from host to host."
        "packet_delay_p95" "s" "95th percentile of the one-way delay of packets" "95th percentile of the time of a packet with data from host to host."
        "packet_delay_p99" "s" "99th percentile of the one-way delay of packets" "99th percentile of the time of a packet with data from host to host."
        "rtt" "s" "round-trip time" "Round-trip time samples of the TCP senders, of the last segment that each acknowledgement is of, as a distribution." { form: Form::Distribution }
        "rtt_mean" "s" "mean round-trip time" "Mean of the TCP senders' round-trip time samples, of the last segment that each acknowledgement is of: without the wait for a delayed acknowledgement."
        "rtt_p50" "s" "median round-trip time" "Median of the TCP senders' round-trip time samples."
        "rtt_p95" "s" "95th percentile of the round-trip time" "95th percentile of the TCP senders' round-trip time samples."
        "rtt_p99" "s" "99th percentile of the round-trip time" "99th percentile of the TCP senders' round-trip time samples."
        "srtt_mean" "s" "mean smoothed round-trip time" "Mean of the TCP senders' smoothed round-trip times at each acknowledgement, of the first segment that it is of: with the wait for a delayed acknowledgement, as Linux's `ss` and TCP_INFO state it."
        "srtt_p50" "s" "median smoothed round-trip time" "Median of the TCP senders' smoothed round-trip times at each acknowledgement."
        "srtt_p95" "s" "95th percentile of the smoothed round-trip time" "95th percentile of the TCP senders' smoothed round-trip times at each acknowledgement."
    }
    "flow" Neutral Operator COUNT {
        "sent" "1" "packets sent" "Packets that the senders handed to the network; for TCP, packets with data." { sum: true, also_of: &["run"] }
        "received" "1" "packets received" "Packets of the senders that the receivers took, copies made on the way included; for TCP, packets with data." { sum: true, also_of: &["run"] }
    }
    "flow" Lower Interactive LOSS {
        "packet_loss" "1" "packet loss" "Packets dropped or lost anywhere on their way, divided by packets sent." { percent: true, also_of: &["run"] }
    }
    "flow" Lower Operator COUNT {
        "retransmissions" "1" "segments sent again" "TCP segments sent again." { rare: true, sum: true, also_of: &["run", "store"] }
        "timeouts" "1" "retransmission timeouts" "Expiries of TCP's retransmission timer." { sum: true, also_of: &["run", "store"] }
        "recoveries" "1" "loss recoveries" "Times that a TCP sender entered loss recovery without a timeout." { sum: true, also_of: &["run", "store"] }
    }
    "flow" Neutral Bulk COUNT {
        "writes" "1" "writes" "Writes into TCP that packet sources attempted." { sum: true, also_of: &["run"] }
    }
    "flow" Lower Interactive COUNT {
        "refused" "1" "writes refused" "Writes of packet sources that were refused because TCP's send buffer was full." { sum: true, also_of: &["run"] }
    }
    "flow" Neutral Operator ANY {
        "cwnd" "B" "congestion window" "Congestion window." { form: Form::Series }
        "cwnd_mean" "B" "mean congestion window" "Mean congestion window over time, averaged over flows." { also_of: &["run"] }
    }
    "flow" Lower Operator QUEUEING {
        "srtt" "s" "smoothed round-trip time" "Smoothed round-trip time of a TCP sender." { form: Form::Series }
    }
    "flow" Neutral Operator COUNT {
        "active" "1" "active flows" "Number of flows that have begun and not ended." { form: Form::Series }
        "active_mean" "1" "mean number of active flows" "Mean over time of the number of flows that have begun and not ended." { also_of: &["run"] }
    }
    "flow" Higher Bulk COUNT {
        "finished" "1" "transfers finished" "Transfers that ended, with flows of writes that were delivered completely." { sum: true, also_of: &["run"] }
    }
    "flow" Lower Bulk COUNT {
        "unfinished" "1" "transfers unfinished" "Transfers begun but not ended by the end of the run." { sum: true }
    }
    "flow" Lower Interactive COMPLETION {
        "fct" "s" "flow completion time" "Flow completion time, as a distribution: from a transfer's start to its last byte's delivery, finished transfers only." { form: Form::Distribution, apps: &["transfer", "web"] }
        "fct_mean" "s" "mean flow completion time" "Mean flow completion time, finished transfers only." { apps: &["transfer", "web"] }
        "fct_p50" "s" "median flow completion time" "Median flow completion time, finished transfers only." { apps: &["transfer", "web"] }
        "fct_p95" "s" "95th percentile of the flow completion time" "95th percentile of the flow completion time, finished transfers only." { apps: &["transfer", "web"] }
        "fct_p99" "s" "99th percentile of the flow completion time" "99th percentile of the flow completion time, finished transfers only." { apps: &["transfer", "web"] }
    }
    "flow" Lower Interactive JITTER {
        "jitter" "s" "jitter" "Interarrival jitter of RFC 3550: smoothed absolute difference of successive one-way delays, at the end, averaged over flows." { apps: &["cbr", "packets", "voip"] }
    }
    "flow" Higher Interactive MOS {
        "mos" "1" "call quality (MOS)" "Mean opinion score of a call, 1 to 4.5, from delay, jitter buffer and loss (ITU-T G.107), averaged over flows." { apps: &["voip"] }
        "mos_min" "1" "quality of the worst call (MOS)" "Mean opinion score of the worst call." { apps: &["voip"] }
    }
    "flow" Lower Interactive PAGE {
        "page" "s" "page load time" "Page load time, as a distribution: from a page's first request to its last object's end." { form: Form::Distribution, apps: &["web"] }
        "page_mean" "s" "mean page load time" "Mean page load time." { apps: &["web"] }
        "page_p50" "s" "median page load time" "Median page load time." { apps: &["web"] }
        "page_p95" "s" "95th percentile of the page load time" "95th percentile of the page load time." { apps: &["web"] }
        "page_p99" "s" "99th percentile of the page load time" "99th percentile of the page load time." { apps: &["web"] }
    }
    "flow" Higher Interactive COUNT {
        "pages" "1" "pages loaded" "Web pages loaded." { sum: true, apps: &["web"] }
        "objects" "1" "objects loaded" "Web objects loaded." { sum: true, apps: &["web"] }
    }
    "flow" Higher Interactive TRIPS {
        "responsiveness_08" "1/min" "responsiveness" "Responsiveness under working conditions in round trips per minute, after draft-ietf-ippm-responsiveness-08: the mean of those of foreign and of self probes." { apps: &["responsiveness"] }
        "responsiveness_08_foreign" "1/min" "responsiveness on new connections" "Round trips per minute of foreign probes: 60 s over the mean of TCP's handshake, a round trip of TLS's, and an HTTP request, each a trimmed mean." { apps: &["responsiveness"] }
        "responsiveness_08_loaded" "1/min" "responsiveness on loaded connections" "Round trips per minute of self probes: 60 s over the trimmed mean of an HTTP request on a connection that carries load." { apps: &["responsiveness"] }
        "responsiveness_08_idle" "1/min" "responsiveness without the test's load" "Round trips per minute of foreign probes before the test's load begins." { apps: &["responsiveness"] }
    }
    "flow" Neutral Nobody COUNT {
        "responsiveness_08_confidence" "1" "confidence in the responsiveness" "Confidence in the responsiveness: 3 is high, the averages were stable; 2 is medium, they were not; 1 is low, there were too few." { apps: &["responsiveness"] }
    }
    "flow" Lower Interactive DELAY {
        "probe_tcp" "s" "TCP handshake of foreign probes" "Trimmed mean of the time of TCP's handshake of foreign probes." { apps: &["responsiveness"] }
        "probe_tls" "s" "TLS round trip of foreign probes" "Trimmed mean of the time of a round trip of the TLS handshake of foreign probes." { apps: &["responsiveness"] }
        "probe_http" "s" "HTTP request of foreign probes" "Trimmed mean of the time of an HTTP request and its answer of foreign probes." { apps: &["responsiveness"] }
        "probe_loaded" "s" "HTTP request on a loaded connection" "Trimmed mean of the time of an HTTP request and its answer on a connection that carries load." { apps: &["responsiveness"] }
        "probe_added" "s" "delay that load adds to a round trip" "Time of a round trip by the responsiveness (60 s over it), less that of a foreign probe before the load began: the delay in queues that the load fills." { apps: &["responsiveness"] }
    }
    "flow" Neutral Nobody ANY {
        "start" "s" "start of the flow" "When the flow began." { form: Form::Row }
        "end" "s" "end of the flow" "When the flow ended; not a number if it did not." { form: Form::Row }
    }
    "balancer" Neutral Operator COUNT {
        "choices" "1" "choices of a server" "Flows or connections for which the balancer chose a server."
    }
    "balancer" Lower Operator COUNT {
        "choices_refused" "1" "flows that got no server" "Flows for which the balancer found no server." { rare: true }
    }
    "balancer" Higher Operator JAIN {
        "choices_jain" "1" "evenness of the choices (Jain's index)" "Jain's index over the servers' numbers of choices: 1 if all were chosen equally often."
    }
    "balancer" Lower Operator POINTS {
        "choices_repeated" "1" "share of choices that repeat the previous one" "Share of choices that fell on the same server as the previous choice: 1/n if n servers are drawn, near 1 where flows herd." { percent: true }
        "choices_unreachable" "1" "share of choices that could not be reached" "Share of choices whose server could not be reached when the flow began." { percent: true }
        "misplaced" "1" "share of flows that did not get the shortest queue" "Share of choices whose port, when the flow began, held a wait longer than the shortest of all ports by more than a full frame." { percent: true }
    }
    "balancer" Lower Operator QUEUEING {
        "excess_wait_mean" "s" "mean wait beyond the shortest queue's" "Mean wait in the chosen port's queue above that in the shortest, when the flow began; waits are backlog over rate."
        "age_mean" "s" "mean age of the readings of a server" "Mean age of the readings of a server when it was chosen, over choices that used readings."
    }
    "balancer" Lower Interactive QUEUEING {
        "decision_mean" "s" "mean time of a decision" "Mean time from a flow's first packet at the switch until the flow could go on."
        "decision_p50" "s" "median time of a decision" "Median of the time that decisions took."
        "decision_p99" "s" "99th percentile of the time of a decision" "99th percentile of the time that decisions took."
    }
    "store" Neutral StoreClient COUNT {
        "requests" "1" "requests" "Requests to a store that are measured: those after its warm-up."
    }
    "store" Higher StoreClient REQUESTS {
        "acknowledged" "1" "number of requests acknowledged" "Requests answered by as many replicas as the consistency level requires."
    }
    "store" Lower StoreClient COUNT {
        "unavailable" "1" "number of requests refused" "Requests refused at once because too few replicas were up."
        "errors" "1" "number of requests that failed" "Requests that failed otherwise: too many replicas failed, or no node was up."
        "timed_out" "1" "number of requests that timed out" "Requests that were not answered in time: whether they took effect is unknown."
    }
    "store" Neutral StoreClient COUNT {
        "pending" "1" "number of requests pending" "Requests without an outcome at the end of the run."
    }
    "store" Lower StoreClient LATENCY {
        "latency" "s" "latency" "Latency of acknowledged requests, as a distribution: from the time when a request was to be made until its client has the answer." { form: Form::Distribution }
        "latency_mean" "s" "mean latency" "Mean latency of acknowledged requests."
        "latency_sd" "s" "deviation of the latency" "Standard deviation of the latency of acknowledged requests."
        "latency_p50" "s" "median latency" "Median latency of acknowledged requests."
        "latency_p95" "s" "95th percentile of the latency" "95th percentile of the latency of acknowledged requests."
        "latency_p99" "s" "99th percentile of the latency" "99th percentile of the latency of acknowledged requests."
        "latency_p999" "s" "99.9th percentile of the latency" "99.9th percentile of the latency of acknowledged requests."
        "latency_max" "s" "greatest latency" "Greatest latency of an acknowledged request."
    }
    "store" Neutral Operator ANY {
        "elapsed" "s" "time of all requests" "Time from the first request measured to the last one's end."
        "messages" "1" "messages" "Messages that the store's hosts sent to each other."
    }
    "store" Lower Operator COUNT {
        "messages_lost" "1" "messages lost" "Messages lost with their connections."
    }
    "store" Neutral Operator COUNT {
        "speculations" "1" "speculative reads" "Reads for which another replica was asked before the first had answered." { rare: true }
    }
    "store" Lower Operator COUNT {
        "mismatches" "1" "reads whose replicas differed" "Reads whose replicas differed." { rare: true }
    }
    "store" Neutral Operator COUNT {
        "read_repairs" "1" "read repairs" "Writes that reads made to stale replicas."
        "hints" "1" "hints" "Writes kept for replicas that were down or slow." { rare: true }
        "hints_handed" "1" "hints handed over" "Writes kept and handed over when the replica was back."
    }
    "store" Lower StoreClient COUNT {
        "unconverged" "1" "records that differ at the end" "Records whose newest version is missing on a replica at the end." { rare: true }
    }
    "store" Lower StoreClient POINTS {
        "stale_0ms" "1" "probability of a stale read at once" "Probability that a read at the moment of a write's acknowledgement misses it: replicas drawn at random, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
        "stale_10ms" "1" "probability of a stale read 10 ms later" "Probability that a read 10 ms after a write's acknowledgement misses it: replicas drawn at random, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
        "stale_100ms" "1" "probability of a stale read 100 ms later" "Probability that a read 100 ms after a write's acknowledgement misses it: replicas drawn at random, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
        "stale_1s" "1" "probability of a stale read 1 s later" "Probability that a read 1 s after a write's acknowledgement misses it: replicas drawn at random, as many as the read level requires (t-visibility, Bailis et al., VLDB 2012)." { percent: true, rare: true }
    }
    "store" Neutral Operator COUNT {
        "coordinated" "1" "requests coordinated" "Requests that a node coordinated, those before the warm-up's end too."
        "stored" "1" "writes stored" "Writes that a node took as a replica, those before the warm-up's end too."
    }
    "server" Neutral Operator COUNT {
        "arrived" "1" "messages arrived" "Messages that reached a server, repeated ones included."
    }
    "server" Lower Operator COUNT {
        "discarded" "1" "messages discarded" "Messages that found no room in the server's receive buffer."
        "repeated" "1" "messages sent again" "Messages that clients sent again because no acknowledgement came in time."
    }
    "server" Lower Operator LOSS {
        "exhaustion" "1" "share of messages discarded" "Messages that the server's receive buffer discarded, divided by those that arrived." { percent: true }
    }
    "server" Lower Operator BYTES {
        "peak_size" "B" "greatest size of the buffers" "Greatest sum of the sizes of a server's receive buffers."
        "peak_occupied" "B" "greatest occupancy of the buffers" "Greatest sum of the bytes in a server's receive buffers."
        "mean_size" "B" "mean size of the buffers" "Mean sum of the sizes of a server's receive buffers, over time."
    }
    "server" Lower Operator ANY {
        "cpu_receive" "s" "CPU time of receiving" "CPU time of the thread of a real server that receives."
        "cpu_handle" "s" "CPU time of the handler" "CPU time of a real server's handler."
        "cpu_per_gbit" "s" "CPU time per Gbit" "CPU time of a real server for each Gbit of messages that it processes."
    }
    "series" Neutral Nobody ANY {
        "time" "s" "time" "Simulated time since the start of the run."
    }
    "series" Lower Operator COUNT {
        "queue" "1" "queue length" "Packets queued."
    }
    "series" Lower Operator BYTES {
        "backlog" "B" "backlog" "Bytes queued."
    }
    "series" Lower Operator QUEUEING {
        "last_sojourn" "s" "queueing delay" "Queueing delay of the packet that left last."
    }
    "monitor" Neutral Nobody NONE {
        "back" "" "back" "Whether the row is about the packets that answer a flow's."
    }
    "monitor" Neutral Nobody ANY {
        "received_bytes" "B" "bytes received" "Frame bytes of the packets that the receiving host took."
    }
    "monitor" Lower Nobody COUNT {
        "dropped" "1" "packets dropped" "Packets of one direction of a flow that queues dropped, for any reason."
        "measurement_drops" "1" "packets dropped by measuring" "Packets of one direction of a flow that queues dropped by measuring."
        "lost" "1" "packets lost on lines" "Packets of one direction of a flow that were lost on lines."
    }
    "monitor" Neutral Nobody ANY {
        "delay_sum" "s" "sum of one-way delays" "Sum of the one-way delays of the packets that the receiving host took."
        "first_sent" "s" "time of the first packet" "When the first packet of one direction of a flow was sent."
        "last_received" "s" "time of the last packet" "When the last packet was taken by the receiving host; not a number before the first."
    }
    "text" Neutral Nobody NONE {
        "link" "" "link" "Name of the link."
        "group" "" "group" "Name of the group of flows."
        "flow" "1" "flow" "Number of the flow within its group."
        "from" "" "sender" "Name of the sending node."
        "to" "" "receiver" "Name of the receiving node."
        "place" "" "place" "Link or group of a distribution."
        "metric" "" "metric" "Metric of a distribution."
        "low" "" "least value" "Least value of a bin, in the metric's unit."
        "high" "" "greatest value" "Greatest value of a bin, in the metric's unit."
        "count" "1" "count" "Number of values in a bin."
    }
};

/// Returns the metric of a column: the part of its name after the last point. Columns of a policy's
/// internal state, `<link>.state.<name>`, have no metric: the kernel's code defines them.
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
