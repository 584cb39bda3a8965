//! The congestion window after a silence of the sender.
//!
//! Source: RFC 5681, section 4.1 (restart window); RFC 2861, section 3.1, after Linux's
//! `tcp_cwnd_restart`.

use crate::params::IdleRestart;
use sojourn_congestion::{MAX_WINDOW, Window};
use sojourn_units::Nanos;

/// The rule for cwnd after silence, and the initial window in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    pub(crate) rule: IdleRestart,
    pub(crate) initial: u64,
    /// Whether windows are counted in whole segments.
    pub(crate) whole: bool,
}

impl Restart {
    /// Lowers cwnd after a silence of `idle`, if that is longer than `rto`.
    pub(crate) fn apply(&self, window: &mut Window, idle: Nanos, rto: Nanos) {
        if idle <= rto {
            return;
        }
        let restart = window.cwnd.min(self.initial * window.mss);
        match self.rule {
            IdleRestart::Off => {}
            IdleRestart::Rfc5681 => window.set_cwnd(restart),
            IdleRestart::Decay => {
                let unit = if self.whole { window.mss } else { 1 };
                let cwnd = window.cwnd / unit;
                let kept = if self.whole { cwnd / 2 + cwnd / 4 } else { cwnd - cwnd / 4 } * unit;
                if window.ssthresh < MAX_WINDOW {
                    window.ssthresh = window.ssthresh.max(kept);
                }
                let halvings = (idle / rto).min(40) as u32;
                window.set_cwnd(((cwnd >> halvings) * unit).max(restart));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::SECOND;

    fn after(rule: IdleRestart, idle: Nanos) -> (u64, u64) {
        let mut window = Window { cwnd: 100_000, ssthresh: 50_000, mss: 1000 };
        Restart { rule, initial: 10, whole: false }.apply(&mut window, idle, SECOND);
        (window.cwnd, window.ssthresh)
    }

    #[test]
    fn a_pause_of_at_most_one_timeout_changes_nothing() {
        for rule in [IdleRestart::Off, IdleRestart::Rfc5681, IdleRestart::Decay] {
            assert_eq!(after(rule, SECOND), (100_000, 50_000));
        }
    }

    #[test]
    fn rfc_5681_restarts_with_the_initial_window() {
        assert_eq!(after(IdleRestart::Rfc5681, SECOND + 1), (10_000, 50_000));
    }

    #[test]
    fn the_window_decays_by_half_each_timeout_and_keeps_ssthresh() {
        assert_eq!(after(IdleRestart::Decay, SECOND + 1), (50_000, 75_000));
        assert_eq!(after(IdleRestart::Decay, 3 * SECOND), (12_500, 75_000));
        assert_eq!(after(IdleRestart::Decay, 100 * SECOND), (10_000, 75_000));
        assert_eq!(after(IdleRestart::Off, 100 * SECOND), (100_000, 50_000));
    }

    #[test]
    fn in_whole_segments_parts_are_rounded_down() {
        let mut window = Window { cwnd: 27_000, ssthresh: 5000, mss: 1000 };
        Restart { rule: IdleRestart::Decay, initial: 10, whole: true }.apply(
            &mut window,
            SECOND + 1,
            SECOND,
        );
        assert_eq!((window.cwnd, window.ssthresh), (13_000, 19_000));
    }
}
