//! The contract of a queue discipline.

use crate::packet::{Headers, Packet, Sender, TcpView};
use sojourn_random::philox;
use sojourn_units::Nanos;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// By the policy's probability or schedule, before it had to.
    Early,
    /// By the policy, because its upper threshold was reached.
    Forced,
    /// There was no room: packet, byte or memory limit.
    Overflow,
    /// By the policy, to learn how long it had waited: a faulty one measures by taking packets out.
    Measurement,
    /// It was an acknowledgement that a later one in the queue makes redundant.
    AckFilter,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Early, Self::Forced, Self::Overflow, Self::Measurement, Self::AckFilter];

    /// Returns the word used in results.
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

/// Why a packet was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MarkReason {
    /// Instead of an early drop.
    Early,
    /// Instead of a forced drop.
    Forced,
    /// It was beyond a fixed threshold: `ce_threshold`, `step_thresh`.
    CeThreshold,
}

/// The result of `enqueue`, after the kernel's return codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Return {
    /// Queued, or dropped without a notification of the sender's host (`NET_XMIT_SUCCESS`).
    Success = 0,
    /// Dropped (`NET_XMIT_DROP`).
    Drop = 1,
    /// Congestion in this packet's flow (`NET_XMIT_CN`): it or another packet was dropped.
    Congestion = 2,
}

/// The result of `dequeue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue<P> {
    /// The packet to send.
    Packet(P),
    /// Nothing is queued.
    Empty,
    /// Packets are queued, but none may leave before this time (shapers).
    NotBefore(Nanos),
}

/// Random draws, by width, and keyed hashes. A discipline asks for exactly those that the kernel's code
/// makes.
pub trait Draws {
    /// Returns 16 uniform bits.
    fn draw_u16(&mut self) -> u16;
    /// Returns 32 uniform bits.
    fn draw_u32(&mut self) -> u32;
    /// Returns 64 uniform bits.
    fn draw_u64(&mut self) -> u64;

    /// Returns a whole number below `n`, without bias, from 32-bit draws (the kernel's
    /// `get_random_u32_below`).
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

    /// Returns a key for [`Draws::keyed_hash`]. The kernel has its keys from elsewhere than its
    /// draws, so a recording of draws does not hold them.
    fn draw_key(&mut self) -> u64 {
        self.draw_u64()
    }

    /// Returns the hash of a flow under a key: under one key always the same, under the next as
    /// good as drawn anew. The kernel hashes a packet's header fields; a recording hands in what
    /// came out.
    fn keyed_hash(&mut self, key: u64, flow_hash: u32) -> u32 {
        philox::block([flow_hash, 0, 0, 0], [key as u32, (key >> 32) as u32])[0]
    }

    /// Returns a flow that `fq` is to forget now, as [`Discipline::flow_state`] numbers it. Which
    /// one the kernel meets depends on the shape of its tree of flows, so a recording says it;
    /// without one, none is forgotten.
    fn stale_flow(&mut self) -> Option<u64> {
        None
    }
}

/// Receives what a discipline decides against.
pub trait Sink<P> {
    /// Records that `packet` was dropped; it had been queued before (`queued`) or was refused on arrival.
    fn dropped(&mut self, packet: P, reason: DropReason, queued: bool);
    /// Records that CE was set on `packet`.
    fn marked(&mut self, packet: &P, reason: MarkReason);

    /// Returns the TCP header of `packet`, which is arriving or queued, if it has one that can be
    /// read. Asked only by disciplines that look into packets, so that packets need not carry what
    /// they find there.
    fn tcp(&self, packet: &P) -> Option<TcpView>;

    /// Returns the protocol, ports and mark of `packet`, which is arriving. Only filters by them
    /// ask for it.
    fn headers(&self, packet: &P) -> Headers;

    /// Returns the sending host's knowledge of `packet`, which is arriving or leaving. Called by
    /// `fq` only. By default nothing is known: the packet comes from elsewhere.
    #[inline]
    fn sender(&self, _packet: &P) -> Sender {
        Sender::default()
    }
}

/// The readable state of a queue. Reading changes nothing.
pub trait View {
    /// Packets queued.
    fn packets(&self) -> usize;
    /// Bytes queued.
    fn bytes(&self) -> u64;
    /// Returns when the `n`-th queued packet (0 leaves next, in the order of arrival where the
    /// discipline keeps several queues) was enqueued.
    fn enqueued_at(&self, n: usize) -> Option<Nanos>;
    /// Returns when the packet that a dequeue has just given had been enqueued.
    fn left_at(&self) -> Option<Nanos>;
}

