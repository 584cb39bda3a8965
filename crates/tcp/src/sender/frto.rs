//! Detection of spurious retransmission timeouts.
//!
//! Source: RFC 5682, section 3.1 (the SACK-enhanced F-RTO), after Linux's `tcp_process_loss`.
//! Idea: after a timeout only the first segment is sent again. If its acknowledgement does not
//! cover all data sent before the timeout, new data is sent instead of retransmissions. An
//! acknowledgement of a segment that was sent only once proves that the original segments were only
//! late.
//! Invariants: at most one round of new data for each timeout; the algorithm runs only after a
//! timeout outside of a recovery.

/// The step of the algorithm (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The algorithm does not run: RTO recovery is conventional.
    Off,
    /// Step 1: the first segment is sent again.
    Retransmitted,
    /// Step 2b: new data is sent.
    NewData,
}

/// The verdict of an acknowledgement on the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Step 3b: the timeout was spurious.
    Spurious,
    /// Step 2b: send new data.
    SendNew,
    /// Steps 2a and 3a: continue with retransmissions.
    Conventional,
    /// The algorithm does not run.
    None,
}

/// F-RTO's state.
#[derive(Clone, Debug)]
pub(crate) struct Frto {
    enabled: bool,
    step: Step,
}

impl Frto {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, step: Step::Off }
    }

    /// The retransmission timer expired: the algorithm starts if it `may`, that is, outside of a
    /// recovery or at a repeated timeout of the same segment (sections 3.1, step 1, and 3.2).
    pub(crate) fn on_timeout(&mut self, may: bool) {
        self.step = if self.enabled && may { Step::Retransmitted } else { Step::Off };
    }

    /// Stops the algorithm: RTO recovery is over, or continues conventionally.
    pub(crate) fn stop(&mut self) {
        self.step = Step::Off;
    }

    /// Returns whether new data is to be sent although segments are taken for lost.
    pub(crate) fn sends_new_data(&self) -> bool {
        self.step == Step::NewData
    }

    /// Returns the verdict of an acknowledgement after the timeout. `original`: it covers a segment
    /// that was sent only once. `advanced`: it moves SND.UNA, but does not cover all data sent
    /// before the timeout.
    #[inline]
    pub(crate) fn on_ack(&mut self, original: bool, advanced: bool) -> Verdict {
        match self.step {
            Step::Off => Verdict::None,
            _ if original => Verdict::Spurious,
            Step::Retransmitted if advanced => {
                self.step = Step::NewData;
                Verdict::SendNew
            }
            _ => {
                self.step = Step::Off;
                Verdict::Conventional
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_timeout() -> Frto {
        let mut frto = Frto::new(true);
        frto.on_timeout(true);
        frto
    }

    #[test]
    fn an_original_acknowledged_after_new_data_proves_a_spurious_timeout() {
        let mut frto = after_timeout();
        assert!(!frto.sends_new_data());
        assert_eq!(frto.on_ack(false, true), Verdict::SendNew);
        assert!(frto.sends_new_data());
        assert_eq!(frto.on_ack(true, true), Verdict::Spurious);
    }

    #[test]
    fn a_duplicate_after_the_retransmission_means_conventional_recovery() {
        let mut frto = after_timeout();
        assert_eq!(frto.on_ack(false, false), Verdict::Conventional);
        assert_eq!(frto.on_ack(true, true), Verdict::None);
    }

    #[test]
    fn new_data_is_sent_in_one_round_only() {
        let mut frto = after_timeout();
        frto.on_ack(false, true);
        assert_eq!(frto.on_ack(false, true), Verdict::Conventional);
        assert!(!frto.sends_new_data());
    }

    #[test]
    fn it_does_not_run_in_a_recovery_or_when_it_is_off() {
        let mut frto = Frto::new(true);
        frto.on_timeout(false);
        assert_eq!(frto.on_ack(true, true), Verdict::None);
        let mut frto = Frto::new(false);
        frto.on_timeout(true);
        assert_eq!(frto.on_ack(true, true), Verdict::None);
    }
}
