//! Accurate ECN: its negotiation in the handshake, and the count of marked packets and bytes.
//!
//! Source: RFC 9768; where the RFC leaves a choice, Linux 7.3 (`tcp_ecn.h`, `tcp_input.c`).
//! Idea: the flags AE, CWR and ECE are one field of three bits (ACE). In the handshake the field
//! reports the ECN codepoint with which the peer's SYN or SYN-ACK arrived; afterwards it is a
//! counter, modulo 8 and from 5, of packets that arrived marked. An option counts the payload bytes
//! of these packets. The sender computes the differences of the counters, so a lost acknowledgement
//! loses no mark.
//! Invariants: if the ACE field may have wrapped, its difference is at most the number of delivered
//! segments; no mark is counted twice.
//!
//! Left out: the option on SYN and SYN-ACK; the option's counters of bytes with ECT(0) and ECT(1),
//! which no control uses (the option's length includes them); the detection of middleboxes that
//! clear the field or the option; a reduction of the window for a mark on a SYN; Linux's averages
//! of the segments per acknowledgement. The option is on every segment whose header has space for
//! two of its counters, so not next to a third SACK block.

use crate::segment::Flags;

/// Initial value of the counter of marked packets.
const INITIAL: u64 = 5;
const MASK: u64 = 7;
/// Mask of the counter of marked bytes, which has 24 bits.
const BYTES_MASK: u32 = 0x00ff_ffff;
/// Number of unreported marked packets at which an ACK leaves at once (`TCP_ACCECN_ACE_MAX_DELTA`).
const MOST_PENDING: u8 = 6;

/// Returns the ACE field of `flags`, 0 to 7.
#[inline]
pub(crate) fn field(flags: Flags) -> u64 {
    u64::from(flags.has(Flags::AE)) << 2
        | u64::from(flags.has(Flags::CWR)) << 1
        | u64::from(flags.has(Flags::ECE))
}

/// Returns the flags that encode an ACE field of 0 to 7.
#[inline]
pub(crate) fn flags(field: u64) -> Flags {
    let bit = |at: u64, flag| if field >> at & 1 == 1 { flag } else { Flags::NONE };
    bit(2, Flags::AE) | bit(1, Flags::CWR) | bit(0, Flags::ECE)
}

/// Returns the flags that report to the peer the ECN codepoint with which its SYN or SYN-ACK
/// arrived: that in the flags `syn`, or CE if `ce` (RFC 9768, table 2).
pub(crate) fn reflection(syn: Flags, ce: bool) -> Flags {
    flags(if ce {
        0b110
    } else if syn.has(Flags::ECT0) {
        0b100
    } else if syn.has(Flags::ECT1) {
        0b011
    } else {
        0b010
    })
}

/// The receiver's counters of marked packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MarkCounter {
    packets: u64,
    bytes: u64,
    /// Marked packets that arrived since the last segment left.
    pending: u8,
    /// ECN codepoint of the newest data segment that was not marked.
    last: Option<Flags>,
    last_ce: bool,
    /// Flags that report the SYN-ACK's codepoint, for the next segment if that has no payload.
    reflects: Option<Flags>,
}

impl MarkCounter {
    /// Takes the peer's SYN-ACK with the flags `syn`, marked if `ce`. The handshake's last
    /// acknowledgement reports its codepoint.
    pub(crate) fn on_syn_ack(&mut self, syn: Flags, ce: bool) {
        self.reflects = Some(reflection(syn, ce));
        self.packets += u64::from(ce);
    }

    /// Counts a segment with `payload` bytes, marked if `ce`. Returns whether it must be
    /// acknowledged at once (RFC 9768, section 3.2.2.5.1).
    pub(crate) fn on_segment(&mut self, flags: Flags, payload: u32, ce: bool) -> bool {
        if ce {
            self.packets += 1;
            self.bytes += u64::from(payload);
            self.pending = self.pending.saturating_add(1);
        }
        if payload == 0 {
            return false;
        }
        let codepoint = if flags.has(Flags::ECT0) {
            Flags::ECT0
        } else if flags.has(Flags::ECT1) {
            Flags::ECT1
        } else {
            Flags::NONE
        };
        let changed = self.last.is_some_and(|last| last != codepoint) && !ce || ce != self.last_ce;
        if !ce {
            self.last = Some(codepoint);
        }
        self.last_ce = ce;
        changed || self.pending >= MOST_PENDING
    }

    /// Returns the ACE field, as flags, of a segment that leaves; `bare` states that the segment
    /// has no payload.
    pub(crate) fn stamp(&mut self, bare: bool) -> Flags {
        self.pending = 0;
        match self.reflects.take() {
            Some(reflection) if bare => reflection,
            _ => flags((self.packets + INITIAL) & MASK),
        }
    }

    /// Returns the option's counter of marked bytes, modulo 2^24.
    pub(crate) fn option(&self) -> u32 {
        self.bytes as u32 & BYTES_MASK
    }
}

/// The marked packets and bytes that an acknowledgement newly reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// The peer's counters as far as the sender has read them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MarkReader {
    packets: u64,
    bytes: u32,
    /// Whether the next ACE field belongs to the handshake and is not a counter.
    skips: bool,
}

impl MarkReader {
    /// Takes the ACE field of the peer's last segment of the handshake, which is not a counter: it
    /// reports whether our SYN-ACK arrived marked.
    pub(crate) fn on_handshake(&mut self, field: u64) {
        self.skips = true;
        self.packets += u64::from(field == 0b110);
    }

