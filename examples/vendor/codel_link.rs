//! CoDel, and one direction of a link with a FIFO or CoDel queue, in one file to copy: no
//! dependencies, no clock, no I/O, no allocation once the queues have grown.
//!
//! CoDel is RFC 8289 with Linux's arithmetic (`codel_impl.h`): a clock of 1024 ns, and 1/sqrt(count)
//! by one Newton step in 16 bits. Its decisions are equal to recordings of Linux 6.1 and 7.3. This
//! file is part of Sojourn (<https://github.com/sojourn-lab/sojourn>), Apache-2.0 OR MIT; the crate
//! `sojourn-link` has the other disciplines, impairments, traces and paths.

#![allow(dead_code)]

use std::collections::VecDeque;

/// Nanoseconds of one monotonic clock.
pub type Nanos = u64;

/// A packet of the user's own type.
pub trait Packet {
    /// Length in bytes on the link.
    fn len(&self) -> u32;
    /// Sets Congestion Experienced and returns true; returns false if the packet is not ECN-capable.
    fn mark(&mut self) -> bool;
}

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The queue was full.
    Overflow,
    /// CoDel dropped the packet.
    Dropped,
    /// CoDel marked the packet.
    Marked,
    /// The packet waited longer than `ce_threshold`, and was marked.
    Threshold,
}

/// Settings of CoDel (see `tc-codel(8)`); times in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub target: u32,
    pub interval: u32,
    /// Whether ECN-capable packets are marked and not dropped; so by default, unlike with `tc`.
    pub ecn: bool,
    pub ce_threshold: Option<u32>,
    /// Backlog in bytes on which CoDel does not act.
    pub mtu: u32,
    /// Whether a departure drops at most 256 packets, a tick apart, as since Linux 7.3.
    pub bounded: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (target, interval) = (5_000, 100_000);
        Self { target, interval, ecn: true, ce_threshold: None, mtu: 1514, bounded: true }
    }
}

/// Ticks of 1024 ns.
fn ticks(micros: u32) -> u32 {
    ((u64::from(micros) * 1000) >> 10) as u32
}

/// Whether `a` is after `b` on the clock of 32 bits.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// A FIFO of packets with the times of their arrivals.
#[derive(Debug)]
pub struct Fifo<P> {
    packets: VecDeque<(Nanos, P)>,
    bytes: u64,
    limit: usize,
}

impl<P: Packet> Fifo<P> {
    /// Returns an empty queue for `limit` packets.
    pub fn new(limit: usize) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, limit }
    }

    /// Adds a packet, or returns it if the queue is full.
    pub fn push(&mut self, now: Nanos, packet: P) -> Result<(), P> {
        if self.packets.len() >= self.limit {
            return Err(packet);
        }
        self.bytes += u64::from(packet.len());
        self.packets.push_back((now, packet));
        Ok(())
    }

    pub fn pop(&mut self) -> Option<(Nanos, P)> {
        let taken = self.packets.pop_front()?;
        self.bytes -= u64::from(taken.1.len());
        Some(taken)
    }
}

/// CoDel's state, with the usual settings by default. Names are those of Linux and RFC 8289; times
/// are ticks.
#[derive(Clone, Debug, Default)]
pub struct Codel {
    settings: Settings,
    count: u32,
    lastcount: u32,
    dropping: bool,
    rec_inv_sqrt: u16,
    first_above_time: u32,
    drop_next: u32,
    ldelay: u32,
}

