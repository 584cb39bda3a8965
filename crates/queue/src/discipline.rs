//! The contract of a queue discipline: its calls, and its results and reasons.

use crate::packet::{Headers, Packet, Sender, TcpView};
use sojourn_measure::{Count, Histogram};
use sojourn_random::philox;
use sojourn_units::Nanos;

/// The reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The policy's probability or schedule selected the packet before the queue was full.
    Early,
    /// A threshold of the policy was reached, such as RED's `max`.
    Forced,
    /// The queue was full: its limit of packets, bytes or memory.
    Overflow,
    /// A faulty implementation took the packet out of the queue to measure its sojourn time
    /// (`daqm`).
    Measurement,
    /// The packet is an acknowledgement that a later one in the queue makes redundant.
    AckFilter,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Early, Self::Forced, Self::Overflow, Self::Measurement, Self::AckFilter];

    /// Returns the name of the reason in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Overflow => "overflow",
            Self::Measurement => "measurement",
            Self::AckFilter => "ack_filter",
        }
    }
}

/// The reason for a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MarkReason {
    /// Marked instead of an early drop.
    Early,
    /// Marked instead of a forced drop.
    Forced,
    /// Marked because the delay or backlog exceeded a fixed threshold: `ce_threshold`,
    /// `step_thresh`.
    CeThreshold,
}

/// The result of `enqueue`. The values are the kernel's return codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Return {
    /// The packet was queued, or it was dropped and the sending host is not notified
    /// (`NET_XMIT_SUCCESS`).
    Success = 0,
    /// The packet was dropped (`NET_XMIT_DROP`).
    Drop = 1,
    /// The queue is congested: this packet or a queued one was dropped (`NET_XMIT_CN`).
    Congestion = 2,
}

/// The result of `dequeue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue<P> {
    /// The packet to send.
    Packet(P),
    /// The queue is empty.
    Empty,
    /// The queue has packets, but a shaper holds all of them until this time.
    NotBefore(Nanos),
}

/// Random numbers and keyed hashes for a discipline. A discipline of the kernel draws the same
/// numbers, of the same widths and in the same order, as the kernel's code.
pub trait Draws {
    /// Returns 16 uniform random bits.
    fn draw_u16(&mut self) -> u16;
    /// Returns 32 uniform random bits.
    fn draw_u32(&mut self) -> u32;
    /// Returns 64 uniform random bits.
    fn draw_u64(&mut self) -> u64;

    /// Returns a uniform random integer from 0 to `n` - 1, from 32-bit draws with rejection, as the
    /// kernel's `get_random_u32_below`.
    fn draw_below(&mut self, n: u32) -> u32 {
        let mut product = u64::from(n) * u64::from(self.draw_u32());
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u32) < threshold {
                product = u64::from(n) * u64::from(self.draw_u32());
            }
        }
        (product >> 32) as u32
    }

    /// Returns a key for [`Draws::keyed_hash`]. A recording of the kernel's draws has no keys,
    /// since the kernel takes them from another generator.
    fn draw_key(&mut self) -> u64 {
        self.draw_u64()
    }

    /// Returns the hash of a flow under `key`. The result depends only on both arguments, and
    /// hashes under different keys are independent. The kernel hashes header fields instead; a
    /// replay returns the kernel's recorded hash.
    fn keyed_hash(&mut self, key: u64, flow_hash: u32) -> u32 {
        philox::block([flow_hash, 0, 0, 0], [key as u32, (key >> 32) as u32])[0]
    }

    /// Returns the flow that `fq` must discard now, as numbered in [`Discipline::flow_state`];
    /// `None` for no flow. The kernel's choice depends on the shape of its tree of flows, so only a
    /// recording knows it.
    fn stale_flow(&mut self) -> Option<u64> {
        None
    }
}

/// Receives the packets that a discipline drops, reports of marks, and requests for header fields.
pub trait Sink<P> {
    /// Takes a dropped packet. `queued` is true if it was in the queue and false if it was refused
    /// on arrival.
    fn dropped(&mut self, packet: P, reason: DropReason, queued: bool);
    /// Reports that CE was set on `packet`.
    fn marked(&mut self, packet: &P, reason: MarkReason);

