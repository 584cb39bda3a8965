//! The phase of congestion control, and the changes of cwnd in it.
//!
//! Source: RFC 5681, RFC 6582 and RFC 6675 (recovery and its end), RFC 6937 (the reduction), RFC
//! 3168 section 6.1.2 (reduction on ECN); the phases are Linux's `tcp_ca_state`.
//! Idea: a loss or an ECN echo sets ssthresh. Unless the control sets cwnd itself, cwnd follows at
//! once without PRR, and over one round with PRR.
//! Invariant: outside of [`Phase::Open`] the phase ends when SND.UNA reaches the recovery point
//! ([`Phase::Reduced`] ends beyond it if windows count whole segments), or earlier by an undo.

use super::prr::Prr;
use crate::params::Recovery as Method;
use crate::rare::Rare;
use sojourn_congestion::Window;

/// The sender's phase of congestion control (Linux's `tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No reduction and no repair is in progress.
    Open,
    /// The window was reduced for an ECN echo, or for a loss that a tail loss probe repaired; the
    /// phase ends with the round.
    Reduced,
    /// Losses found by acknowledgements are being repaired.
    Recovery,
    /// The retransmission timer has expired, and the losses are being repaired.
    Loss,
}

impl Phase {
    /// Returns whether the window is being reduced to ssthresh.
    pub(crate) fn is_reducing(self) -> bool {
        matches!(self, Self::Recovery | Self::Reduced)
    }
}

/// The present phase.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    /// `RecoveryPoint`: the phase ends when all numbers below this are acknowledged.
    pub(crate) point: u64,
    method: Method,
    /// Whether the control sets cwnd also in a recovery.
    owns_window: bool,
    prr: Rare<Prr>,
    /// Whether windows are counted in whole segments, as in Linux.
    whole: bool,
    /// Whether the next retransmission leaves regardless of cwnd, as the first of a recovery does
    /// (RFC 6675, section 5, step 4.3).
    forced: bool,
    /// `RescueRxt`: whether the rescue retransmission of this recovery has left.
    rescued: bool,
}

impl Recovery {
    pub(crate) fn new(method: Method, owns_window: bool) -> Self {
        Self {
            phase: Phase::Open,
            point: 0,
            method,
            owns_window,
            prr: Rare::new(),
            whole: false,
            forced: false,
            rescued: false,
        }
    }

    /// Counts windows in whole segments, if `whole`.
    #[must_use]
    pub(crate) fn counting(self, whole: bool) -> Self {
        Self { whole, ..self }
    }

    /// Returns whether windows are counted in whole segments.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns whether losses are being repaired, by acknowledgements or after a timeout.
    pub(crate) fn is_repairing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Returns whether the window is being reduced to ssthresh.
    pub(crate) fn is_reducing(&self) -> bool {
        self.phase.is_reducing()
    }

    /// Returns whether a loss that is found now begins a recovery; `again`: a retransmission was
    /// lost, which in Linux also begins one after a timeout.
    pub(crate) fn may_enter(&self, again: bool) -> bool {
        match self.phase {
            Phase::Open | Phase::Reduced => true,
            Phase::Loss => again && self.whole,
            Phase::Recovery => false,
        }
    }

    /// Returns whether losses are found by SACK blocks.
    pub(crate) fn uses_sack(&self) -> bool {
        self.method != Method::NewReno
    }

    /// Returns whether the control sets cwnd also in a recovery.
    pub(crate) fn owns_window(&self) -> bool {
        self.owns_window
    }

    /// Begins a reduction to `ssthresh`, with `flight` bytes outstanding.
    pub(crate) fn reduce(&mut self, window: &mut Window, ssthresh: u64, flight: u64) {
        window.ssthresh = ssthresh;
        *self.prr = if self.whole { Prr::start_whole(window) } else { Prr::start(flight) };
        if self.method != Method::Prr && !self.owns_window {
            window.set_cwnd(window.cwnd.min(ssthresh));
        }
    }

    /// Begins `phase`, with `nxt` as its recovery point.
    pub(crate) fn enter(&mut self, phase: Phase, nxt: u64) {
        self.phase = phase;
        self.point = nxt;
        if phase != Phase::Reduced {
            self.forced = true;
        }
        if phase == Phase::Recovery {
            self.rescued = false;
        }
    }

    /// Returns whether the phase is over when all data below `una` is acknowledged.
    #[inline]
    pub(crate) fn is_over(&self, una: u64) -> bool {
        match self.phase {
            Phase::Open => false,
            // Linux: the phase lasts until the next new segment is acknowledged, which carries CWR.
            Phase::Reduced if self.whole => una > self.point,
            _ => una >= self.point,
        }
    }

    /// Ends the phase. Returns the phase that ended.
    pub(crate) fn leave(&mut self) -> Phase {
        self.forced = false;
        std::mem::replace(&mut self.phase, Phase::Open)
    }

