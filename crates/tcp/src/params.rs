//! What the user sets of a TCP, and the one line it is written in.
//!
//! `reno profile sack-2001 iw 3 min_rto 1s sack off`: the congestion control, then words. The
//! [`profile`](crate::profile) gives every value that is not written.

use crate::profile::{self, Profile};
use crate::segment::Flags;
use serde::{Deserialize, Serialize};
use sojourn_congestion::{bbr, cubic, dctcp, hystart, prague};
use sojourn_units::words::{self, Given, Kind, Table, Word, WordError};
use sojourn_units::{Bytes, Nanos};

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Duplicate ACKs and partial ACKs (RFC 6582); SACK blocks are ignored.
    NewReno,
    /// The scoreboard and pipe of RFC 6675; cwnd falls to ssthresh at once.
    Rfc6675,
    /// The same scoreboard; cwnd falls by proportional rate reduction (RFC 6937).
    Prr,
}

/// How the retransmission timeout follows from the round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RtoRule {
    /// SRTT + 4 RTTVAR, and not below the minimum (RFC 6298).
    Rfc6298,
    /// SRTT plus a variance that itself is not below the minimum (Linux).
    Linux,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// Not asked for, not accepted.
    Off,
    /// RFC 3168: the receiver echoes until the sender has answered.
    Classic,
    /// RFC 8257: the receiver echoes each mark, and each change at once; all packets are ECT(0).
    Accurate,
    /// The same echo; data asks for L4S by ECT(1) (RFC 9331), bare acknowledgements are not
    /// ECN-capable.
    L4s,
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

/// Whether segments are spread over the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// If the congestion control asks for it.
    Auto,
    /// Never.
    Off,
    /// Always: twice cwnd/srtt in slow start, 1.2 times after.
    On,
}

/// What becomes of cwnd after silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleRestart {
    /// Nothing.
    Off,
    /// Back to the initial window after one RTO (RFC 5681, section 4.1).
    Rfc5681,
    /// Halved for each RTO of silence, down to the initial window (RFC 2861, Linux).
    Decay,
}

/// What the user sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// The congestion control.
    pub congestion: sojourn_congestion::Params,
    /// How slow start ends without a loss, and how fast it may grow.
    pub slow_start: hystart::Params,
    /// Payload of a full segment without options.
    pub mss: u32,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Duplicates are reported (RFC 2883).
    pub dsack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Windows above 65535 bytes (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// How losses are found and repaired.
    pub recovery: Recovery,
    /// Losses are found by time, and tails are probed (RFC 8985); needs SACK.
    pub rack: bool,
    /// A spurious timeout is detected (RFC 5682).
    pub frto: bool,
    /// A reduction that proves a mistake (by timestamps or D-SACK) is taken back.
    pub undo: bool,
    /// New segments on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// How the retransmission timeout is computed.
    pub rto_rule: RtoRule,
    /// Its least value.
    pub min_rto: Nanos,
    /// Its value before the first sample.
    pub initial_rto: Nanos,
    /// Its greatest value.
    pub max_rto: Nanos,
    /// How often a SYN is sent again.
    pub syn_retries: u32,
    /// How often data is sent again without an answer.
    pub retries: u32,
    /// Full segments for which one ACK is sent.
    pub delayed_ack: u32,
    /// How long an ACK may be delayed; 0 for not at all.
    pub delayed_ack_timeout: Nanos,
    /// Linux: the first ACKs, and those after silence or disorder, are not delayed.
    pub quick_ack: bool,
    /// Small segments wait for the acknowledgement of others (RFC 896).
    pub nagle: bool,
    /// Whether segments are spread over the round-trip time.
    pub pacing: Pacing,
    /// Linux: segments leave in super-packets of about a millisecond, which the sender waits to fill.
    pub tso: bool,
    /// What becomes of cwnd after silence.
    pub idle_restart: IdleRestart,
    /// Greatest receive window.
    pub receive_window: Bytes,
    /// Whether the receive window starts small and follows the rate.
    pub autotune: bool,
    /// Greatest amount of data written and not yet acknowledged.
    pub send_buffer: Bytes,
    /// Whether an application waits while the send buffer is full, rather than have its write refused.
    pub blocking: bool,
    /// How long the closing side stays in TIME-WAIT.
    pub time_wait: Nanos,
}

