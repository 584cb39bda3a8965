//! RED's average backlog: its changes by samples and by idle times.

use super::params::Options;
use sojourn_units::Nanos;

/// Number of fraction bits of the average with [`Filter::Weight`].
const FRACTION: u8 = 24;

/// The computation of the average.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// Linux's computation with shifts and a table, for weights that are powers of two.
    Shift { wlog: u8, scell_log: u8, stab: Box<[u8; 256]> },
    /// A computation for any weight, in units of 2^-32, with the transmission time of a typical
    /// packet.
    Weight { weight: u64, packet_time: Nanos },
}

impl Filter {
    /// Returns Linux's computation with the numbers that `tc` sends.
    pub(super) fn shifted(options: &Options) -> Self {
        Self::Shift {
            wlog: options.wlog,
            scell_log: options.scell_log,
            stab: Box::new(options.stab),
        }
    }

    /// Returns a computation for any weight; an idle time counts as samples of 0 at distances of
    /// `packet_time`.
    pub(super) fn weighted(weight: f64, packet_time: Nanos) -> Self {
        Self::Weight {
            weight: ((weight * 4_294_967_296.0) as u64).clamp(1, 1 << 32),
            packet_time: packet_time.max(1),
        }
    }

    /// Returns whether the computation is more exact than Linux's.
    pub(super) fn is_fine(&self) -> bool {
        matches!(self, Self::Weight { .. })
    }

    /// Returns the number of fraction bits of the average.
    #[inline]
    pub(super) fn bits(&self) -> u8 {
        match self {
            Self::Shift { wlog, .. } => *wlog,
            Self::Weight { .. } => FRACTION,
        }
    }

    /// Returns the average after a sample of `backlog`.
    #[inline]
    pub(super) fn sample(&self, avg: u64, backlog: u64) -> u64 {
        match self {
            Self::Shift { wlog, .. } => avg.wrapping_add(backlog).wrapping_sub(avg >> wlog),
            Self::Weight { weight, .. } => {
                let error = i128::from(backlog << FRACTION) - i128::from(avg);
                (i128::from(avg) + ((error * i128::from(*weight)) >> 32)) as u64
            }
        }
    }

    /// Returns the average after an idle time of `idle`.
    pub(super) fn decay(&self, avg: u64, idle: Nanos) -> u64 {
        match self {
            Self::Shift { scell_log, stab, .. } => {
                let micros = (idle / 1000).min(255 << scell_log);
                let shift = stab[(micros >> scell_log) as usize & 255];
                if shift != 0 {
                    return avg >> shift;
                }
                // For short idle times, in which the average falls by less than half, the table has
                // 0. The average then falls linearly with the idle time, down to one half.
                let less = avg.wrapping_mul(micros) >> scell_log;
                if less < avg >> 1 { avg - less } else { avg >> 1 }
            }
            Self::Weight { weight, packet_time } => {
                let mut factor = (1u64 << 32) - weight;
                let mut packets = idle / packet_time;
                let mut avg = avg;
                while packets > 0 && avg > 0 {
                    if packets & 1 == 1 {
                        avg = ((u128::from(avg) * u128::from(factor)) >> 32) as u64;
                    }
                    factor = ((u128::from(factor) * u128::from(factor)) >> 32) as u64;
                    packets >>= 1;
                }
                avg
            }
        }
    }
}