impl Codel {
    /// Returns CoDel in its first state.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes the next packet to send, after CoDel has dropped or marked what it must. `seen` receives
    /// dropped and marked packets.
    pub fn dequeue<P: Packet>(
        &mut self,
        now: Nanos,
        fifo: &mut Fifo<P>,
        seen: &mut impl FnMut(&P, Event),
    ) -> Option<P> {
        let now = (now >> 10) as u32;
        let mut head = fifo.pop();
        if head.is_none() {
            (self.first_above_time, self.dropping) = (0, false);
            return None;
        }
        let may_drop = self.may_drop(now, head.as_ref(), fifo.bytes);
        if self.dropping && may_drop {
            let mut left = if self.settings.bounded { 256 } else { u32::MAX };
            while self.dropping && !after(self.drop_next, now) {
                if left == 0 {
                    self.drop_next = self.after_interval(now);
                    break;
                }
                left -= 1;
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                head = self.mark_or_drop(head?, seen);
                if head.is_some() {
                    self.drop_next = self.after_interval(self.drop_next);
                    break;
                }
                head = fifo.pop();
                if self.may_drop(now, head.as_ref(), fifo.bytes) {
                    self.drop_next = self.after_interval(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            head = self.mark_or_drop(head?, seen);
            if head.is_none() {
                head = fifo.pop();
                self.may_drop(now, head.as_ref(), fifo.bytes);
            }
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.lastcount);
            let since = now.wrapping_sub(self.drop_next);
            if delta > 1 && after(ticks(self.settings.interval).wrapping_mul(16), since) {
                self.count = delta;
                self.newton_step();
            } else {
                (self.count, self.rec_inv_sqrt) = (1, u16::MAX);
            }
            self.lastcount = self.count;
            self.drop_next = self.after_interval(now);
        } else {
            self.dropping = false;
        }
        let (_, mut packet) = head?;
        let waits = self.settings.ce_threshold.is_some_and(|most| after(self.ldelay, ticks(most)));
        if waits && packet.mark() {
            seen(&packet, Event::Threshold);
        }
        Some(packet)
    }

    /// Whether the waiting time has been above target for an interval.
    fn may_drop<P>(&mut self, now: u32, head: Option<&(Nanos, P)>, backlog: u64) -> bool {
        let Some((at, _)) = head else {
            self.first_above_time = 0;
            return false;
        };
        self.ldelay = now.wrapping_sub((at >> 10) as u32);
        if after(ticks(self.settings.target), self.ldelay)
            || backlog <= u64::from(self.settings.mtu)
        {
            self.first_above_time = 0;
            return false;
        }
        if self.first_above_time == 0 {
            self.first_above_time = now.wrapping_add(ticks(self.settings.interval));
            return false;
        }
        after(now, self.first_above_time)
    }

    /// The control law: `interval / sqrt(count)` after `from`.
    fn after_interval(&self, from: u32) -> u32 {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let spacing = ((u64::from(ticks(self.settings.interval)) * root) >> 32) as u32;
        from.wrapping_add(spacing.max(u32::from(self.settings.bounded)))
    }

    fn newton_step(&mut self) {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let square = (root * root) >> 32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = (value.wrapping_mul(root) >> 31 >> 16) as u16;
    }

    fn mark_or_drop<P: Packet>(
        &self,
        mut head: (Nanos, P),
        seen: &mut impl FnMut(&P, Event),
    ) -> Option<(Nanos, P)> {
        let marked = self.settings.ecn && head.1.mark();
        seen(&head.1, if marked { Event::Marked } else { Event::Dropped });
        marked.then_some(head)
    }
}

/// One direction of a link: a queue, a transmitter with a rate, a wire with a delay.
#[derive(Debug)]
pub struct Link<P> {
    rate: u64,
    delay: Nanos,
    fifo: Fifo<P>,
    codel: Option<Codel>,
    transmitting: bool,
    /// When the transmission ends, rounded up, and the time by which that is too late, in ns/`rate`.
    free: Nanos,
    spare: u128,
    wire: VecDeque<(Nanos, P)>,
}

impl<P: Packet> Link<P> {
    /// Returns an idle link of `rate` bit/s with a propagation delay and a queue of `limit` packets,
    /// which is a FIFO without `codel`.
    pub fn new(rate: u64, delay: Nanos, limit: usize, codel: Option<Codel>) -> Self {
        let (fifo, wire) = (Fifo::new(limit), VecDeque::new());
        Self { rate, delay, fifo, codel, transmitting: false, free: 0, spare: 0, wire }
    }

    /// Sends a packet at `now`, which is not before an earlier call's.
    pub fn send(&mut self, now: Nanos, packet: P, seen: &mut impl FnMut(&P, Event)) {
        self.advance(now, seen);
        if let Err(packet) = self.fifo.push(now, packet) {
            seen(&packet, Event::Overflow);
        }
        if !self.transmitting {
            self.transmit(now, seen);
        }
    }

    /// Returns the next packet that has arrived at the far end by `now`, with the time of arrival.
    pub fn poll(&mut self, now: Nanos, seen: &mut impl FnMut(&P, Event)) -> Option<(Nanos, P)> {
        self.advance(now, seen);
        self.wire.front().filter(|(at, _)| *at <= now)?;
        self.wire.pop_front()
    }

    /// Returns when `poll` must be called next.
    pub fn next_wakeup(&self) -> Option<Nanos> {
        let departure = (!self.fifo.packets.is_empty()).then_some(self.free);
        self.wire.front().map(|(at, _)| *at).into_iter().chain(departure).min()
    }

    fn advance(&mut self, now: Nanos, seen: &mut impl FnMut(&P, Event)) {
        while self.transmitting && self.free <= now {
            self.transmit(self.free, seen);
        }
    }

    fn transmit(&mut self, at: Nanos, seen: &mut impl FnMut(&P, Event)) {
        let next = match &mut self.codel {
            Some(codel) => codel.dequeue(at, &mut self.fifo, seen),
            None => self.fifo.pop().map(|(_, packet)| packet),
        };
        self.transmitting = next.is_some();
        let Some(packet) = next else { return };
        let spare = if self.free == at { self.spare } else { 0 };
        let needs = u128::from(packet.len()) * 8_000_000_000;
        let takes = needs.saturating_sub(spare).div_ceil(self.rate.into());
        self.spare = takes * u128::from(self.rate) + spare - needs;
        self.free = at + takes as Nanos;
        self.wire.push_back((self.free + self.delay, packet));
    }
}
