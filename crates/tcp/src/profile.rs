//! Named sets of TCP parameters: those of an operating system, a simulator or a study.
//!
//! The comment at each field states the source of its value; the comments for `linux-7.3` are in
//! [`params`](crate::params).

use crate::params::{AckRule, Ecn, IdleRestart, Memory, Pacing, Params, Recovery, RtoRule};
use sojourn_congestion::{MAX_WINDOW, bbr, cubic, hystart, reno};
use sojourn_units::{MILLISECOND, SECOND};

/// A named set of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name a user writes.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    make: fn() -> Params,
    /// Changes the defaults of a control other than the profile's own.
    adapt: fn(&mut sojourn_congestion::Params),
}

/// A limit of segments per ACK that no simulation reaches.
const UNLIMITED: u64 = 1_000_000;

impl Profile {
    /// The names, for the table of words.
    pub const NAMES: &[&str] = &["linux-7.3", "linux-6", "rfc", "ns3-3.37", "sack-2001", "ns2-web"];

    /// All profiles, in the order of [`Profile::NAMES`].
    pub const ALL: &[&Self] = &[&LINUX_7_3, &LINUX_6, &RFC, &NS3_3_37, &SACK_2001, &NS2_WEB];

    /// Returns the profile with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().copied().find(|p| p.name == name)
    }

    /// Returns the parameters of the congestion control `name`: those of the profile if it is the
    /// profile's control, else the control's defaults, changed by `adapt`.
    pub(crate) fn control(&self, name: &str) -> sojourn_congestion::Params {
        let own = self.params().congestion;
        if own.name() == name {
            return own;
        }
        let mut control = sojourn_congestion::Params::named(name).unwrap_or(own);
        (self.adapt)(&mut control);
        control
    }

    /// Returns the profile's parameters.
    pub fn params(&self) -> Params {
        (self.make)()
    }
}

/// A Linux 7.3 host: the rules and numbers of 7.3.4.
pub const LINUX_7_3: Profile = Profile {
    name: "linux-7.3",
    summary: "a Linux 7.3 host with the kernel's defaults",
    adapt: |control| {
        if let sojourn_congestion::Params::Bbr(params) = control {
            params.variant = bbr::Variant::Linux; // tcp_bbr.c
        }
    },
    make: Params::default,
};

/// A Linux 6 host in this TCP's earlier model, from before the comparison with the kernel's source.
pub const LINUX_6: Profile = Profile {
    name: "linux-6",
    summary: "a Linux 6 host in an earlier model, which counts bytes and whose timers have no ticks",
    adapt: |_| {},
    make: || Params {
        slow_start: hystart::Params {
            count: hystart::Count::Bytes, // as in the earlier model
            ..Params::default().slow_start
        },
        ecn_fallback: false,      // as in the earlier model
        memory: Memory::Payload,  // as in the earlier model
        receive_window: 3 << 20,  // half of net.ipv4.tcp_rmem[2], 6 MB
        pacing_credit: false,     // as in the earlier model
        ack_rule: AckRule::Quick, // as in the earlier model
        hz: 0,                    // as in the earlier model
        syn_linear_timeouts: 0,   // as in the earlier model
        synack_retries: 6,        // as in the earlier model
        ..Params::default()
    },
};