    /// Sets cwnd after the phase `left`, with `pipe` bytes in flight.
    pub(crate) fn deflate(&self, left: Phase, window: &mut Window, pipe: u64) {
        let mut cwnd = window.ssthresh;
        if self.method == Method::NewReno && left == Phase::Recovery {
            // RFC 6582, section 3.2, step 3, option 1: no burst.
            cwnd = cwnd.min(pipe.max(window.mss) + window.mss);
        }
        window.set_cwnd(cwnd.min(window.cwnd.max(window.ssthresh)));
    }

    /// Counts `bytes` bytes that left.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        if self.phase != Phase::Open {
            self.prr.on_sent(bytes);
        }
    }

    /// Returns whether the next retransmission leaves regardless of cwnd.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced
    }

    /// Notes that a retransmission left.
    pub(crate) fn on_retransmit(&mut self) {
        self.forced = false;
    }

    /// Sets cwnd on an acknowledgement if PRR is in use; see [`Prr::on_ack`].
    #[inline]
    pub(crate) fn on_ack(&mut self, window: &mut Window, delivered: u64, pipe: u64, safe: bool) {
        if self.is_reducing() && !self.owns_window && self.method == Method::Prr {
            self.prr.on_ack(window, delivered, pipe, safe);
        }
    }

    /// Returns whether segments not known to be lost may be sent again (RFC 6675, `NextSeg`, rules
    /// 3 and 4).
    pub(crate) fn sends_unsure(&self) -> bool {
        self.phase == Phase::Recovery && self.method == Method::Rfc6675
    }

    /// Returns whether the rescue retransmission of RFC 6675 may leave.
    pub(crate) fn may_rescue(&self) -> bool {
        !self.rescued
    }

    /// Notes that the rescue retransmission left.
    pub(crate) fn on_rescue(&mut self) {
        self.rescued = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { cwnd: 20_000, ssthresh: 1 << 30, mss: 1000 };

    #[test]
    fn a_recovery_ends_at_its_point() {
        let mut recovery = Recovery::new(Method::Rfc6675, false);
        assert!(!recovery.is_over(u64::MAX), "nothing has begun");
        recovery.enter(Phase::Recovery, 100);
        assert!(!recovery.is_over(99));
        assert!(recovery.is_over(100));
        assert_eq!(recovery.leave(), Phase::Recovery);
        assert!(recovery.is_open());
    }

    #[test]
    fn in_whole_segments_a_reduction_without_losses_lasts_until_beyond_its_point() {
        let mut recovery = Recovery::new(Method::Prr, false).counting(true);
        recovery.enter(Phase::Reduced, 100);
        assert!(!recovery.is_over(100));
        assert!(recovery.is_over(101));
        recovery.enter(Phase::Recovery, 100);
        assert!(recovery.is_over(100));
    }

    #[test]
    fn cwnd_falls_at_once_only_without_prr() {
        for (method, cwnd) in
            [(Method::NewReno, 10_000), (Method::Rfc6675, 10_000), (Method::Prr, 20_000)]
        {
            let mut window = WINDOW;
            Recovery::new(method, false).reduce(&mut window, 10_000, 20_000);
            assert_eq!((window.cwnd, window.ssthresh), (cwnd, 10_000), "{method:?}");
        }
    }

    #[test]
    fn a_control_that_owns_the_window_keeps_it() {
        for method in [Method::NewReno, Method::Rfc6675, Method::Prr] {
            let mut window = WINDOW;
            let mut recovery = Recovery::new(method, true);
            recovery.reduce(&mut window, 10_000, 20_000);
            recovery.enter(Phase::Recovery, 100);
            recovery.on_ack(&mut window, 1000, 5000, false);
            assert_eq!(window.cwnd, 20_000, "{method:?}");
        }
    }

    #[test]
    fn only_the_first_retransmission_is_forced() {
        let mut recovery = Recovery::new(Method::Prr, false);
        recovery.enter(Phase::Reduced, 100);
        assert!(!recovery.is_forced());
        recovery.enter(Phase::Recovery, 100);
        assert!(recovery.is_forced());
        recovery.on_retransmit();
        assert!(!recovery.is_forced());
    }

    #[test]
    fn newreno_leaves_recovery_without_a_burst() {
        let mut window = Window { cwnd: 10_000, ssthresh: 10_000, mss: 1000 };
        Recovery::new(Method::NewReno, false).deflate(Phase::Recovery, &mut window, 2000);
        assert_eq!(window.cwnd, 3000);
        window.cwnd = 10_000;
        Recovery::new(Method::Rfc6675, false).deflate(Phase::Recovery, &mut window, 2000);
        assert_eq!(window.cwnd, 10_000);
    }

    #[test]
    fn one_rescue_retransmission_in_each_recovery() {
        let mut recovery = Recovery::new(Method::Rfc6675, false);
        recovery.enter(Phase::Recovery, 100);
        assert!(recovery.sends_unsure() && recovery.may_rescue());
        recovery.on_rescue();
        assert!(!recovery.may_rescue());
        recovery.enter(Phase::Recovery, 200);
        assert!(recovery.may_rescue());
    }
}
