//! The echo of congestion marks.
//!
//! Source: RFC 3168 (until CWR), RFC 8257 (exact), AccECN (counters); Linux: `tcp_data_ecn_check`,
//! `dctcp_ece_ack_update`.
//! Idea: a classic echo lasts from a mark until the sender's CWR. An exact echo follows each change
//! of marks.
//! Invariants: at most one ACK for a change of marks is owed at a time.

use super::acks::Acks;
use crate::accecn::MarkCounter;
use crate::params::Ecn;
use crate::segment::{Flags, Segment};
use sojourn_units::NEVER;

/// State of the echo.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    pub(super) ecn: Ecn,
    /// AccECN's counters, if AccECN is in use.
    marks: Option<Box<MarkCounter>>,
    /// An ECN-capable segment has arrived.
    seen_ect: bool,
    /// Classic ECN: whether segments carry ECE, from a mark until CWR. Exact echo: whether the
    /// newest segment was marked.
    is_on: bool,
    /// Exact echo: an ACK due for the segments before a change of marks: its number, and whether it
    /// carries ECE.
    pub(super) owed: Option<(u64, bool)>,
}

impl Echo {
    pub(super) fn new() -> Self {
        Self { ecn: Ecn::Off, marks: None, seen_ect: false, is_on: false, owed: None }
    }

    pub(super) fn marks(&mut self) -> &mut MarkCounter {
        self.marks.get_or_insert_default()
    }

    /// Takes a segment, marked if `ce`, while `nxt` is expected. Returns whether Linux acknowledges
    /// the next segments singly: beginning with a first mark or a retransmission, since the
    /// sender's window may be very small.
    #[inline]
    pub(super) fn on_segment(
        &mut self,
        acks: &mut Acks,
        nxt: u64,
        segment: &Segment,
        ce: bool,
        is_linux: bool,
    ) -> bool {
        let mut is_quick = false;
        match self.ecn {
            Ecn::Off | Ecn::Accecn => {}
            Ecn::Classic => {
                let has_cwr = segment.flags.has(Flags::CWR);
                self.is_on &= !has_cwr;
                if is_linux {
                    acks.now |= has_cwr;
                    let capable = ce || segment.flags.any(Flags::ECT0 | Flags::ECT1);
                    is_quick = (ce && !self.is_on) || (!capable && self.seen_ect);
                    self.seen_ect |= capable;
                }
                self.is_on |= ce;
            }
            Ecn::Accurate | Ecn::L4s => {
                if ce != self.is_on {
                    if acks.unacked > 0 {
                        self.owed = Some((nxt, self.is_on));
                        acks.unacked = 0;
                        acks.at = NEVER;
                    }
                    // Linux also reports the new state at once (`dctcp_ece_ack_update`).
                    acks.now |= is_linux;
                    self.is_on = ce;
                }
            }
        }
        is_quick
    }

    /// Returns the flags of the echo for a segment, which `is_pure` without payload.
    #[inline]
    pub(super) fn flags(&mut self, is_pure: bool) -> Flags {
        if self.ecn == Ecn::Accecn {
            self.marks().stamp(is_pure)
        } else if self.is_on {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }
}