/// The requirements of the RFCs; where they leave a choice, a common value.
pub const RFC: Profile = Profile {
    name: "rfc",
    summary: "the RFCs' recommendations, with Reno and SACK",
    adapt: |_| {},
    make: || Params {
        congestion: sojourn_congestion::Params::Reno(reno::Params {}), // RFC 5681
        slow_start: hystart::Params {
            kind: hystart::Kind::None,    // RFC 5681
            limit: 2,                     // RFC 3465, section 2.3
            byte_counting: true,          // RFC 3465; RFC 5681 recommends it
            count: hystart::Count::Bytes, // RFC 5681 counts bytes
        },
        mss: 1460,                              // RFC 6691
        initial_window: 10,                     // RFC 6928
        sack: true,                             // RFC 2018
        dsack: true,                            // RFC 2883
        timestamps: true,                       // RFC 7323
        window_scaling: true,                   // RFC 7323
        ecn: Ecn::Off,                          // RFC 3168 leaves ECN to the host
        ecn_fallback: false,                    // RFC 3168 allows either
        recovery: Recovery::Rfc6675,            // RFC 6675
        rack: false,                            // RFC 8985 is optional
        frto: false,                            // RFC 5682 is optional
        undo: false,                            // RFC 4015 is optional
        limited_transmit: true,                 // RFC 3042
        rto_rule: RtoRule::Rfc6298,             // RFC 6298, section 2
        min_rto: SECOND,                        // RFC 6298, (2.4)
        initial_rto: SECOND,                    // RFC 6298, (2.1)
        max_rto: 60 * SECOND,                   // RFC 6298, (2.5): at least 60 s
        syn_linear_timeouts: 0,                 // none
        syn_retries: 6,                         // two minutes; RFC 1122, 4.2.3.5, asks for three
        synack_retries: 6,                      // as for a SYN
        retries: 15,                            // RFC 1122, 4.2.3.5: at least 100 s
        delayed_ack: 2,                         // RFC 5681, section 4.2
        delayed_ack_timeout: 200 * MILLISECOND, // RFC 1122: less than 500 ms; 200 ms is usual
        ack_rule: AckRule::Rfc5681,             // RFC 5681, section 4.2
        quick_ack: false,                       // not in the RFCs
        nagle: true,                            // RFC 1122, 4.2.3.4
        pacing: Pacing::Off,                    // not in the RFCs
        pacing_credit: false,                   // none
        tso: false,                             // not in the RFCs
        idle_restart: IdleRestart::Rfc5681,     // RFC 5681, section 4.1
        memory: Memory::Payload,                // memory is not modelled
        frame_memory: 2304,                     // without effect
        receive_window: MAX_WINDOW,             // RFC 7323's greatest window, so never the limit
        autotune: false,                        // not in the RFCs
        send_buffer: MAX_WINDOW,                // so large that it never limits
        blocking: false,
        hz: 0,                   // without ticks
        time_wait: 240 * SECOND, // RFC 9293: twice the MSL of two minutes
    },
};

