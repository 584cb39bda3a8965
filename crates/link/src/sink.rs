//! What a link tells its caller.

use sojourn_queue::{DropReason, MarkReason, TcpView};
use sojourn_units::Nanos;

/// A queue's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets queued.
    pub packets: u32,
    /// Bytes queued.
    pub bytes: u64,
}

/// Receives what happens on a link, in the order of time, each event with its theoretical time.
///
/// Every packet offered ends in exactly one of `dropped`, `abandoned`, `lost` and `delivered`, and every
/// copy that `duplicated` announces in one of the last two.
pub trait Sink<P> {
    /// `packet` comes to the queue, which holds `before`. If the queue refuses it, `dropped` follows
    /// with `queued` false.
    #[inline]
    fn offered(&mut self, _at: Nanos, _packet: &P, _before: Backlog) {}

    /// The queue dropped `packet`, which had been queued or was refused on arrival.
    #[inline]
    fn dropped(&mut self, _at: Nanos, _packet: P, _reason: DropReason, _queued: bool) {}

    /// The queue set CE on `packet`.
    #[inline]
    fn marked(&mut self, _at: Nanos, _packet: &P, _reason: MarkReason) {}

    /// `packet` left the queue, which still holds `after`, and its transmission starts, or it waits in
    /// the transmit ring for that; the time since `offered` is its sojourn time.
    #[inline]
    fn departed(&mut self, _at: Nanos, _packet: &P, _after: Backlog) {}

    /// The transmitter gave `packet` up after it had departed: the shared medium was busy at every
    /// attempt.
    #[inline]
    fn abandoned(&mut self, _at: Nanos, _packet: P) {}

    /// The wire will lose `packet`.
    #[inline]
    fn lost(&mut self, _at: Nanos, _packet: P) {}

    /// The wire carries a copy of `packet` as well.
    #[inline]
    fn duplicated(&mut self, _at: Nanos, _packet: &P) {}

    /// The wire flips a bit of `packet`; `entropy` chooses which.
    #[inline]
    fn corrupted(&mut self, _at: Nanos, _packet: &mut P, _entropy: u32) {}

    /// The TCP header of `packet`, which is at or in the queue, if it has one that can be read. The
    /// queue's decisions depend on it, so there is no default.
    fn tcp(&self, packet: &P) -> Option<TcpView>;

    /// `packet` is at the far end.
    fn delivered(&mut self, at: Nanos, packet: P);
}