    /// Returns the marks that are newly reported by the ACE field `field` and the option of an
    /// acknowledgement that newly delivered `delivered` bytes in segments of `mss` bytes (RFC 9768,
    /// appendix A.2; `tcp_accecn_process`).
    pub(crate) fn on_ack(
        &mut self,
        field: u64,
        option: Option<u32>,
        delivered: u64,
        mss: u64,
    ) -> Marks {
        if std::mem::take(&mut self.skips) {
            return Marks::default();
        }
        let least = field.wrapping_sub(self.packets.wrapping_add(INITIAL)) & MASK;
        let counted = option.map(|bytes| u64::from(bytes.wrapping_sub(self.bytes) & BYTES_MASK));
        // An option older than the last one has a negative signed 24-bit difference: ignore it.
        let counted = counted.filter(|bytes| bytes >> 23 == 0);
        if let (Some(bytes), Some(_)) = (option, counted) {
            self.bytes = bytes;
        }
        let segments = delivered.div_ceil(mss);
        let packets = if segments <= MASK {
            least
        } else {
            // The field may have wrapped. Assume the largest number of wraps that the delivered
            // segments allow, unless the marked bytes indicate that it did not wrap.
            let most = segments - ((segments - least) & MASK);
            match counted {
                Some(0) => least,
                Some(bytes) if bytes <= least * mss && bytes < most * mss / 2 => least,
                _ => most,
            }
        };
        self.packets = self.packets.wrapping_add(packets);
        let bytes = counted.unwrap_or_else(|| packets.saturating_mul(mss).min(delivered));
        Marks { packets, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    #[test]
    fn a_field_is_three_flags() {
        for value in 0..8 {
            assert_eq!(field(flags(value)), value);
        }
        assert_eq!(flags(0b111), Flags::AE | Flags::CWR | Flags::ECE);
        let of = |codepoint, ce| field(reflection(Flags::SYN | codepoint, ce));
        assert_eq!(of(Flags::NONE, false), 0b010);
        assert_eq!(of(Flags::ECT1, false), 0b011);
        assert_eq!(of(Flags::ECT0, false), 0b100);
        assert_eq!(of(Flags::ECT0, true), 0b110);
    }

    #[test]
    fn the_counter_starts_at_five_and_counts_marks() {
        let mut receiver = MarkCounter::default();
        assert_eq!(field(receiver.stamp(true)), 5);
        assert!(!receiver.on_segment(Flags::ECT0, 1000, false));
        assert!(receiver.on_segment(Flags::ECT0, 1000, true), "a change");
        assert!(!receiver.on_segment(Flags::ECT0, 500, true));
        assert_eq!((field(receiver.stamp(true)), receiver.option()), (7, 1500));
        assert!(receiver.on_segment(Flags::ECT0, 1000, false), "a change back");
        assert!(!receiver.on_segment(Flags::ECT0, 0, true), "an acknowledgement");
        assert_eq!((field(receiver.stamp(true)), receiver.option()), (0, 1500));
    }

    #[test]
    fn six_marks_are_acknowledged_at_once() {
        let mut receiver = MarkCounter::default();
        let at_once: Vec<_> =
            (0..8).map(|_| receiver.on_segment(Flags::ECT1, 1000, true)).collect();
        assert_eq!(at_once, [true, false, false, false, false, true, true, true]);
    }

    #[test]
    fn only_a_bare_segment_answers_the_syn_ack() {
        let mut receiver = MarkCounter::default();
        receiver.on_syn_ack(Flags::ECT1, false);
        assert_eq!(field(receiver.stamp(true)), 0b011);
        assert_eq!(field(receiver.stamp(true)), 5);
        receiver.on_syn_ack(Flags::ECT1, true);
        assert_eq!(field(receiver.stamp(false)), 6);
    }

    #[test]
    fn a_counter_that_may_have_wrapped_is_read_with_the_bytes() {
        let ack = |option, delivered| {
            MarkReader::default().on_ack(5 + 1, option, delivered * MSS, MSS).packets
        };
        assert_eq!(ack(None, 7), 1);
        assert_eq!(ack(None, 20), 17, "the greatest that fits");
        assert_eq!(ack(Some(0), 20), 1);
        assert_eq!(ack(Some(1000), 20), 1);
        assert_eq!(ack(Some(17_000), 20), 17);
    }

    proptest! {
        /// With the option, lost acknowledgements lose no mark.
        #[test]
        fn lost_acknowledgements_lose_no_mark(
            marks in prop::collection::vec((any::<bool>(), any::<bool>()), 1..300),
        ) {
            let mut receiver = MarkCounter::default();
            let mut sender = MarkReader::default();
            let (mut sent, mut read, mut delivered) = (0, 0, 0);
            let last = marks.len() - 1;
            for (i, (ce, arrives)) in marks.into_iter().enumerate() {
                receiver.on_segment(Flags::ECT0, 1000, ce);
                sent += u64::from(ce) * MSS;
                delivered += MSS;
                let (field, option) = (field(receiver.stamp(true)), receiver.option());
                if arrives || i == last {
                    read += sender.on_ack(field, Some(option), delivered, MSS).bytes;
                    delivered = 0;
                }
            }
            prop_assert_eq!(sent, read);
        }
    }
}