/// The TCP of ns-3.37.
pub const NS3_3_37: Profile = Profile {
    name: "ns3-3.37",
    summary: "ns-3.37 with its defaults, except for Ethernet's segment size",
    adapt: |_| {},
    make: || Params {
        congestion: sojourn_congestion::Params::Cubic(cubic::Params {
            variant: cubic::Variant::Rfc9438, // CubicState follows RFC 8312
            beta: 0.7,                        // TcpCubic::Beta
            c: 0.4,                           // TcpCubic::C
            fast_convergence: true,           // TcpCubic::FastConvergence
            reno_friendly: true,              // TcpCubic::TcpFriendliness (off before 3.36)
        }),
        slow_start: hystart::Params {
            kind: hystart::Kind::Classic, // TcpCubic::HyStart
            limit: UNLIMITED,             // TcpCubic counts all segments in slow start
            byte_counting: false,         // TcpNewReno counts ACKs (TcpLinuxReno counts segments)
            count: hystart::Count::Bytes, // ns-3 counts bytes
        },
        mss: 1460,                  // TcpSocket::SegmentSize is 536; scripts set Ethernet's
        initial_window: 10,         // TcpSocket::InitialCwnd
        sack: true,                 // TcpSocketBase::Sack
        dsack: false,               // none
        timestamps: true,           // TcpSocketBase::Timestamp
        window_scaling: true,       // TcpSocketBase::WindowScaling
        ecn: Ecn::Off,              // TcpSocketBase::UseEcn
        ecn_fallback: false,        // without effect: ECN is off
        recovery: Recovery::Prr,    // TcpL4Protocol::RecoveryType = TcpPrrRecovery
        rack: false,                // none
        frto: false,                // none
        undo: false,                // none
        limited_transmit: true,     // TcpSocketBase::LimitedTransmit
        rto_rule: RtoRule::Rfc6298, // RttMeanDeviation
        min_rto: SECOND,            // TcpSocketBase::MinRto
        initial_rto: 3 * SECOND,    // TcpSocket::ConnTimeout
        max_rto: 60 * SECOND,       // TcpSocketBase::ReTxTimeout: the doubled RTO is at most 60 s
        syn_linear_timeouts: 0,     // none
        syn_retries: 6,             // TcpSocket::ConnCount
        synack_retries: 6,          // TcpSocket::ConnCount
        retries: 6,                 // TcpSocket::DataRetries
        delayed_ack: 2,             // TcpSocket::DelAckCount
        delayed_ack_timeout: 200 * MILLISECOND, // TcpSocket::DelAckTimeout
        ack_rule: AckRule::Rfc5681, // an ACK for every segment beyond a hole
        quick_ack: false,           // none
        nagle: false,               // TcpSocket::TcpNoDelay
        pacing: Pacing::Auto,       // TcpSocketState::EnablePacing is off
        pacing_credit: false,       // none
        tso: false,                 // none
        idle_restart: IdleRestart::Off, // none
        memory: Memory::Payload,    // memory is not modelled
        frame_memory: 2304,         // without effect
        receive_window: 128 << 10,  // TcpSocket::RcvBufSize, 131072
        autotune: false,            // none
        send_buffer: 128 << 10,     // TcpSocket::SndBufSize, 131072
        blocking: false,
        hz: 0,                   // without ticks
        time_wait: 240 * SECOND, // TcpSocketBase::MaxSegLifetime 120 s, twice
    },
};

/// The Linux of 2001 as the taildrop study used it.
pub const SACK_2001: Profile = Profile {
    name: "sack-2001",
    summary: "a SACK TCP of 2001: Reno's window, no later refinement",
    adapt: |_| {},
    make: || Params {
        congestion: sojourn_congestion::Params::Reno(reno::Params {}), // RFC 2581
        slow_start: hystart::Params {
            kind: hystart::Kind::None,    // later than 2001
            limit: 1,                     // RFC 2581: one segment per ACK
            byte_counting: false,         // RFC 3465 is of 2003; Linux 2.4 counts ACKs
            count: hystart::Count::Bytes, // RFC 2581 counts bytes
        },
        mss: 1460,                              // Ethernet
        initial_window: 2,                      // RFC 2581
        sack: true,                             // RFC 2018
        dsack: false,                           // not widely deployed
        timestamps: false,                      // full frames carry 1460 bytes in the study
        window_scaling: true,                   // RFC 1323
        ecn: Ecn::Off,                          // off by default
        ecn_fallback: false,                    // without effect: ECN is off
        recovery: Recovery::Rfc6675, // the pipe algorithm of ns-2's Sack1 and of Linux 2.4
        rack: false,                 // later
        frto: false,                 // later
        undo: false,                 // Linux 2.4 had it with timestamps or D-SACK only
        limited_transmit: false,     // RFC 3042 is of January 2001
        rto_rule: RtoRule::Linux,    // tcp_rtt_estimator is older than 2001
        min_rto: 200 * MILLISECOND,  // TCP_RTO_MIN
        initial_rto: 3 * SECOND,     // RFC 2988, TCP_TIMEOUT_INIT then
        max_rto: 120 * SECOND,       // TCP_RTO_MAX
        syn_linear_timeouts: 0,      // none
        syn_retries: 5,              // TCP_SYN_RETRIES then
        synack_retries: 5,           // TCP_SYNACK_RETRIES
        retries: 15,                 // TCP_RETR2
        delayed_ack: 2,              // RFC 1122
        delayed_ack_timeout: 200 * MILLISECOND, // TCP_DELACK_MAX
        ack_rule: AckRule::Rfc5681,  // RFC 2581: an ACK for every segment beyond a hole
        quick_ack: false,            // left out: the study's figures do not depend on it
        nagle: false,                // off in bulk and Web servers
        pacing: Pacing::Off,         // later
        pacing_credit: false,        // none
        tso: false,                  // later
        idle_restart: IdleRestart::Rfc5681, // RFC 2581, section 4.1
        memory: Memory::Payload,     // memory is not modelled
        frame_memory: 2304,          // without effect
        receive_window: 1 << 20,     // large enough not to limit, as in the study
        autotune: false,             // later
        send_buffer: 1 << 20,        // large enough not to limit
        blocking: false,
        hz: 0,                  // without ticks
        time_wait: 60 * SECOND, // TCP_TIMEWAIT_LEN
    },
};

