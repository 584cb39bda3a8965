//! Tins: the tin of each code point, and the share of each tin.

use super::shaper::Pace;
use crate::cobalt::Constants;
use sojourn_units::{Nanos, choices};

/// Maximum number of tins.
pub const TINS: usize = 8;
/// Number of queues in a tin.
pub const QUEUES: usize = 1024;

choices! {
    /// Division of code points into tins.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Diffserv {
        /// One tin for all packets.
        Besteffort = "besteffort",
        /// Three tins: best effort, bulk, voice.
        #[default]
        Diffserv3 = "diffserv3",
        /// Four tins: best effort, bulk, video, voice.
        Diffserv4 = "diffserv4",
        /// Eight tins, from lower effort to network control.
        Diffserv8 = "diffserv8",
        /// Eight tins by IP precedence, the upper three bits of the code point.
        Precedence = "precedence",
    }
}

impl Diffserv {
    /// Returns the number of tins.
    pub fn tins(self) -> usize {
        match self {
            Self::Besteffort => 1,
            Self::Diffserv3 => 3,
            Self::Diffserv4 => 4,
            Self::Diffserv8 | Self::Precedence => TINS,
        }
    }

    /// Returns the tin of a code point, counted from 0.
    #[inline]
    pub fn tin(self, dscp: u8) -> usize {
        match self {
            Self::Besteffort => 0,
            Self::Diffserv3 => match dscp {
                1 | 8 => 1,
                4 | 44 | 46 | 48 | 56 => 2,
                _ => 0,
            },
            Self::Diffserv4 => match dscp {
                1 | 8 => 1,
                4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
                32 | 40 | 44 | 46 | 48 | 56 => 3,
                _ => 0,
            },
            Self::Diffserv8 => match dscp {
                1 => 0,
                2 | 8 | 10 | 12 | 14 => 1,
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                4 | 18 | 20 | 22 => 4,
                16 => 5,
                32 | 40 | 44 | 46 => 6,
                48 | 56 => 7,
                _ => 2,
            },
            Self::Precedence => usize::from(dscp >> 3) % TINS,
        }
    }

    /// Returns each tin's rate in bytes per second (0 for no limit) and the bytes of its turn.
    fn shares(self, rate: u64) -> Vec<(u64, i32)> {
        let halved = |times: &[u32]| times.iter().map(|&n| (rate >> n, 1024 >> n)).collect();
        match self {
            Self::Besteffort => vec![(rate, 65_535)],
            Self::Diffserv3 => halved(&[0, 4, 2]),
            Self::Diffserv4 => halved(&[0, 4, 1, 2]),
            Self::Diffserv8 | Self::Precedence => {
                let less = |&(rate, weight): &(u64, i32)| {
                    Some((rate.wrapping_mul(7) >> 3, (weight * 7) >> 3))
                };
                std::iter::successors(Some((rate, 256)), less).take(TINS).collect()
            }
        }
    }

    /// Returns the constants of each tin; `rate` is in bytes per second, 0 for no shaper.
    pub fn numbers(self, rate: u64, mtu: u32, target: Nanos, interval: Nanos) -> Vec<Numbers> {
        self.shares(rate)
            .into_iter()
            .map(|(rate, quantum)| Numbers::new(rate, quantum, mtu, target, interval))
            .collect()
    }
}

/// Constants of a tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Rate up to which the tin has precedence (`diffserv`); not a limit. The first tin has the
    /// shaper's rate.
    pub pace: Pace,
    /// Bytes of a queue's turn, before the division between the queues of a host.
    pub flow_quantum: u32,
    /// Bytes of the tin's turn, without a shaper.
    pub tin_quantum: i32,
    /// COBALT's constants; the target is at least 1.5 transmission times of the largest frame at
    /// the tin's rate.
    pub constants: Constants,
}

impl Numbers {
    fn new(rate: u64, tin_quantum: i32, mtu: u32, target: Nanos, interval: Nanos) -> Self {
        let pace = Pace::new(rate);
        let mtu_time = pace.time(mtu);
        let slow = (mtu_time * 3 / 2).max(target);
        let flow_quantum = if rate == 0 { 1514 } else { (rate >> 12).clamp(300, 1514) as u32 };
        let constants = Constants {
            target: slow,
            interval: (interval + slow - target).max(2 * slow),
            mtu_time,
            ..Constants::default()
        };
        Self { pace, flow_quantum, tin_quantum, constants }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::MILLISECOND;
    use sojourn_units::declare::Choices;

    #[test]
    fn every_code_point_has_a_tin() {
        for &mode in Diffserv::ALL {
            let mut used: Vec<usize> = (0..64).map(|dscp| mode.tin(dscp)).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, (0..mode.tins()).collect::<Vec<_>>(), "{mode:?}");
        }
        // Expedited forwarding has the highest tin of `diffserv4`, lower effort the lowest of
        // `diffserv8`.
        assert_eq!(Diffserv::Diffserv4.tin(46), 3);
        assert_eq!(Diffserv::Diffserv8.tin(1), 0);
    }

    #[test]
    fn slow_tins_have_time_for_their_frames() {
        let numbers = Diffserv::Diffserv3.numbers(500_000, 1514, MILLISECOND, 20 * MILLISECOND);
        let of = |tin: usize| (numbers[tin].constants.target, numbers[tin].constants.interval);
        assert_eq!(of(0), (4_542_000, 23_542_000));
        assert_eq!(of(1), (72_672_000, 145_344_000));
        let fast = Diffserv::Besteffort.numbers(125_000_000, 1514, MILLISECOND, 20 * MILLISECOND);
        assert_eq!((fast[0].constants.target, fast[0].flow_quantum), (MILLISECOND, 1514));
    }
}
