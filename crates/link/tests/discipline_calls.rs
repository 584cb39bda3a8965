//! The order and the times of the calls of a discipline.

use crate::common::{Frame, Log, params};
use proptest::prelude::*;
use sojourn_link::Link;
use sojourn_queue::{Dequeue, Discipline, Draws, Packet, Return, Sink, View};
use sojourn_random::Key;
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Enqueue(Nanos),
    Packet(Nanos),
    Empty(Nanos),
    Held(Nanos),
    Timer(Nanos),
}

/// A tail-drop queue that records its calls, with a periodic task and a minimum time between
/// packets.
struct Witness {
    queue: VecDeque<(Nanos, Frame)>,
    timer: Option<Nanos>,
    period: Nanos,
    spacing: Nanos,
    not_before: Nanos,
    calls: Vec<Call>,
}

impl Witness {
    fn new(period: Nanos, spacing: Nanos) -> Self {
        Self {
            queue: VecDeque::new(),
            timer: (period > 0).then_some(EPOCH + period),
            period,
            spacing,
            not_before: 0,
            calls: Vec::new(),
        }
    }
}

impl View for Witness {
    fn packets(&self) -> usize {
        self.queue.len()
    }
    fn bytes(&self) -> u64 {
        self.queue.iter().map(|(_, frame)| u64::from(frame.len())).sum()
    }
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.queue.get(n).map(|(at, _)| *at)
    }
    fn left_at(&self) -> Option<Nanos> {
        None
    }
}

impl Discipline<Frame> for Witness {
    fn enqueue(
        &mut self,
        packet: Frame,
        call: &mut sojourn_queue::Call<'_, impl Draws, impl Sink<Frame>>,
    ) -> Return {
        self.calls.push(Call::Enqueue(call.now));
        self.queue.push_back((call.now, packet));
        Return::Success
    }

    fn dequeue(
        &mut self,
        call: &mut sojourn_queue::Call<'_, impl Draws, impl Sink<Frame>>,
    ) -> Dequeue<Frame> {
        if self.queue.is_empty() {
            self.calls.push(Call::Empty(call.now));
            return Dequeue::Empty;
        }
        if call.now < self.not_before {
            self.calls.push(Call::Held(call.now));
            return Dequeue::NotBefore(self.not_before);
        }
        self.calls.push(Call::Packet(call.now));
        self.not_before = call.now + self.spacing;
        self.queue.pop_front().map_or(Dequeue::Empty, |(_, frame)| Dequeue::Packet(frame))
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        self.calls.push(Call::Timer(now));
        self.timer = Some(now + self.period);
    }

    fn state(&self, _: &mut dyn FnMut(&'static str, i128)) {}

    fn counters(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

/// At 8 Mbit/s a byte takes a microsecond.
fn link(period: Nanos, spacing: Nanos) -> Link<Frame, Witness> {
    let witness = Witness::new(period, spacing);
    Link::with_queue(witness, &params(8_000_000, "", "pfifo"), Key::new(1, "link"), EPOCH)
}

fn ms(n: u64) -> Nanos {
    EPOCH + n * MILLISECOND
}

#[test]
fn an_idle_transmitter_asks_at_once_and_again_when_it_is_done() {
    let mut link = link(0, 0);
    let mut log = Log::default();
    link.send(ms(1), Frame::new(0, 1000), &mut log);
    // The empty queue was asked at 2 ms; this call is made before the next arrival at the latest.
    link.send(ms(9), Frame::new(1, 1000), &mut log);
    assert_eq!(
        link.queue().calls,
        [
            Call::Enqueue(ms(1)),
            Call::Packet(ms(1)),
            Call::Empty(ms(2)),
            Call::Enqueue(ms(9)),
            Call::Packet(ms(9))
        ]
    );
}

#[test]
fn periodic_tasks_cost_no_event_and_run_before_a_dequeue_of_the_same_instant() {
    let mut link = link(MILLISECOND, 0);
    let mut log = Log::default();
    assert_eq!(link.next_wakeup(), None);
    link.send(ms(1), Frame::new(0, 1000), &mut log);
    link.poll(ms(3), &mut log);
    assert_eq!(link.next_wakeup(), None);
    assert_eq!(
        link.queue().calls,
        [
            Call::Timer(ms(1)),
            Call::Enqueue(ms(1)),
            Call::Packet(ms(1)),
            Call::Timer(ms(2)),
            Call::Empty(ms(2)),
            Call::Timer(ms(3)),
        ]
    );
}

#[test]
fn a_shaper_is_asked_at_its_time_and_at_arrivals() {
    let mut link = link(0, 5 * MILLISECOND);
    let mut log = Log::default();
    link.send(ms(0), Frame::new(0, 1000), &mut log);
    link.send(ms(0), Frame::new(1, 1000), &mut log);
    assert_eq!(link.next_wakeup(), Some(ms(1)));
    link.poll(ms(1), &mut log);
    assert_eq!(link.next_wakeup(), Some(ms(5)));
    link.send(ms(3), Frame::new(2, 1000), &mut log);
    assert_eq!(link.next_wakeup(), Some(ms(5)));
    link.poll(ms(5), &mut log);
    assert_eq!(log.departed(), [(0, ms(0)), (1, ms(5))]);
    assert_eq!(
        link.queue().calls,
        [
            Call::Enqueue(ms(0)),
            Call::Packet(ms(0)),
            Call::Enqueue(ms(0)),
            Call::Held(ms(1)),
            Call::Enqueue(ms(3)),
            Call::Held(ms(3)),
            Call::Packet(ms(5)),
        ]
    );
}

proptest! {
    #[test]
    fn a_late_caller_makes_the_same_calls(
        steps in proptest::collection::vec(
            (0u64..4, 100u32..3000, proptest::option::of(0u64..40)), 1..60),
        period in prop_oneof![Just(0u64), Just(1), Just(3)],
        spacing in 0u64..3,
    ) {
        let drive = |late: bool| {
            let mut link = link(period * MILLISECOND, spacing * MILLISECOND);
            let mut log = Log::default();
            let mut now = EPOCH;
            for (i, (gap, bytes, wake)) in steps.iter().enumerate() {
                let next = now + gap * MILLISECOND;
                if late {
                    if let Some(wake) = wake {
                        link.poll((now + wake * MILLISECOND).min(next), &mut log);
                    }
                } else {
                    while let Some(at) = link.next_wakeup().filter(|at| *at <= next) {
                        link.poll(at, &mut log);
                    }
                }
                now = next;
                link.send(now, Frame::new(i as u32, *bytes), &mut log);
                link.assert_conserved();
            }
            if !late {
                while let Some(at) = link.next_wakeup() {
                    link.poll(at, &mut log);
                }
            }
            link.poll(EPOCH + 10 * SECOND, &mut log);
            (link.queue().calls.clone(), log.0)
        };
        let (calls, log) = drive(false);
        let (late_calls, late_log) = drive(true);
        prop_assert_eq!(&calls, &late_calls);
        prop_assert_eq!(log, late_log);
        let time = |call: &Call| match call {
            Call::Enqueue(t) | Call::Packet(t) | Call::Empty(t) | Call::Held(t) | Call::Timer(t) => *t,
        };
        prop_assert!(calls.windows(2).all(|w| time(&w[0]) <= time(&w[1])));
    }
}