/// The one-way TCP that ns-2's Web traffic runs on.
pub const NS2_WEB: Profile = Profile {
    name: "ns2-web",
    summary: "ns-2's one-way TCP under its Web traffic: 1000-byte packets, every packet acknowledged",
    adapt: |_| {},
    make: || Params {
        congestion: sojourn_congestion::Params::Reno(reno::Params {}), // Agent/TCP/Reno, Agent/TCP/Sack1
        slow_start: hystart::Params {
            kind: hystart::Kind::None,    // none
            limit: 1,                     // one packet an ACK
            byte_counting: false,         // opencwnd counts ACKs
            count: hystart::Count::Bytes, // cwnd_ has fractions of a packet
        },
        mss: 1000,                      // packetSize_ 1000
        initial_window: 2,              // windowInit_ 2
        sack: true,                     // Agent/TCP/Sack1, as in the taildrop study
        dsack: false,                   // none
        timestamps: false,              // 40-byte headers
        window_scaling: true,           // windows are counted in packets
        ecn: Ecn::Off,                  // ecn_ 0
        ecn_fallback: false,            // without effect: ECN is off
        recovery: Recovery::Rfc6675,    // Sack1's pipe
        rack: false,                    // none
        frto: false,                    // none
        undo: false,                    // none
        limited_transmit: false,        // singledup_ was added later
        rto_rule: RtoRule::Rfc6298,     // rtt_update: srtt + 4 rttvar
        min_rto: 200 * MILLISECOND,     // minrto_ 0.2
        initial_rto: 3 * SECOND,        // rtxcur_init_ 3.0
        max_rto: 60 * SECOND,           // maxrto_ 60
        syn_linear_timeouts: 0,         // none
        syn_retries: 6,                 // the one-way TCP does not give up
        synack_retries: 6,              // the one-way TCP does not give up
        retries: 255,                   // the one-way TCP does not give up
        delayed_ack: 1,                 // Agent/TCPSink
        delayed_ack_timeout: 0,         // Agent/TCPSink
        ack_rule: AckRule::Rfc5681,     // an ACK for every segment beyond a hole
        quick_ack: false,               // none
        nagle: false,                   // none
        pacing: Pacing::Off,            // none
        pacing_credit: false,           // none
        tso: false,                     // none
        idle_restart: IdleRestart::Off, // without effect on Web traffic: a connection per object
        memory: Memory::Payload,        // memory is not modelled
        frame_memory: 2304,             // without effect
        receive_window: 1 << 20,        // window_ is set so large that it does not limit
        autotune: false,                // none
        send_buffer: 1 << 20,           // large enough not to limit
        blocking: false,
        hz: 0,        // without ticks
        time_wait: 0, // none
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree() {
        assert!(Profile::NAMES.iter().eq(Profile::ALL.iter().map(|p| &p.name)));
    }
}