    /// Divides a super-packet, which is arriving or has left, into its frames, in their order. From
    /// then on each frame counts as a packet. Without super-packets no discipline calls this method.
    fn split(&mut self, packet: P) -> Vec<P> {
        vec![packet]
    }

    /// Returns the TCP header of `packet`, which is arriving or queued; `None` if the packet has no
    /// readable TCP header. Packets need not carry these fields, since only disciplines that
    /// inspect headers call this method.
    fn tcp(&self, packet: &P) -> Option<TcpView>;

    /// Returns the protocol, ports and mark of the arriving `packet`, for filters on these fields
    /// and external policies.
    fn headers(&self, packet: &P) -> Headers;

    /// Returns the sending host's information about `packet`, which is arriving or leaving. Only
    /// `fq` calls this method. The default has no information, as for a packet from another host.
    fn sender(&self, _packet: &P) -> Sender {
        Sender::default()
    }
}

/// The surroundings of a discipline in one call.
#[derive(Debug)]
pub struct Call<'a, D, S> {
    /// Present time.
    pub now: Nanos,
    /// Source of random draws.
    pub draws: &'a mut D,
    /// Receiver of dropped packets and reports.
    pub sink: &'a mut S,
}

/// Adds a packet to an inner discipline, which may split it. Returns also how many packets it counts
/// as: its frames that were queued, or one.
#[inline]
pub(crate) fn offer<P: Packet>(
    inner: &mut impl Discipline<P>,
    packet: P,
    call: &mut Call<'_, impl Draws, impl Sink<P>>,
) -> (Return, u64) {
    if !packet.is_super() {
        return (inner.enqueue(packet, call), 1);
    }
    let before = inner.packets();
    let given = inner.enqueue(packet, call);
    (given, inner.packets().saturating_sub(before).max(1) as u64)
}

/// The queue of a class, with its measurements since the last [`Discipline::restart`].
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// Packets in the queue.
    pub backlog: Count,
    /// Packets that came to the class, including those in the queue at the start.
    pub offered: u64,
    /// Packets sent.
    pub sent: Count,
    /// Time of each sent packet in the queue, in nanoseconds.
    pub sojourn: &'a Histogram,
}

impl Leaf<'_> {
    /// Returns the number of packets that the queue has dropped.
    pub fn drops(&self) -> u64 {
        self.offered - self.sent.packets - self.backlog.packets
    }
}

/// The backlog of a queue; reading it has no effect.
pub trait View {
    /// Returns the number of packets in the queue.
    fn packets(&self) -> usize;
    /// Returns the number of bytes in the queue.
    fn bytes(&self) -> u64;
    /// Returns the time at which the `n`-th packet was enqueued; `None` if there are fewer packets.
    /// Packet 0 is the next to leave; a discipline with several internal queues counts in the order
    /// of arrival.
    fn enqueued_at(&self, n: usize) -> Option<Nanos>;
    /// Returns the time at which the packet of the last `dequeue` had been enqueued; `None` before
    /// the first.
    fn left_at(&self) -> Option<Nanos>;
}

/// Implements [`View`], except `enqueued_at`, by the fields `packets`, `bytes` and `left_at`.
macro_rules! counted {
    () => {
        fn packets(&self) -> usize {
            self.packets
        }

        fn bytes(&self) -> u64 {
            self.bytes
        }

        fn left_at(&self) -> Option<sojourn_units::Nanos> {
            self.left_at
        }
    };
}
pub(crate) use counted;

/// A queue discipline.
///
/// # Contract
/// - The time never decreases from one call to the next, and is never 0 (see
///   [`sojourn_units::EPOCH`]).
/// - Packets in = packets out + packets passed to the sink + packets in the queue. The same holds
///   for bytes.
/// - Packets of one flow leave in the order of arrival. Exceptions: a change of parameters has
///   moved flows to other queues; the flow has become a heavy hitter (`hhf`); the discipline has
///   separate queues for ECN code points, or orders packets by departure time (`fq`).
/// - `dequeue` returns a packet if the queue is not empty, unless the discipline is a shaper.
/// - After each call the backlog is within the limit, unless a change has lowered the limit.
/// - Equal calls and draws give equal results.
pub trait Discipline<P: Packet>: View {
    /// Adds a packet.
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return;

    /// Removes the next packet.
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P>;

