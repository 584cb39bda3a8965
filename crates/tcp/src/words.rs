//! The description of a TCP in one line of words.
//!
//! `reno profile sack-2001 iw 3 min_rto 1s sack off`: the congestion control, then pairs of a
//! parameter and its value. The [`profile`](crate::profile) has the values of all other parameters.

use crate::params::{Ecn, Params};
use crate::profile::{LINUX_7_3, Profile};
use sojourn_congestion::{EcnUse, external, hystart};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Given, Kind, Table, Word, WordError};
use std::sync::LazyLock;

const PROFILE: Word = Word {
    name: "profile",
    kind: Kind::Choice { of: Profile::NAMES },
    default: "linux-7.3",
    doc: "Where all other defaults come from; the defaults shown are those of linux-7.3.",
};

static TABLES: LazyLock<Vec<&Table>> = LazyLock::new(|| {
    let table = |control: &Table| &*Box::leak(Box::new(table(control)));
    sojourn_congestion::tables().iter().copied().map(table).collect()
});

/// Returns the table of the words of TCP, of slow start and of `control`. Its memory is never
/// freed.
pub fn table(control: &Table) -> Table {
    let mut words = vec![PROFILE];
    for word in Params::WORDS {
        words.push(*word);
        if word.name == "undo" {
            words.extend(hystart::Params::WORDS);
        }
    }
    words.extend(control.words);
    Table { words: words.leak(), ..*control }
}

/// Returns the tables of all congestion controls.
pub fn tables() -> &'static [&'static Table] {
    &TABLES
}

impl Params {
    /// Returns the parameters of `profile` with the control `congestion`, and with the kind of ECN
    /// and the end of slow start that this control needs.
    pub fn with(profile: &Profile, congestion: sojourn_congestion::Params) -> Self {
        let mut params = profile.params();
        match congestion.ecn() {
            EcnUse::Host => {}
            EcnUse::Exact => params.ecn = Ecn::Accurate,
            EcnUse::L4s => params.ecn = Ecn::L4s,
        }
        if !congestion.has_hystart() {
            params.slow_start.kind = hystart::Kind::None;
        }
        params.congestion = congestion;
        params
    }

    /// Reads a description in one line.
    ///
    /// # Errors
    /// An unknown control or word, a value of the wrong kind, or values that contradict each other.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("transport", tables(), text)?;
        Self::read(&given, |profile| {
            let mut congestion = profile.control(table.name);
            congestion.set(&given)?;
            Ok(congestion)
        })
    }

    /// Returns the parameters with the external control `control` and the values `given`, which
    /// were read by a [`table`] of the control's words.
    ///
    /// # Errors
    /// A value of the wrong kind, or values that contradict each other.
    pub fn external(given: &Given, control: external::Params) -> Result<Self, WordError> {
        Self::read(given, |_| Ok(control.into()))
    }

    fn read(
        given: &Given,
        control: impl FnOnce(&Profile) -> Result<sojourn_congestion::Params, WordError>,
    ) -> Result<Self, WordError> {
        let profile = given.text("profile").and_then(Profile::named).unwrap_or(&LINUX_7_3);
        let mut params = Self::with(profile, control(profile)?);
        params.slow_start.set(given)?;
        params.set(given)?;
        params.check(given)?;
        Ok(params)
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
    use crate::params::Ecn;
    use crate::segment::Flags;
    use sojourn_congestion::{bbr, prague, reno};
    use sojourn_units::{MILLISECOND, SECOND};

    #[test]
    fn reads_a_line() {
        let p = Params::parse("reno profile sack-2001 iw 3 min_rto 1s sack off").unwrap();
        assert_eq!(p.congestion, sojourn_congestion::Params::Reno(reno::Params {}));
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
        let expected = prague::Params {
            rtt_target: 10 * MILLISECOND,
            rtt_transition: 0,
            classic_fallback: false,
        };
        assert_eq!((p.ecn, p.congestion), (Ecn::L4s, sojourn_congestion::Params::Prague(expected)));
        assert_eq!(Params::parse("prague ecn off").unwrap().ecn, Ecn::Off);
        let p = Params::parse("prague ecn accecn").unwrap();
        assert_eq!((p.ecn, p.ecn.codepoint(p.congestion.ecn())), (Ecn::Accecn, Flags::ECT1));
        let p = Params::parse("cubic ecn accecn").unwrap();
        assert_eq!((p.ecn, p.ecn.codepoint(p.congestion.ecn())), (Ecn::Accecn, Flags::ECT0));
        assert_eq!(Params::parse("cubic").unwrap().ecn, Ecn::Off, "net.ipv4.tcp_ecn = 2");
        assert_eq!(Params::parse("bbr min_rto 5ms").unwrap().min_rto, 5 * MILLISECOND);
    }

    #[test]
    fn a_profile_adapts_other_controls_than_its_own() {
        for (profile, expected) in
            [("linux-7.3", bbr::Variant::Linux), ("linux-6", bbr::Variant::Draft)]
        {
            let p = Params::parse(&format!("bbr profile {profile}")).unwrap();
            assert!(
                matches!(p.congestion, sojourn_congestion::Params::Bbr(b) if b.variant == expected)
            );
        }
        let p = Params::parse("bbr profile linux-7.3 variant draft").unwrap();
        assert_eq!(p.congestion, sojourn_congestion::Params::named("bbr").unwrap());
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
}