impl Default for Params {
    fn default() -> Self {
        profile::LINUX_6.params()
    }
}

const ON_OFF: Kind = Kind::Choice { of: &["on", "off"] };

macro_rules! table {
    ($name:literal, $summary:literal, $source:literal, [$($extra:expr),* $(,)?]) => {
        Table {
            name: $name,
            summary: $summary,
            source: $source,
            words: &[
                Word { name: "profile", kind: Kind::Choice { of: Profile::NAMES }, default: "linux-6", doc: "Where all other defaults come from; the defaults shown are those of linux-6." },
                Word { name: "mss", kind: Kind::Size, default: "1460b", doc: "Payload of a full segment without options." },
                Word { name: "iw", kind: Kind::Integer { min: 1, max: 65_535 }, default: "10", doc: "Initial congestion window in segments." },
                Word { name: "sack", kind: ON_OFF, default: "on", doc: "Selective acknowledgements (RFC 2018)." },
                Word { name: "dsack", kind: ON_OFF, default: "on", doc: "Duplicates are reported (RFC 2883)." },
                Word { name: "timestamps", kind: ON_OFF, default: "on", doc: "Timestamps (RFC 7323)." },
                Word { name: "window_scaling", kind: ON_OFF, default: "on", doc: "Receive windows above 65535 bytes (RFC 7323)." },
                Word { name: "ecn", kind: Kind::Choice { of: &["off", "classic", "accurate", "l4s"] }, default: "off", doc: "Explicit congestion notification: RFC 3168, RFC 8257's exact echo, or that with ECT(1) on data." },
                Word { name: "recovery", kind: Kind::Choice { of: &["newreno", "rfc6675", "prr"] }, default: "prr", doc: "How losses are repaired: RFC 6582, RFC 6675, or RFC 6675 with RFC 6937." },
                Word { name: "rack", kind: ON_OFF, default: "on", doc: "Loss by time and tail loss probes (RFC 8985); needs SACK." },
                Word { name: "frto", kind: ON_OFF, default: "on", doc: "Detection of spurious timeouts (RFC 5682)." },
                Word { name: "undo", kind: ON_OFF, default: "on", doc: "Take back a reduction that timestamps or D-SACK prove a mistake." },
                Word { name: "hystart", kind: Kind::Choice { of: &["none", "classic", "plus_plus"] }, default: "classic for cubic, else none", doc: "How slow start ends without a loss: HyStart, or RFC 9406's HyStart++." },
                Word { name: "abc_limit", kind: Kind::Integer { min: 1, max: 1_000_000 }, default: "1000000", doc: "Segments that one ACK may add in slow start (RFC 3465's L)." },
                Word { name: "abc", kind: ON_OFF, default: "on", doc: "Reno's window grows by bytes acknowledged (RFC 3465); off: by ACKs, half as fast if they are delayed." },
                Word { name: "limited_transmit", kind: ON_OFF, default: "on", doc: "New segments on the first two duplicate ACKs (RFC 3042)." },
                Word { name: "rto", kind: Kind::Choice { of: &["rfc6298", "linux"] }, default: "linux", doc: "How the retransmission timeout is computed." },
                Word { name: "min_rto", kind: Kind::Time, default: "200ms", doc: "Least retransmission timeout." },
                Word { name: "initial_rto", kind: Kind::Time, default: "1s", doc: "Retransmission timeout before the first sample." },
                Word { name: "max_rto", kind: Kind::Time, default: "120s", doc: "Greatest retransmission timeout." },
                Word { name: "syn_retries", kind: Kind::Integer { min: 0, max: 255 }, default: "6", doc: "How often a SYN is sent again." },
                Word { name: "retries", kind: Kind::Integer { min: 0, max: 255 }, default: "15", doc: "How often data is sent again without an answer." },
                Word { name: "delack", kind: Kind::Integer { min: 1, max: 64 }, default: "2", doc: "Full segments for which one ACK is sent." },
                Word { name: "delack_timeout", kind: Kind::Time, default: "40ms", doc: "How long an ACK may be delayed; 0 for not at all." },
                Word { name: "quick_ack", kind: ON_OFF, default: "on", doc: "The first ACKs, and those after silence or disorder, are not delayed." },
                Word { name: "nagle", kind: ON_OFF, default: "off", doc: "Small segments wait for the acknowledgement of others (RFC 896)." },
                Word { name: "pacing", kind: Kind::Choice { of: &["auto", "off", "on"] }, default: "auto", doc: "Whether segments are spread over the round-trip time." },
                Word { name: "tso", kind: ON_OFF, default: "on", doc: "Segments leave in super-packets of about a millisecond at the present rate, two at least; the sender waits up to a millisecond to fill one." },
                Word { name: "idle_restart", kind: Kind::Choice { of: &["off", "rfc5681", "decay"] }, default: "decay", doc: "What becomes of cwnd after silence." },
                Word { name: "rwnd", kind: Kind::Size, default: "3mb", doc: "Greatest receive window." },
                Word { name: "autotune", kind: ON_OFF, default: "on", doc: "The receive window starts at 64 kB and follows the rate." },
                Word { name: "sndbuf", kind: Kind::Size, default: "4mb", doc: "Greatest amount of data written and not yet acknowledged." },
                Word { name: "blocking", kind: ON_OFF, default: "off", doc: "A packet source whose write finds no room in the send buffer waits and catches up; off: the write is refused." },
                Word { name: "time_wait", kind: Kind::Time, default: "60s", doc: "How long the closing side stays in TIME-WAIT." },
                $($extra),*
            ],
        }
    };
}

