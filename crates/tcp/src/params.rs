//! What the user sets of a TCP.
//!
//! The defaults are those of the profile `linux-6`, a present-day Linux host; each has its origin
//! beside it.

use crate::segment::Flags;
use serde::{Deserialize, Serialize};
use sojourn_congestion::{cubic, hystart};
use sojourn_units::declare::{Param, choice, derived, integer, on_off, size, time};
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Kind, Value};
use sojourn_units::{Bytes, Nanos, choices, params};

choices! {
    /// How losses are found and repaired.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Recovery {
        /// Duplicate ACKs and partial ACKs (RFC 6582); SACK blocks are ignored.
        NewReno = "newreno",
        /// The scoreboard and pipe of RFC 6675; cwnd falls to ssthresh at once.
        Rfc6675 = "rfc6675",
        /// The same scoreboard; cwnd falls by proportional rate reduction (RFC 6937).
        Prr = "prr",
    }
}

choices! {
    /// How the retransmission timeout follows from the round-trip times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RtoRule {
        /// SRTT + 4 RTTVAR, and not below the minimum (RFC 6298).
        Rfc6298 = "rfc6298",
        /// SRTT plus a variance that itself is not below the minimum (Linux).
        Linux = "linux",
    }
}

choices! {
    /// Explicit congestion notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Ecn {
        /// Not asked for, not accepted.
        Off = "off",
        /// RFC 3168: the receiver echoes until the sender has answered.
        Classic = "classic",
        /// RFC 8257: the receiver echoes each mark, and each change at once; all packets are ECT(0).
        Accurate = "accurate",
        /// The same echo; data asks for L4S by ECT(1) (RFC 9331), bare acknowledgements are not
        /// ECN-capable.
        L4s = "l4s",
    }
}

impl Ecn {
    /// Whether the receiver echoes each mark.
    #[inline]
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Accurate | Self::L4s)
    }

    /// What the IP header of data says.
    #[inline]
    pub fn codepoint(self) -> Flags {
        match self {
            Self::Off => Flags::NONE,
            Self::Classic | Self::Accurate => Flags::ECT0,
            Self::L4s => Flags::ECT1,
        }
    }
}

choices! {
    /// Whether segments are spread over the round-trip time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Pacing {
        /// If the congestion control asks for it.
        Auto = "auto",
        /// Never.
        Off = "off",
        /// Always: twice cwnd/srtt in slow start, 1.2 times after.
        On = "on",
    }
}

choices! {
    /// What becomes of cwnd after silence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum IdleRestart {
        /// Nothing.
        Off = "off",
        /// Back to the initial window after one RTO (RFC 5681, section 4.1).
        Rfc5681 = "rfc5681",
        /// Halved for each RTO of silence, down to the initial window (RFC 2861, Linux).
        Decay = "decay",
    }
}