/// A queue discipline.
///
/// # Contract
/// - `now` never decreases from call to call, and is never 0 (see [`sojourn_units::EPOCH`]).
/// - packets in = packets out + packets handed to the sink + packets queued, and the same for bytes.
/// - Packets of one flow leave in the order of arrival, unless a change has sorted flows anew, or the flow has become
///   a heavy hitter (`hhf`);
///   where a discipline sorts them further (by the ECN field), those of one flow and one queue.
/// - `dequeue` returns a packet whenever one is queued, unless the discipline is a shaper.
/// - The backlog never exceeds the limit after a call returns.
/// - The same calls and draws give the same results.
pub trait Discipline<P: Packet>: View {
    /// Offers a packet at `now`.
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return;

    /// Asks for the next packet at `now`.
    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P>;

    /// Lets `packet` pass at `now` while nothing is queued, exactly as [`Discipline::enqueue`] and
    /// then [`Discipline::dequeue`] would, and returns whether it did; otherwise nothing has
    /// changed. A discipline without a decision about such a packet saves its caller two copies of
    /// it.
    fn pass(&mut self, _now: Nanos, _packet: &P) -> bool {
        false
    }

    /// Returns whether asking the empty queue for a packet changes nothing.
    fn rests(&self) -> bool {
        false
    }

    /// Returns the next packet to be dequeued, if it is known without dequeuing: no decision is
    /// made on departure. To learn the next packet of another discipline, dequeue it
    /// ([`crate::Peek`]).
    fn head(&self) -> Option<Dequeue<&P>> {
        None
    }

    /// Returns when the last call asked to be called again. Only shapers ask; who asks for packets
    /// whenever the link is free, and waits as [`Dequeue::NotBefore`] says, need not look.
    fn wake_up(&self) -> Option<Nanos> {
        None
    }

    /// Returns when [`Discipline::on_timer`] is due, if the discipline has a periodic task.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// Runs the periodic task.
    fn on_timer(&mut self, _now: Nanos) {}

    /// Visits the internal state that decisions depend on, by the names that the kernel's code uses.
    fn state(&self, visit: &mut dyn FnMut(&'static str, i128));

    /// Visits the state of one bucket of a discipline that keeps several queues.
    fn flow_state(&self, _flow: usize, _visit: &mut dyn FnMut(&'static str, i128)) {}

    /// Visits the classes that hold packets, with packets and bytes of each. A class has its name in `tc`, such as
    /// `1:10`; a class of a discipline in another class has both names, such as `1:10/10:1`. A packet that an outer
    /// discipline has taken out before it leaves counts in no class. A discipline without classes visits nothing.
    fn leaves(&self, _visit: &mut dyn FnMut(&str, usize, u64)) {}

    /// Visits the scheduling lists, head first, as pairs of list (0 is served first) and bucket.
    fn lists(&self, _visit: &mut dyn FnMut(usize, usize)) {}

    /// Visits the counters so far, under the kernel's names. The first six are always those of
    /// [`Totals`].
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64));
}

/// Counters of every discipline (the kernel's `gnet_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets dropped. Packets thrown away by a change of parameters count where the kernel
    /// counts them.
    pub drops: u64,
    /// Times the policy wanted to drop or mark (RED's family), or had to drop (SFB).
    pub overlimits: u64,
    /// Packets that left.
    pub packets: u64,
    /// Bytes that left.
    pub bytes: u64,
}

impl Totals {
    /// The counters that every discipline has.
    pub const COUNT: usize = 6;

    /// Counts a packet that left.
    #[inline]
    pub fn sent(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Counts the packet that leaves, if there is one.
    #[inline]
    pub fn leave<P: Packet>(&mut self, packet: Option<P>) -> Dequeue<P> {
        let Some(packet) = packet else { return Dequeue::Empty };
        self.sent(packet.len());
        Dequeue::Packet(packet)
    }

    /// Drops an arrival.
    #[inline]
    pub fn refuse<P>(&mut self, packet: P, reason: DropReason, sink: &mut impl Sink<P>) {
        self.drops += 1;
        sink.dropped(packet, reason, false);
    }

    /// Visits the six common counters.
    pub fn visit(&self, view: &impl View, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("qlen", view.packets() as u64);
        visit("backlog", view.bytes());
        visit("drops", self.drops);
        visit("overlimits", self.overlimits);
        visit("packets", self.packets);
        visit("bytes", self.bytes);
    }
}