/// Words of `reno`.
pub const RENO: Table = table!(
    "reno",
    "TCP with Reno's congestion control: one segment more each round trip, half on loss",
    "RFC 5681, RFC 6582, RFC 3465",
    []
);

/// Words of `cubic`.
pub const CUBIC: Table = table!(
    "cubic",
    "TCP with CUBIC: the window is a cubic function of the time since the last loss",
    "RFC 9438",
    [
        Word {
            name: "variant",
            kind: Kind::Choice { of: &["rfc9438", "linux"] },
            default: "linux",
            doc: "Whose CUBIC: the RFC's, or Linux's, which grows by a twentieth each round trip until the first loss, looks ahead by the least round-trip time, and reduces from cwnd."
        },
        Word {
            name: "beta",
            kind: Kind::Real { min: 0.1, max: 0.95 },
            default: "0.7",
            doc: "Factor that a reduction multiplies the window by."
        },
        Word {
            name: "c",
            kind: Kind::Real { min: 0.001, max: 100.0 },
            default: "0.4",
            doc: "Growth in segments per second cubed."
        },
        Word {
            name: "fast_convergence",
            kind: ON_OFF,
            default: "on",
            doc: "Release bandwidth to new flows."
        },
        Word { name: "reno_friendly", kind: ON_OFF, default: "on", doc: "Be no slower than Reno." },
    ]
);

/// Words of `bbr`.
pub const BBR: Table = table!(
    "bbr",
    "TCP with BBR version 1: paced at the measured bottleneck bandwidth",
    "draft-cardwell-iccrg-bbr-congestion-control-00",
    [
        Word {
            name: "min_rtt_window",
            kind: Kind::Time,
            default: "10s",
            doc: "How long the least round-trip time is believed."
        },
        Word {
            name: "probe_rtt",
            kind: Kind::Time,
            default: "200ms",
            doc: "How long the round-trip time is probed."
        },
    ]
);

