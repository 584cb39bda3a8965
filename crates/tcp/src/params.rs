//! The user's settings of a TCP.
//!
//! The defaults are those of the profile `linux-7.3`, a present-day Linux host. The comment at each
//! default states its source.

use crate::accecn;
use crate::segment::Flags;
use sojourn_congestion::{EcnUse, cubic, hystart};
use sojourn_units::declare::{Param, choice, derived, integer, on_off, size, time};
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Kind, Value};
use sojourn_units::{Bytes, Nanos, choices, params};

choices! {
    /// How losses are found and repaired.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Recovery {
        /// Duplicate ACKs and partial ACKs (RFC 6582); SACK blocks are ignored.
        NewReno = "newreno",
        /// The scoreboard and pipe of RFC 6675; cwnd falls to ssthresh at once.
        Rfc6675 = "rfc6675",
        /// The scoreboard of RFC 6675; cwnd falls by proportional rate reduction (RFC 6937).
        Prr = "prr",
    }
}

choices! {
    /// How the retransmission timeout is computed from round-trip times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum RtoRule {
        /// SRTT + 4 RTTVAR, the sum at least the minimum (RFC 6298).
        Rfc6298 = "rfc6298",
        /// SRTT plus a deviation that is at least the minimum (Linux).
        Linux = "linux",
    }
}

choices! {
    /// Which data is acknowledged at once.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum AckRule {
        /// Every `delack` full segments, and all data beyond a hole or filling one. With
        /// `quick_ack`, up to sixteen segments after data beyond a hole too.
        #[default]
        Quick = "quick",
        /// Every `delack` full segments, and all data beyond a hole or filling one (RFC 5681).
        Rfc5681 = "rfc5681",
        /// More than `delack` - 1 full segments, and data that fills the last hole. Of the segments
        /// beyond a hole the first three; the others are acknowledged together, after a third of
        /// the round-trip time but at most a millisecond (Linux's compression of SACKs). The first
        /// marked segment and the next one; with an exact echo, each change of marks.
        Linux = "linux",
    }
}

choices! {
    /// The unit of socket buffers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Memory {
        /// Bytes of payload.
        #[default]
        Payload = "payload",
        /// Bytes of memory that packets occupy (Linux's truesize). A writer that found the send
        /// buffer full writes again when a third of it is free. The receive window starts at half
        /// of the buffer (of 128 KiB with `autotune`) and grows by two segments with each full
        /// segment that arrives, as far as the buffer allows.
        Truesize = "truesize",
    }
}

choices! {
    /// Explicit congestion notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Ecn {
        /// ECN is neither requested nor accepted.
        Off = "off",
        /// RFC 3168: the receiver echoes a mark until the sender responds with CWR.
        Classic = "classic",
        /// RFC 8257: the receiver echoes each mark, and acknowledges each change of marks at once;
        /// all packets are ECT(0).
        Accurate = "accurate",
        /// The echo of RFC 8257; data asks for L4S by ECT(1) (RFC 9331), bare acknowledgements are
        /// not ECN-capable.
        L4s = "l4s",
        /// RFC 9768 (AccECN): the receiver counts marked packets and bytes. All packets are ECT(0),
        /// or ECT(1) if the control asks for L4S. With a peer that has only RFC 3168's ECN, that is
        /// used.
        Accecn = "accecn",
    }
}

impl Ecn {
    /// Returns whether the receiver echoes each mark.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Accurate | Self::L4s | Self::Accecn)
    }

    /// Returns the ECN field of data, for a control that asks for `wish`.
    #[inline]
    pub fn codepoint(self, wish: EcnUse) -> Flags {
        match self {
            Self::Off => Flags::NONE,
            Self::Accecn if wish == EcnUse::L4s => Flags::ECT1,
            Self::Classic | Self::Accurate | Self::Accecn => Flags::ECT0,
            Self::L4s => Flags::ECT1,
        }
    }

    /// Returns whether bare acknowledgements carry the ECN codepoint of data: with RFC 3168 and L4S
    /// they are not ECN-capable; with DCTCP and AccECN all packets carry the same codepoint.
    pub(crate) fn marks_acks(self) -> bool {
        matches!(self, Self::Accurate | Self::Accecn)
    }

    /// Returns whether SYNs carry the ECN codepoint of data, for a control that asks for `wish`
    /// (RFC 8257, section 3.5: a queue that marks would drop them otherwise).
    pub(crate) fn marks_syns(self, wish: EcnUse) -> bool {
        self.is_exact() && (self != Self::Accecn || wish != EcnUse::Host)
    }

    /// Returns the flags of a SYN that asks for this kind of ECN.
    pub(crate) fn request(self) -> Flags {
        match self {
            Self::Off => Flags::NONE,
            Self::Classic | Self::Accurate | Self::L4s => Flags::ECE | Flags::CWR,
            Self::Accecn => Flags::ECE | Flags::CWR | Flags::AE,
        }
    }

    /// Returns the kind of ECN agreed on after a peer's SYN with `flags` (RFC 9768, section 3.1.1).
    pub(crate) fn on_syn(self, flags: Flags) -> Self {
        let classic = flags.has(Flags::ECE | Flags::CWR);
        match self {
            Self::Accecn => match accecn::field(flags) {
                0b000 => Self::Off,
                0b011 => Self::Classic,
                _ => self,
            },
            _ if classic => self,
            _ => Self::Off,
        }
    }

    /// Returns the kind of ECN agreed on after a peer's SYN-ACK with `flags` (RFC 9768, table 2).
    pub(crate) fn on_syn_ack(self, flags: Flags) -> Self {
        match self {
            Self::Accecn => match accecn::field(flags) {
                0b000 | 0b111 => Self::Off,
                0b001 => Self::Classic,
                _ => self,
            },
            _ if flags.has(Flags::ECE) && !flags.has(Flags::CWR) => self,
            _ => Self::Off,
        }
    }
}