    /// Sends `packet` at time `now` through the empty queue, with the effect of
    /// [`Discipline::enqueue`] followed by [`Discipline::dequeue`], and returns true. Returns false
    /// without any change if the queue is not empty or the discipline must decide about the packet.
    /// The shortcut saves the caller two copies of the packet.
    fn pass(&mut self, _now: Nanos, _packet: &P) -> bool {
        false
    }

    /// Returns whether `dequeue` on the empty queue changes no state.
    fn rests(&self) -> bool {
        false
    }

    /// Returns the packet that `dequeue` would return. Returns `None` if the discipline decides
    /// only on departure; then [`crate::Peek`] dequeues the packet to show it.
    fn head(&self) -> Option<Dequeue<&P>> {
        None
    }

    /// Returns the time at which a shaper wants the next `dequeue`; `None` for no request. A caller
    /// that dequeues whenever the link is free, and waits until [`Dequeue::NotBefore`], need not
    /// call this method.
    fn wake_up(&self) -> Option<Nanos> {
        None
    }

    /// Returns the time at which [`Discipline::on_timer`] is due; `None` without a periodic task.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// Runs the periodic task.
    fn on_timer(&mut self, _now: Nanos) {}

    /// Visits the internal state on which decisions depend, as pairs of the kernel's name and
    /// value.
    fn state(&self, _visit: &mut dyn FnMut(&'static str, i128)) {}

    /// Visits the state of bucket `_flow` of a discipline with several internal queues.
    fn flow_state(&self, _flow: usize, _visit: &mut dyn FnMut(&'static str, i128)) {}

    /// Visits the classes that hold packets, by name. The name is that of `tc`, such as `1:10`; for
    /// a class of a discipline inside a class it has both names, such as `1:10/10:1`. A packet that
    /// an outer discipline holds ready to send counts in no class. A discipline without classes
    /// visits nothing.
    fn leaves(&self, _visit: &mut dyn FnMut(&str, Leaf<'_>)) {}

    /// Begins the measurements of all classes anew, at the end of a warm-up.
    fn restart(&mut self) {}

    /// Visits the scheduling lists from the head on, as pairs of list and bucket.
    fn lists(&self, _visit: &mut dyn FnMut(usize, usize)) {}

    /// Visits the counters since the queue's creation, under the kernel's names. The first six are
    /// those of [`Totals::visit`].
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64));
}

/// Visits fields under their own names, such as `visit_fields!(visit, self.counters, [early])`.
macro_rules! visit_fields {
    ($visit:ident, $owner:expr, [$($field:ident),+ $(,)?]) => {
        $($visit(stringify!($field), $owner.$field.into());)+
    };
}
pub(crate) use visit_fields;

/// Counters that every discipline has (the kernel's `gnet_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of packets dropped, including packets dropped by a change of parameters where the
    /// kernel counts them.
    pub drops: u64,
    /// Counter `overlimits` of `tc -s`, which each discipline defines: such as decisions to drop or
    /// mark (RED and its variants), or waits of a shaper.
    pub overlimits: u64,
    /// Number of packets sent.
    pub packets: u64,
    /// Number of bytes sent.
    pub bytes: u64,
}

impl Totals {
    /// Number of counters that every discipline has.
    pub const COUNT: usize = 6;

    /// Counts a sent packet of `bytes` bytes.
    #[inline]
    pub fn sent(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Counts a leaving packet and returns the result of `dequeue`: the packet, or `Empty` for
    /// `None`.
    #[inline]
    pub fn leave<P: Packet>(&mut self, packet: Option<P>) -> Dequeue<P> {
        let Some(packet) = packet else { return Dequeue::Empty };
        self.sent(packet.len());
        Dequeue::Packet(packet)
    }

    /// Drops an arriving packet and counts the drop.
    #[inline]
    pub fn refuse<P>(&mut self, packet: P, reason: DropReason, sink: &mut impl Sink<P>) {
        self.drops += 1;
        sink.dropped(packet, reason, false);
    }

    /// Visits the six counters of every discipline: name and value.
    pub fn visit(&self, view: &impl View, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("qlen", view.packets() as u64);
        visit("backlog", view.bytes());
        visit_fields!(visit, self, [drops, overlimits, packets, bytes]);
    }
}