/// Words of `dctcp`.
pub const DCTCP: Table = table!(
    "dctcp",
    "Data Center TCP: reduce by the fraction of marked bytes; ECN is on (accurate) unless set",
    "RFC 8257",
    [
        Word {
            name: "shift",
            kind: Kind::Integer { min: 0, max: 10 },
            default: "4",
            doc: "The average of the marked fraction has gain 2^-shift."
        },
        Word {
            name: "initial_alpha",
            kind: Kind::Integer { min: 0, max: 1024 },
            default: "1024",
            doc: "Marked fraction assumed at first, in 1/1024."
        },
    ]
);

/// Words of `prague`.
pub const PRAGUE: Table = table!(
    "prague",
    "TCP Prague, for L4S: answers each of many marks a little, paced; ECN is on (l4s) unless set",
    "draft-briscoe-iccrg-prague-congestion-control, and its reference for Linux",
    [
        Word {
            name: "rtt_target",
            kind: Kind::Time,
            default: "25ms",
            doc: "Flows with a shorter round-trip time behave as if it were this; 0 for none."
        },
        Word {
            name: "rtt_transition",
            kind: Kind::Integer { min: 0, max: 4_294_967_295 },
            default: "500",
            doc: "Rounds after slow start until they do."
        },
    ]
);

/// The tables of all congestion controls.
pub fn tables() -> [&'static Table; 5] {
    [&RENO, &CUBIC, &BBR, &DCTCP, &PRAGUE]
}

fn switch(given: &Given, word: &str, target: &mut bool) {
    if let Some(text) = given.text(word) {
        *target = text == "on";
    }
}

fn set<T>(value: Option<T>, target: &mut T) {
    if let Some(value) = value {
        *target = value;
    }
}

impl Params {
    /// The parameters of `profile` with another congestion control, and what belongs to it:
    /// DCTCP's and Prague's ECN, HyStart for CUBIC only.
    pub fn with(profile: &Profile, congestion: sojourn_congestion::Params) -> Self {
        let mut params = profile.params();
        match congestion {
            sojourn_congestion::Params::Dctcp(_) => params.ecn = Ecn::Accurate,
            sojourn_congestion::Params::Prague(_) => params.ecn = Ecn::L4s,
            _ => {}
        }
        if !matches!(congestion, sojourn_congestion::Params::Cubic(_)) {
            params.slow_start.kind = hystart::Kind::None;
        }
        params.congestion = congestion;
        params
    }

