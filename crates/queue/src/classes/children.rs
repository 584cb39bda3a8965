//! The queues of a discipline's classes, and their common counters.

use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, Leaf, MarkReason, Return, Sink, Totals, View,
    offer,
};
use crate::packet::{Headers, Packet, Sender, TcpView};
use crate::params::Params;
use crate::peek::Peek;
use crate::queue::Queue;
use sojourn_measure::{Count, Histogram};
use sojourn_units::Nanos;
use std::marker::PhantomData;

/// The queues of all classes. A class refers to its queue by a place (an index).
#[derive(Clone, Debug)]
pub(crate) struct Children<P> {
    queues: Vec<Child<P>>,
    /// Number of packets offered since creation.
    offered: u64,
    totals: Totals,
    /// Time at which the packet that left last had been enqueued; `None` before the first.
    left: Option<Nanos>,
    /// Time of the next `dequeue` that the last call requested; `None` without a request.
    wake: Option<Nanos>,
}

#[derive(Clone, Debug)]
struct Child<P> {
    params: Params,
    queue: Peek<Queue<P>, P>,
    is_used: bool,
    /// Packets offered since the last restart, with those in the queue at that time.
    offered: u64,
    /// Packets sent since the last restart.
    sent: Count,
    /// Their times in the queue.
    sojourn: Histogram,
}

impl<P> Default for Children<P> {
    fn default() -> Self {
        Self { queues: Vec::new(), offered: 0, totals: Totals::default(), left: None, wake: None }
    }
}

impl<P: Packet> Children<P> {
    /// Adds an empty queue and returns its place.
    pub fn add(&mut self, params: Params, now: Nanos) -> usize {
        let child = Child {
            queue: Peek::new(params.build(now)),
            params,
            is_used: true,
            offered: 0,
            sent: Count::default(),
            sojourn: Histogram::new(),
        };
        if let Some(place) = self.queues.iter().position(|child| !child.is_used) {
            self.queues[place] = child;
            return place;
        }
        self.queues.push(child);
        self.queues.len() - 1
    }

    /// Changes the parameters of a queue. A change to another discipline replaces the queue and
    /// drops its packets.
    pub fn change(&mut self, place: usize, params: &Params, now: Nanos, sink: &mut impl Sink<P>) {
        let child = &mut self.queues[place];
        if child.params == *params {
            return;
        }
        if child.queue.inner_mut().change(params, now, sink).is_err() {
            self.drain(place, now, sink);
            self.queues[place].queue = Peek::new(params.build(now));
        }
        self.queues[place].params = params.clone();
    }

    /// Removes a queue and drops its packets; its place can be used again.
    pub fn remove(&mut self, place: usize, now: Nanos, sink: &mut impl Sink<P>) {
        self.drain(place, now, sink);
        self.queues[place].is_used = false;
    }

    /// Drops all packets of a queue that is removed. Drops by the queue's own policy are reported
    /// as well, but not marks; draws are constant.
    fn drain(&mut self, place: usize, now: Nanos, sink: &mut impl Sink<P>) {
        let queue = &mut self.queues[place].queue;
        let mut unmarked = Unmarked { sink, packets: PhantomData };
        let mut call = Call { now, draws: &mut Constant, sink: &mut unmarked };
        loop {
            match queue.dequeue(&mut call) {
                Dequeue::Packet(packet) => {
                    call.sink.sink.dropped(packet, DropReason::Overflow, true);
                }
                Dequeue::NotBefore(next) => call.now = next,
                Dequeue::Empty => return,
            }
        }
    }

    /// Returns the number of packets in the queue at `place`.
    pub fn len(&self, place: usize) -> usize {
        self.queues[place].queue.packets()
    }

    /// Returns whether the queue at `place` has no packets.
    pub fn is_empty(&self, place: usize) -> bool {
        self.len(place) == 0
    }

