//! A wrapper that shows the next packet of a discipline before it leaves.

use crate::discipline::{Call, Dequeue, Discipline, Draws, Leaf, Return, Sink, View};
use crate::packet::Packet;
use sojourn_units::Nanos;
use std::cmp::Ordering;

/// A discipline with `peek`. A discipline that does not decide on departure shows its
/// [head](Discipline::head), as in Linux. From any other discipline `peek` dequeues the packet,
/// with all decisions and counters of a departure, and holds it until the next `dequeue`
/// (`qdisc_peek_dequeued`). The held packet counts in the backlog of this wrapper, but not towards
/// the limit of the inner discipline.
#[derive(Clone, Debug)]
pub struct Peek<Q, P> {
    inner: Q,
    held: Option<(Nanos, P)>,
    left: Option<Nanos>,
}

impl<Q: Discipline<P>, P: Packet> Peek<Q, P> {
    /// Wraps a discipline, which may contain packets.
    pub fn new(inner: Q) -> Self {
        Self { inner, held: None, left: None }
    }

    /// Returns the packet that the next dequeue will return.
    pub fn peek(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<&P> {
        if self.held.is_none() && self.inner.head().is_none() {
            match self.inner.dequeue(call) {
                Dequeue::Packet(packet) => {
                    self.held = Some((self.inner.left_at().unwrap_or(call.now), packet));
                }
                Dequeue::Empty => return Dequeue::Empty,
                Dequeue::NotBefore(time) => return Dequeue::NotBefore(time),
            }
        }
        match &self.held {
            Some((_, packet)) => Dequeue::Packet(packet),
            None => self.inner.head().unwrap_or(Dequeue::Empty),
        }
    }

    /// Returns the inner discipline, mutable for changes.
    pub fn inner_mut(&mut self) -> &mut Q {
        &mut self.inner
    }

    /// Returns the inner discipline.
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
        let Some((at, _)) = self.held else { return self.inner.enqueued_at(n) };
        // The held packet has left its internal queue, but packets of other internal queues may
        // have arrived before it.
        let (mut before, mut most) = (0, self.inner.packets());
        while before < most {
            let middle = usize::midpoint(before, most);
            if self.inner.enqueued_at(middle) < Some(at) {
                before = middle + 1;
            } else {
                most = middle;
            }
        }
        match n.cmp(&before) {
            Ordering::Less => self.inner.enqueued_at(n),
            Ordering::Equal => Some(at),
            Ordering::Greater => self.inner.enqueued_at(n - 1),
        }
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left
    }
}

impl<Q: Discipline<P>, P: Packet> Discipline<P> for Peek<Q, P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.inner.enqueue(packet, call)
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        if let Some((at, packet)) = self.held.take() {
            self.left = Some(at);
            return Dequeue::Packet(packet);
        }
        let result = self.inner.dequeue(call);
        if matches!(result, Dequeue::Packet(_)) {
            self.left = self.inner.left_at();
        }
        result
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

    fn leaves(&self, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        self.inner.leaves(visit);
    }

    fn restart(&mut self) {
        self.inner.restart();
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.inner.lists(visit);
    }

    /// Visits the inner discipline's counters; a held packet counts as queued and not as sent.
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