    /// Reads a description.
    ///
    /// # Errors
    /// An unknown control or word, a value of the wrong kind, or values that contradict.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("transport", &tables(), text)?;
        let profile = given.text("profile").and_then(Profile::named).unwrap_or(&profile::LINUX_6);
        let congestion = match table.name {
            "reno" => sojourn_congestion::Params::Reno,
            "cubic" => {
                let mut p = cubic::Params { variant: profile.cubic(), ..cubic::Params::default() };
                match given.text("variant") {
                    Some("linux") => p.variant = cubic::Variant::Linux,
                    Some(_) => p.variant = cubic::Variant::Rfc9438,
                    None => {}
                }
                set(given.real("beta"), &mut p.beta);
                set(given.real("c"), &mut p.c);
                switch(&given, "fast_convergence", &mut p.fast_convergence);
                switch(&given, "reno_friendly", &mut p.reno_friendly);
                sojourn_congestion::Params::Cubic(p)
            }
            "bbr" => {
                let mut p = bbr::Params::default();
                set(given.time("min_rtt_window"), &mut p.min_rtt_window);
                set(given.time("probe_rtt"), &mut p.probe_rtt);
                sojourn_congestion::Params::Bbr(p)
            }
            "dctcp" => {
                let mut p = dctcp::Params::default();
                set(given.integer("shift").map(|v| v as u32), &mut p.shift);
                set(given.integer("initial_alpha"), &mut p.initial_alpha);
                sojourn_congestion::Params::Dctcp(p)
            }
            _ => {
                let mut p = prague::Params::default();
                set(given.time("rtt_target"), &mut p.rtt_target);
                set(given.integer("rtt_transition").map(|v| v as u32), &mut p.rtt_transition);
                sojourn_congestion::Params::Prague(p)
            }
        };
        let mut params = Self::with(profile, congestion);
        params.read_rules(&given);
        params.read_numbers(&given);
        params.check(&given)?;
        Ok(params)
    }

    fn read_rules(&mut self, given: &Given) {
        switch(given, "sack", &mut self.sack);
        switch(given, "dsack", &mut self.dsack);
        switch(given, "timestamps", &mut self.timestamps);
        switch(given, "window_scaling", &mut self.window_scaling);
        switch(given, "rack", &mut self.rack);
        switch(given, "frto", &mut self.frto);
        switch(given, "undo", &mut self.undo);
        switch(given, "abc", &mut self.slow_start.byte_counting);
        switch(given, "limited_transmit", &mut self.limited_transmit);
        switch(given, "quick_ack", &mut self.quick_ack);
        switch(given, "nagle", &mut self.nagle);
        switch(given, "tso", &mut self.tso);
        switch(given, "autotune", &mut self.autotune);
        switch(given, "blocking", &mut self.blocking);
        match given.text("ecn") {
            Some("off") => self.ecn = Ecn::Off,
            Some("classic") => self.ecn = Ecn::Classic,
            Some("accurate") => self.ecn = Ecn::Accurate,
            Some(_) => self.ecn = Ecn::L4s,
            None => {}
        }
        match given.text("recovery") {
            Some("newreno") => self.recovery = Recovery::NewReno,
            Some("rfc6675") => self.recovery = Recovery::Rfc6675,
            Some(_) => self.recovery = Recovery::Prr,
            None => {}
        }
        match given.text("hystart") {
            Some("none") => self.slow_start.kind = hystart::Kind::None,
            Some("classic") => self.slow_start.kind = hystart::Kind::Classic,
            Some(_) => self.slow_start.kind = hystart::Kind::PlusPlus,
            None => {}
        }
        match given.text("rto") {
            Some("rfc6298") => self.rto_rule = RtoRule::Rfc6298,
            Some(_) => self.rto_rule = RtoRule::Linux,
            None => {}
        }
        match given.text("pacing") {
            Some("auto") => self.pacing = Pacing::Auto,
            Some("off") => self.pacing = Pacing::Off,
            Some(_) => self.pacing = Pacing::On,
            None => {}
        }
        match given.text("idle_restart") {
            Some("off") => self.idle_restart = IdleRestart::Off,
            Some("rfc5681") => self.idle_restart = IdleRestart::Rfc5681,
            Some(_) => self.idle_restart = IdleRestart::Decay,
            None => {}
        }
    }

    fn read_numbers(&mut self, given: &Given) {
        let small = |word: &str| given.integer(word).map(|v| u32::try_from(v).unwrap_or(u32::MAX));
        set(small("mss"), &mut self.mss);
        set(small("iw"), &mut self.initial_window);
        set(given.integer("abc_limit"), &mut self.slow_start.limit);
        set(given.time("min_rto"), &mut self.min_rto);
        set(given.time("initial_rto"), &mut self.initial_rto);
        set(given.time("max_rto"), &mut self.max_rto);
        set(small("syn_retries"), &mut self.syn_retries);
        set(small("retries"), &mut self.retries);
        set(small("delack"), &mut self.delayed_ack);
        set(given.time("delack_timeout"), &mut self.delayed_ack_timeout);
        set(given.integer("rwnd"), &mut self.receive_window);
        set(given.integer("sndbuf"), &mut self.send_buffer);
        set(given.time("time_wait"), &mut self.time_wait);
    }

    fn check(&self, given: &Given) -> Result<(), WordError> {
        if !(64..=65_000).contains(&self.mss) {
            return Err(given.error(
                "mss",
                format!("`mss` must be from 64 to 65000 bytes; found {}", self.mss),
            ));
        }
        if self.min_rto == 0 || self.min_rto > self.max_rto {
            return Err(given.error("min_rto", "`min_rto` must be above 0, and at most `max_rto`"));
        }
        if self.initial_rto == 0 || self.initial_rto > self.max_rto {
            return Err(
                given.error("initial_rto", "`initial_rto` must be above 0, and at most `max_rto`")
            );
        }
        if self.receive_window < u64::from(self.mss) {
            return Err(given
                .error("rwnd", format!("`rwnd` must be at least one `mss`, {} bytes", self.mss)));
        }
        if self.receive_window > sojourn_congestion::MAX_WINDOW {
            return Err(given.error("rwnd", "`rwnd` must be at most 1 GiB (RFC 7323)"));
        }
        if self.send_buffer < u64::from(self.mss) {
            return Err(given.error(
                "sndbuf",
                format!("`sndbuf` must be at least one `mss`, {} bytes", self.mss),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::{MILLISECOND, SECOND};

    #[test]
    fn reads_a_line() {
        let p = Params::parse("reno profile sack-2001 iw 3 min_rto 1s sack off").unwrap();
        assert_eq!(p.congestion, sojourn_congestion::Params::Reno);
        assert_eq!((p.initial_window, p.min_rto, p.sack), (3, SECOND, false));
        let p = Params::parse("cubic").unwrap();
        assert_eq!(p, Params::default());
        let p = Params::parse("cubic beta 0.5 hystart plus_plus delack_timeout 0").unwrap();
        assert!(
            matches!(p.congestion, sojourn_congestion::Params::Cubic(c) if (c.beta - 0.5).abs() < 1e-9)
        );
        assert_eq!(p.slow_start.kind, hystart::Kind::PlusPlus);
        assert_eq!(p.delayed_ack_timeout, 0);
        assert_eq!(Params::parse("dctcp").unwrap().ecn, Ecn::Accurate);
        assert_eq!(Params::parse("dctcp ecn l4s").unwrap().ecn, Ecn::L4s);
        let p = Params::parse("prague rtt_target 10ms rtt_transition 0").unwrap();
        let expected = prague::Params { rtt_target: 10 * MILLISECOND, rtt_transition: 0 };
        assert_eq!((p.ecn, p.congestion), (Ecn::L4s, sojourn_congestion::Params::Prague(expected)));
        assert_eq!(Params::parse("prague ecn off").unwrap().ecn, Ecn::Off);
        assert_eq!(Params::parse("bbr min_rto 5ms").unwrap().min_rto, 5 * MILLISECOND);
    }

    #[test]
    fn refuses_what_cannot_be() {
        let error = Params::parse("cubik").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("cubic"));
        assert!(Params::parse("reno beta 0.5").is_err());
        assert!(Params::parse("reno min_rto 10s max_rto 5s").is_err());
        assert!(Params::parse("reno mss 10").is_err());
        assert!(Params::parse("reno rwnd 2gb").is_err());
        assert!(Params::parse("reno profile linux-7").is_err());
    }

    /// The tables show the defaults of `linux-6`: each, written out, changes nothing.
    #[test]
    fn written_defaults_are_defaults() {
        for table in tables() {
            let plain = Params::parse(table.name).unwrap();
            for word in table.words.iter().filter(|w| !w.default.contains(' ')) {
                if ["dctcp", "prague"].contains(&table.name) && word.name == "ecn" {
                    continue;
                }
                let text = format!("{} {} {}", table.name, word.name, word.default);
                assert_eq!(Params::parse(&text).as_ref(), Ok(&plain), "{text}");
            }
        }
    }
}
