//! A discipline whose next packet can be looked at before it leaves.

use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink, View};
use crate::packet::Packet;
use sojourn_units::Nanos;

/// A discipline with `peek`, after Linux's `qdisc_peek_dequeued`: the packet looked at has left the
/// inner discipline already, with all that goes with it, and is held until it is asked for. It still
/// counts as queued.
#[derive(Clone, Debug)]
pub struct Peek<Q, P> {
    inner: Q,
    held: Option<(Nanos, P)>,
}

impl<Q: Discipline<P>, P: Packet> Peek<Q, P> {
    /// Around an empty or filled discipline.
    pub fn new(inner: Q) -> Self {
        Self { inner, held: None }
    }

    /// Returns the packet that the next dequeue gives.
    pub fn peek(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<&P> {
        if self.held.is_none() {
            let at = self.inner.enqueued_at(0).unwrap_or(now);
            match self.inner.dequeue(now, draws, sink) {
                Dequeue::Packet(packet) => self.held = Some((at, packet)),
                Dequeue::Empty => return Dequeue::Empty,
                Dequeue::NotBefore(time) => return Dequeue::NotBefore(time),
            }
        }
        self.held.as_ref().map_or(Dequeue::Empty, |(_, packet)| Dequeue::Packet(packet))
    }

    /// The inner discipline.
    pub fn inner(&self) -> &Q {
        &self.inner
    }
}

impl<Q: Discipline<P>, P: Packet> View for Peek<Q, P> {
    fn packets(&self) -> usize {
        self.inner.packets() + usize::from(self.held.is_some())
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes() + self.held.as_ref().map_or(0, |(_, packet)| u64::from(packet.len()))
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        match &self.held {
            None => self.inner.enqueued_at(n),
            Some((at, _)) if n == 0 => Some(*at),
            Some(_) => self.inner.enqueued_at(n - 1),
        }
    }
}

impl<Q: Discipline<P>, P: Packet> Discipline<P> for Peek<Q, P> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        self.inner.enqueue(now, packet, draws, sink)
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        match self.held.take() {
            Some((_, packet)) => Dequeue::Packet(packet),
            None => self.inner.dequeue(now, draws, sink),
        }
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.inner.wake_up()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.inner.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.inner.on_timer(now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.inner.state(visit);
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        self.inner.flow_state(flow, visit);
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.inner.lists(visit);
    }

    /// Those of the inner discipline, with the held packet queued and not sent.
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let held = self.held.as_ref().map(|(_, packet)| u64::from(packet.len()));
        self.inner.counters(&mut |name, value| {
            let value = match (name, held) {
                ("qlen", Some(_)) => value + 1,
                ("backlog", Some(bytes)) => value + bytes,
                ("packets", Some(_)) => value - 1,
                ("bytes", Some(bytes)) => value - bytes,
                _ => value,
            };
            visit(name, value);
        });
    }
}