    /// Adds a packet to the queue at `place`.
    pub fn enqueue(
        &mut self,
        place: usize,
        packet: P,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Return {
        self.wake = None;
        let child = &mut self.queues[place];
        let (given, packets) = offer(&mut child.queue, packet, call);
        self.offered += packets;
        child.offered += packets;
        given
    }

    /// Drops a packet that has no class. The sending host is not notified.
    pub fn refuse(&mut self, packet: P, sink: &mut impl Sink<P>) -> Return {
        self.wake = None;
        self.offered += 1;
        sink.dropped(packet, DropReason::Overflow, false);
        Return::Success
    }

    /// Returns the length of the packet that the queue at `place` will send next, in bytes.
    pub fn peek(
        &mut self,
        place: usize,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Dequeue<u32> {
        match self.queues[place].queue.peek(call) {
            Dequeue::Packet(packet) => Dequeue::Packet(packet.len()),
            Dequeue::Empty => Dequeue::Empty,
            Dequeue::NotBefore(time) => Dequeue::NotBefore(time),
        }
    }

    /// Returns the length of the packet that the queue at `place` will send next. This method is
    /// for changes of parameters, which make no random draws.
    pub fn peek_in_change(
        &mut self,
        place: usize,
        now: Nanos,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<u32> {
        self.peek(place, &mut Call { now, draws: &mut Constant, sink })
    }

    /// Clears the requested time at the beginning of a dequeue.
    pub fn begin(&mut self) {
        self.wake = None;
    }

    /// Removes and returns the next packet of the queue at `place`, which leaves the discipline.
    pub fn dequeue(
        &mut self,
        place: usize,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Dequeue<P> {
        let child = &mut self.queues[place];
        let result = child.queue.dequeue(call);
        if let Dequeue::Packet(packet) = &result {
            self.left = child.queue.left_at();
            self.totals.sent(packet.len());
            child.sent.count(packet.len());
            child.sojourn.record(call.now - self.left.unwrap_or(call.now));
        }
        result
    }

    /// Requests a dequeue at `time`, and returns the result of a dequeue without a packet.
    pub fn wait(&mut self, time: Option<Nanos>) -> Dequeue<P> {
        self.wake = time;
        time.map_or(Dequeue::Empty, Dequeue::NotBefore)
    }

    /// Counts an attempt to send in which a shaper held all packets.
    pub fn count_overlimit(&mut self) {
        self.totals.overlimits += 1;
    }

    pub fn wake_up(&self) -> Option<Nanos> {
        self.wake
    }

    pub fn next_timer(&self) -> Option<Nanos> {
        let used = self.queues.iter().filter(|child| child.is_used);
        used.filter_map(|child| child.queue.next_timer()).min()
    }

    pub fn on_timer(&mut self, now: Nanos) {
        for child in &mut self.queues {
            if child.queue.next_timer().is_some_and(|due| due <= now) {
                child.queue.on_timer(now);
            }
        }
    }

    /// Visits the number of packets and bytes in a queue, under the names in recordings; both are 0
    /// without a queue.
    pub fn state(&self, place: Option<usize>, visit: &mut dyn FnMut(&'static str, i128)) {
        let queue = place.and_then(|place| self.queues.get(place)).map(|child| &child.queue);
        visit("qlen", queue.map_or(0, |queue| queue.packets() as i128));
        visit("backlog", queue.map_or(0, |queue| queue.bytes().into()));
    }

    /// Visits the queue of class `name` or, if the queue has classes itself, the queues of these.
    pub fn leaves(&self, place: usize, name: &str, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        let Child { queue, offered, sent, sojourn, .. } = &self.queues[place];
        let mut has_classes = false;
        queue.leaves(&mut |inner, leaf| {
            has_classes = true;
            visit(&format!("{name}/{inner}"), leaf);
        });
        if !has_classes {
            let backlog = Count { packets: queue.packets() as u64, bytes: queue.bytes() };
            visit(name, Leaf { backlog, offered: *offered, sent: *sent, sojourn });
        }
    }

    /// Begins the measurements of all classes anew.
    pub fn restart(&mut self) {
        for child in &mut self.queues {
            child.offered = child.queue.packets() as u64;
            child.sent = Count::default();
            child.sojourn.clear();
            child.queue.restart();
        }
    }

    /// Visits the discipline's counters, then further counters of its queues, summed by name.
    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        // A drop in a class counts as a drop of the discipline.
        let drops = self.offered - self.totals.packets - self.packets() as u64;
        Totals { drops, ..self.totals }.visit(self, visit);
        let mut more: Vec<(&'static str, u64)> = Vec::new();
        for child in self.queues.iter().filter(|child| child.is_used) {
            let mut number = 0;
            child.queue.counters(&mut |name, value| {
                number += 1;
                if number <= Totals::COUNT {
                    return;
                }
                match more.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum += value,
                    None => more.push((name, value)),
                }
            });
        }
        for (name, value) in more {
            visit(name, value);
        }
    }
}

/// Returns the earlier of two times; `None` counts as later.
pub(crate) fn earlier(wait: Option<Nanos>, time: Nanos) -> Nanos {
    wait.map_or(time, |wait| wait.min(time))
}

impl<P: Packet> View for Children<P> {
    fn packets(&self) -> usize {
        self.queues.iter().map(|child| child.queue.packets()).sum()
    }

    fn bytes(&self) -> u64 {
        self.queues.iter().map(|child| child.queue.bytes()).sum()
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        // Each queue has its times in order: merge them.
        let mut next = vec![0; self.queues.len()];
        let mut time = None;
        for _ in 0..=n {
            let firsts = self.queues.iter().zip(&next).enumerate();
            let (at, place) = firsts
                .filter_map(|(place, (child, n))| Some((child.queue.enqueued_at(*n)?, place)))
                .min()?;
            next[place] += 1;
            time = Some(at);
        }
        time
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left
    }
}

/// Constant draws for a change of parameters and for a queue that is emptied. With all bits set, `draw_below` does not repeat its
/// draw.
pub(crate) struct Constant;

impl Draws for Constant {
    fn draw_u16(&mut self) -> u16 {
        u16::MAX
    }

    fn draw_u32(&mut self) -> u32 {
        u32::MAX
    }

    fn draw_u64(&mut self) -> u64 {
        u64::MAX
    }
}

/// A sink that takes drops and ignores marks, for packets that are discarded.
struct Unmarked<'a, P, S: Sink<P>> {
    sink: &'a mut S,
    packets: PhantomData<P>,
}

impl<P, S: Sink<P>> Sink<P> for Unmarked<'_, P, S> {
    fn dropped(&mut self, packet: P, reason: DropReason, queued: bool) {
        self.sink.dropped(packet, reason, queued);
    }

    fn marked(&mut self, _packet: &P, _reason: MarkReason) {}

    fn tcp(&self, packet: &P) -> Option<TcpView> {
        self.sink.tcp(packet)
    }

    fn headers(&self, packet: &P) -> Headers {
        self.sink.headers(packet)
    }

    fn sender(&self, packet: &P) -> Sender {
        self.sink.sender(packet)
    }
}