params! {
    /// What the user sets.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params {
        /// The congestion control.
        congestion: sojourn_congestion::Params = derived(|()| linux_cubic()),
        /// How slow start ends without a loss, and how fast it may grow. Its words stand beside
        /// those of loss recovery.
        slow_start: hystart::Params = derived(|()| hystart::Params {
            kind: hystart::Kind::Classic, // tcp_cubic: hystart 1, hystart_detect 3
            ..hystart::Params::default()  // tcp_slow_start adds all that was acknowledged
        }),
        /// Payload of a full segment without options.
        mss: u32 = segment(), // Ethernet's 1500 without IP and TCP headers
        /// Initial congestion window in segments.
        initial_window as "iw": u32 = integer(1, 65_535, "10"), // TCP_INIT_CWND, RFC 6928
        /// Selective acknowledgements (RFC 2018).
        sack: bool = on_off("on"), // net.ipv4.tcp_sack = 1
        /// Duplicates are reported (RFC 2883).
        dsack: bool = on_off("on"), // net.ipv4.tcp_dsack = 1
        /// Timestamps (RFC 7323).
        timestamps: bool = on_off("on"), // net.ipv4.tcp_timestamps = 1
        /// Receive windows above 65535 bytes (RFC 7323).
        window_scaling: bool = on_off("on"), // net.ipv4.tcp_window_scaling = 1
        /// Explicit congestion notification: RFC 3168, RFC 8257's exact echo, or that with ECT(1)
        /// on data.
        ecn: Ecn = choice("off"), // net.ipv4.tcp_ecn = 2: accepted, never asked for
        /// How losses are repaired: RFC 6582, RFC 6675, or RFC 6675 with RFC 6937.
        recovery: Recovery = choice("prr"), // tcp_cwnd_reduction
        /// Loss by time and tail loss probes (RFC 8985); needs SACK.
        rack: bool = on_off("on"), // net.ipv4.tcp_recovery = 1, tcp_early_retrans = 3
        /// Detection of spurious timeouts (RFC 5682).
        frto: bool = on_off("on"), // net.ipv4.tcp_frto = 2
        /// Take back a reduction that timestamps or D-SACK prove a mistake.
        undo: bool = on_off("on"), // tcp_try_undo_recovery
        /// New segments on the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool = on_off("on"), // SACKed segments leave the flight at once
        /// How the retransmission timeout is computed.
        rto_rule as "rto": RtoRule = choice("linux"), // tcp_rtt_estimator
        /// Least retransmission timeout.
        min_rto: Nanos = time("200ms"), // TCP_RTO_MIN
        /// Retransmission timeout before the first sample.
        initial_rto: Nanos = time("1s"), // TCP_TIMEOUT_INIT, RFC 6298
        /// Greatest retransmission timeout.
        max_rto: Nanos = time("120s"), // TCP_RTO_MAX
        /// How often a SYN is sent again.
        syn_retries: u32 = integer(0, 255, "6"), // net.ipv4.tcp_syn_retries
        /// How often data is sent again without an answer.
        retries: u32 = integer(0, 255, "15"), // net.ipv4.tcp_retries2
        /// Full segments for which one ACK is sent.
        delayed_ack as "delack": u32 = integer(1, 64, "2"), // more than one full segment: ACK at once
        /// How long an ACK may be delayed; 0 for not at all.
        delayed_ack_timeout as "delack_timeout": Nanos = time("40ms"), // TCP_DELACK_MIN, TCP_ATO_MIN
        /// The first ACKs, and those after silence or disorder, are not delayed.
        quick_ack: bool = on_off("on"), // TCP_MAX_QUICKACKS 16
        /// Small segments wait for the acknowledgement of others (RFC 896).
        nagle: bool = on_off("off"), // on in the kernel, off in most bulk and interactive programs
        /// Whether segments are spread over the round-trip time.
        pacing: Pacing = choice("auto"), // only BBR paces without the fq queue discipline
        /// Segments leave in super-packets of about a millisecond at the present rate, two at
        /// least; the sender waits up to a millisecond to fill one.
        tso: bool = on_off("on"), // tcp_tso_autosize, tcp_tso_should_defer
        /// What becomes of cwnd after silence.
        idle_restart: IdleRestart = choice("decay"), // net.ipv4.tcp_slow_start_after_idle = 1
        /// Greatest receive window.
        receive_window as "rwnd": Bytes = size("3mb"), // half of net.ipv4.tcp_rmem[2], 6 MB
        /// The receive window starts at 64 kB and follows the rate.
        autotune: bool = on_off("on"), // net.ipv4.tcp_moderate_rcvbuf = 1
        /// Greatest amount of data written and not yet acknowledged.
        send_buffer as "sndbuf": Bytes = size("4mb"), // net.ipv4.tcp_wmem[2]
        /// A packet source whose write finds no room in the send buffer waits and catches up; off:
        /// the write is refused.
        blocking: bool = on_off("off"),
        /// How long the closing side stays in TIME-WAIT.
        time_wait: Nanos = time("60s"), // TCP_TIMEWAIT_LEN
    }
}

/// net.ipv4.tcp_congestion_control = cubic, with `tcp_cubic`'s constants: beta 717/1024, `C` 410/1024
/// (`bic_scale` 41), `fast_convergence` 1, `tcp_friendliness` 1.
fn linux_cubic() -> sojourn_congestion::Params {
    let variant = cubic::Variant::Linux;
    sojourn_congestion::Params::Cubic(cubic::Params { variant, ..cubic::Params::default() })
}

/// The payload of a full segment; what does not fit the field is far out of range.
const fn segment() -> Param<u32> {
    Param::word(
        Kind::Size,
        "1460b",
        |value| Ok(u32::try_from(value.integer()).unwrap_or(u32::MAX)),
        |mss| Some(Value::Text(format_size(u64::from(*mss)))),
    )
}