choices! {
    /// Whether segments are spread over the round-trip time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Pacing {
        /// If the congestion control has a pacing rate, or the host's queue paces.
        Auto = "auto",
        /// Never.
        Off = "off",
        /// Always. A control without a pacing rate paces at 1.2 times cwnd per round-trip time, in
        /// early slow start at 2 times cwnd.
        On = "on",
    }
}

choices! {
    /// Change of cwnd after an idle time of the sender.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum IdleRestart {
        /// cwnd does not change.
        Off = "off",
        /// At most the initial window after a silence of more than one RTO (RFC 5681, section 4.1).
        Rfc5681 = "rfc5681",
        /// Halved for each RTO of silence, down to the initial window (RFC 2861, Linux).
        Decay = "decay",
    }
}

params! {
    /// The user's settings.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params {
        /// The congestion control.
        congestion: sojourn_congestion::Params = derived(|()| linux_cubic()),
        /// How slow start ends without a loss, and how fast cwnd grows in it. `words::table` lists
        /// the words of this field after `undo`.
        slow_start: hystart::Params = derived(|()| hystart::Params {
            kind: hystart::Kind::Classic, // tcp_cubic: hystart 1, hystart_detect 3
            count: hystart::Count::Segments, // snd_cwnd
            ..hystart::Params::default()  // tcp_slow_start adds every acknowledged segment
        }),
        /// Payload of a full segment without options.
        mss: u32 = segment(), // Ethernet's 1500 without IP and TCP headers
        /// Initial congestion window in segments.
        initial_window as "iw": u32 = integer(1, 65_535, "10"), // TCP_INIT_CWND, RFC 6928
        /// Selective acknowledgements (RFC 2018).
        sack: bool = on_off("on"), // net.ipv4.tcp_sack = 1
        /// D-SACK blocks for segments that arrive twice (RFC 2883).
        dsack: bool = on_off("on"), // net.ipv4.tcp_dsack = 1
        /// Timestamps (RFC 7323).
        timestamps: bool = on_off("on"), // net.ipv4.tcp_timestamps = 1
        /// Receive windows above 65535 bytes (RFC 7323).
        window_scaling: bool = on_off("on"), // net.ipv4.tcp_window_scaling = 1
        /// Explicit congestion notification: RFC 3168, RFC 8257's exact echo, RFC 8257's echo with
        /// ECT(1) on data, or RFC 9768's counters (AccECN).
        ecn: Ecn = choice("off"), // net.ipv4.tcp_ecn = 2: accepted, not requested
        /// A SYN that is sent again does not ask for ECN (RFC 3168, section 6.1.1.1).
        #[serde(default)]
        ecn_fallback: bool = on_off("on"), // net.ipv4.tcp_ecn_fallback = 1
        /// How losses are repaired: RFC 6582, RFC 6675, or RFC 6675 with RFC 6937.
        recovery: Recovery = choice("prr"), // tcp_cwnd_reduction
        /// RACK-TLP (RFC 8985): detects losses by time, and sends tail loss probes; needs SACK.
        rack: bool = on_off("on"), // net.ipv4.tcp_recovery = 1, tcp_early_retrans = 3
        /// Detection of spurious timeouts (RFC 5682).
        frto: bool = on_off("on"), // net.ipv4.tcp_frto = 2
        /// A reduction that timestamps or D-SACK prove unnecessary is taken back.
        undo: bool = on_off("on"), // tcp_try_undo_recovery
        /// New segments on the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool = on_off("on"), // Linux: SACKed segments leave the flight at once
        /// How the retransmission timeout is computed.
        rto_rule as "rto": RtoRule = choice("linux"), // tcp_rtt_estimator
        /// Shortest retransmission timeout; with `rto linux`, shortest time beyond the SRTT.
        min_rto: Nanos = time("200ms"), // TCP_RTO_MIN
        /// Retransmission timeout before the first round-trip time is measured.
        initial_rto: Nanos = time("1s"), // TCP_TIMEOUT_INIT, RFC 6298
        /// Longest retransmission timeout.
        max_rto: Nanos = time("120s"), // TCP_RTO_MAX
        /// Timeouts of a SYN before the timeout doubles.
        #[serde(default)]
        syn_linear_timeouts: u32 = integer(0, 127, "4"), // net.ipv4.tcp_syn_linear_timeouts
        /// How often a SYN is sent again, apart from `syn_linear_timeouts`, before the connection is
        /// given up.
        syn_retries: u32 = integer(0, 255, "6"), // net.ipv4.tcp_syn_retries
        /// How often a SYN-ACK is sent again before the connection is given up.
        #[serde(default = "synack_retries")]
        synack_retries: u32 = integer(0, 255, "5"), // net.ipv4.tcp_synack_retries
        /// How often data is sent again without an answer before the connection is given up.
        retries: u32 = integer(0, 255, "15"), // net.ipv4.tcp_retries2
        /// Number of full segments for which one ACK is sent.
        delayed_ack as "delack": u32 = integer(1, 64, "2"), // more than one full segment: ACK at once
        /// Longest delay of an ACK; 0 for no delay.
        delayed_ack_timeout as "delack_timeout": Nanos = time("40ms"), // TCP_DELACK_MIN, TCP_ATO_MIN
        /// Which data is acknowledged at once, by one of three rules: RFC 5681's; Linux's, with
        /// compressed SACKs; or RFC 5681's with up to sixteen segments after data beyond a hole.
        #[serde(default)]
        ack_rule: AckRule = choice("linux"), // __tcp_ack_snd_check
        /// The ACKs at the start, after an idle time and after duplicate data are not delayed.
        quick_ack: bool = on_off("on"), // TCP_MAX_QUICKACKS 16
        /// A small segment waits until all sent data is acknowledged (RFC 896).
        nagle: bool = on_off("off"), // on in the kernel, but many programs turn it off
        /// Whether segments are spread over the round-trip time.
        pacing: Pacing = choice("auto"), // without the fq qdisc, only BBR and Prague pace
        /// A segment that leaves after its pacing time shortens the next gap, by half at most.
        #[serde(default)]
        pacing_credit: bool = on_off("on"), // tcp_update_skb_after_send
        /// Segments leave in super-packets of about a millisecond at the present rate, but of at
        /// least two segments; the sender waits up to a millisecond to fill one.
        tso: bool = on_off("on"), // tcp_tso_autosize, tcp_tso_should_defer
        /// Change of cwnd after an idle time of the sender.
        idle_restart: IdleRestart = choice("decay"), // net.ipv4.tcp_slow_start_after_idle = 1
        /// Quantity that `rwnd` and `sndbuf` count: payload, or the memory that packets occupy.
        #[serde(default)]
        memory: Memory = choice("truesize"), // sk_wmem_queued, sk_rmem_alloc
        /// Memory of a full segment that was received, with `memory truesize`: 2304 bytes where drivers
        /// give each frame half a page, 4352 over virtual links without offloads.
        #[serde(default = "frame_memory")]
        frame_memory: Bytes = size("2304b").above_zero(), // SKB_TRUESIZE
        /// Greatest receive window or, with `memory truesize`, receive buffer as memory, in bytes.
        receive_window as "rwnd": Bytes = size("32mb"), // net.ipv4.tcp_rmem[2]
        /// The receive window starts at 64 kB and follows the rate.
        autotune: bool = on_off("on"), // net.ipv4.tcp_moderate_rcvbuf = 1
        /// Maximum of data written and not yet acknowledged; with `memory truesize`, of its memory.
        send_buffer as "sndbuf": Bytes = size("4mb"), // net.ipv4.tcp_wmem[2]
        /// A packet source waits if the send buffer has no space for a write, and catches up later.
        /// If off, the write is refused.
        blocking: bool = on_off("off"),
        /// Ticks per second of the clock by which timers run; 0 for a clock without ticks. A timer fires
        /// at the first tick after its time.
        #[serde(default)]
        hz: u32 = integer(0, 1000, "1000"), // CONFIG_HZ
        /// How long the closing side stays in TIME-WAIT.
        time_wait: Nanos = time("60s"), // TCP_TIMEWAIT_LEN
    }
}

/// Returns `synack_retries` of plans without this value, whose SYN-ACKs counted `syn_retries`.
fn synack_retries() -> u32 {
    6
}

/// Returns the default of `frame_memory` in bytes, for plans without this value.
fn frame_memory() -> Bytes {
    2304
}

/// Returns the default control: net.ipv4.tcp_congestion_control = cubic, with `tcp_cubic`'s
/// constants: beta 717/1024, `C` 410/1024 (`bic_scale` 41), `fast_convergence` 1,
/// `tcp_friendliness` 1.
fn linux_cubic() -> sojourn_congestion::Params {
    let variant = cubic::Variant::Linux;
    sojourn_congestion::Params::Cubic(cubic::Params { variant, ..cubic::Params::default() })
}

/// Returns the declaration of `mss`. A value above 32 bits becomes the greatest number of 32 bits,
/// which is out of range too.
const fn segment() -> Param<u32> {
    Param::word(
        Kind::Size,
        "1460b",
        |value| Ok(u32::try_from(value.integer()).unwrap_or(u32::MAX)),
        |mss| Some(Value::Text(format_size(u64::from(*mss)))),
    )
}
