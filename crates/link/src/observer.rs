//! Events on a link, and the trait that receives them.

use sojourn_queue::{DropReason, Headers, MarkReason, Sender, TcpView};
use sojourn_units::Nanos;

/// Events of a packet on a link.
///
/// Every packet offered ends in exactly one of `Dropped`, `Abandoned`, `Lost` and `Delivered`, and
/// every copy, which `Duplicated` announces, ends in `Lost` or `Delivered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The packet comes to the queue. If the queue refuses it, `Dropped` follows with `queued`
    /// false.
    Offered,
    /// The queue dropped the packet.
    Dropped {
        /// Reason of the drop.
        reason: DropReason,
        /// Whether the packet had been queued; otherwise it was refused on arrival.
        queued: bool,
    },
    /// The queue set CE on the packet, or the line did so instead of losing the packet.
    Marked(MarkReason),
    /// The packet left the queue, and its transmission starts, or it waits in the transmit ring for
    /// its transmission; the time since `Offered` is its sojourn time.
    Departed,
    /// The transmitter gave the departed packet up: the shared medium was busy at every attempt.
    Abandoned,
    /// The wire will lose the packet.
    Lost,
    /// The wire carries a copy of the packet as well.
    Duplicated,
    /// The wire flips a bit of the packet, which this number chooses ([`Corrupt::corrupt`]
    /// follows).
    Corrupted(u32),
    /// The packet arrives at the far end.
    Delivered,
}

/// Receives the events of a link in the order of time.
///
/// No method that a discipline's decisions about single frames depend on has a default, so that an
/// observer that wraps another one forwards all such calls.
pub trait Observer<P> {
    /// `event` happens to `packet` at the theoretical time `at`.
    fn on_event(&mut self, at: Nanos, packet: &P, event: Event);

    /// Takes the packet that has arrived at the far end, after [`Event::Delivered`]; a link in
    /// closed form keeps it. The default drops the packet, for observers that copied it before.
    #[inline]
    fn landed(&mut self, _at: Nanos, _packet: P) {}

    /// Divides a super-packet into its frames, in their order. Only a network has super-packets.
    fn split(&mut self, packet: P) -> Vec<P> {
        vec![packet]
    }

    /// Returns the TCP header of `packet`, which arrives at the queue or is in it; `None` without a
    /// readable header. Decisions of disciplines that read TCP headers depend on it.
    fn tcp(&self, packet: &P) -> Option<TcpView>;

    /// Returns the protocol, ports and mark of `packet`, which arrives at the queue. Filters choose
    /// the packet's class by them.
    fn headers(&self, packet: &P) -> Headers;

    /// Returns the sending host's data on `packet`, if the link's queue is on this host. Decisions
    /// of `fq` depend on these data.
    fn sender(&self, packet: &P) -> Sender;
}

/// A packet that a wire can damage.
pub trait Corrupt {
    /// Flips the bit that `entropy` chooses.
    fn corrupt(&mut self, entropy: u32);
}
