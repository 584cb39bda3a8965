//! A link in closed form has the same events as a link that works event by event.

use crate::common::{Frame, Log, drain, link, params, run};
use proptest::prelude::*;
use sojourn_link::{Backlog, Event, Link, Stamped, Watch};
use sojourn_units::{EPOCH, Nanos};

impl Stamped for Frame {
    fn comes_at(&self) -> Nanos {
        self.at
    }
}

impl Watch<Frame> for Log {
    fn on_backlog(&mut self, _: Nanos, _: Backlog) {}
}

#[derive(Clone, Debug)]
struct Case {
    rate: u64,
    delay: u64,
    queue: String,
    frames: Vec<Frame>,
    /// Number of packets that are announced before the first of them comes.
    ahead: usize,
    /// Number of packets after which the link works event by event again.
    leaves: usize,
}

fn cases(limits: impl Strategy<Value = String>) -> impl Strategy<Value = Case> {
    let gap =
        prop_oneof![3 => 0..400_000u64, 2 => Just(0), 1 => Just(100_000), 1 => 0..9_000_000u64];
    let frame = (gap, prop_oneof![Just(1250u32), 60u32..1514]);
    (
        prop_oneof![Just(100_000_000), Just(0), 1_000_000..500_000_000u64],
        prop_oneof![Just(0), Just(100), 0..5000u64],
        limits,
        prop::collection::vec(frame, 1..200),
        (1..20usize, 0..200usize),
    )
        .prop_map(|(rate, delay, queue, gaps, (ahead, leaves))| {
            let mut now = EPOCH;
            let frame = |(i, (gap, bytes)): (usize, (u64, u32))| {
                now += gap;
                Frame { at: now, ..Frame::new(i as u32, bytes) }
            };
            let frames = gaps.into_iter().enumerate().map(frame).collect();
            Case { rate, delay, queue, frames, ahead, leaves }
        })
}

impl Case {
    fn link(&self) -> Link<Frame> {
        link(&params(self.rate, &format!("delay {}us", self.delay), &self.queue), 1)
    }

    fn direct(&self) -> Link<Frame> {
        let mut link = self.link();
        link.go_direct(params(self.rate, "", &self.queue).queue.limit());
        link
    }

    fn by_events(&self) -> (Link<Frame>, Log) {
        let (mut link, mut log) = (self.link(), Log::default());
        for frame in &self.frames {
            run(&mut link, frame.at, &mut log);
            link.send(frame.at, frame.clone(), &mut log);
        }
        (link, log)
    }

    fn end(&self) -> Nanos {
        self.frames.last().map_or(EPOCH, |frame| frame.at)
    }
}

fn arrive(link: &mut Link<Frame>, now: Nanos, log: &mut Log) {
    link.book(now, log);
    while link.take(now, log).is_some() {}
    link.assert_conserved();
}

fn assert_same(mut one: (Link<Frame>, Log), mut other: (Link<Frame>, Log), now: Nanos) {
    for link in [&one.0, &other.0] {
        link.assert_conserved();
    }
    assert_eq!(one.0.backlog(), other.0.backlog());
    assert_eq!(
        (one.0.busy(now), one.0.transmitted(now)),
        (other.0.busy(now), other.0.transmitted(now))
    );
    for (link, log) in [&mut one, &mut other] {
        drain(link, log);
    }
    assert_eq!(one.0.stats(), other.0.stats());
    let wanted: [fn(&Event) -> bool; 4] = [
        |event| *event == Event::Offered,
        |event| *event == Event::Departed,
        |event| *event == Event::Delivered,
        |event| matches!(event, Event::Dropped { .. }),
    ];
    for wanted in wanted {
        assert_eq!(one.1.times(wanted), other.1.times(wanted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn packets_leave_and_are_dropped_as_by_events(
        case in cases(prop_oneof![
            (1..20u32).prop_map(|n| format!("pfifo limit {n}")),
            (60..20_000u32).prop_map(|n| format!("bfifo limit {n}")),
        ]),
    ) {
        let (mut link, mut log) = (case.direct(), Log::default());
        for (i, frame) in case.frames.iter().enumerate() {
            if i == case.leaves {
                arrive(&mut link, frame.at, &mut log);
                link.leave_direct(frame.at, &mut log);
            }
            if i >= case.leaves {
                run(&mut link, frame.at, &mut log);
                link.send(frame.at, frame.clone(), &mut log);
                continue;
            }
            arrive(&mut link, frame.at, &mut log);
            let arrives = link.bring(frame.at, frame.clone(), &mut log);
            prop_assert_eq!(arrives.is_none(), matches!(log.0.last(), Some((_, _, Event::Dropped { .. }))));
        }
        if case.leaves >= case.frames.len() {
            link.leave_direct(case.end(), &mut log);
        }
        assert_same(case.by_events(), (link, log), case.end());
    }

    #[test]
    fn announced_packets_are_as_those_that_come(case in cases(Just("pfifo limit 1000".to_owned()))) {
        let (mut link, mut log) = (case.direct(), Log::default());
        let mut arrivals = Vec::new();
        for frames in case.frames.chunks(case.ahead) {
            arrive(&mut link, frames[0].at - 1, &mut log);
            arrivals.extend(frames.iter().map(|frame| link.announce(frame.clone())));
        }
        // Announced packets of the last chunk are removed; they come event by event.
        let now = case.frames[case.leaves.min(case.frames.len() - 1)].at;
        let last = case.frames.chunks(case.ahead).next_back().map_or(now, |frames| frames[0].at);
        let now = now.max(last);
        arrive(&mut link, now - 1, &mut log);
        link.leave_direct(now, &mut log);
        for frame in case.frames.iter().filter(|frame| frame.at >= now) {
            run(&mut link, frame.at, &mut log);
            link.send(frame.at, frame.clone(), &mut log);
        }
        run(&mut link, case.end(), &mut log);
        let by_events = case.by_events();
        assert_same(by_events, (link, log), case.end());
        let (mut link, mut log) = case.by_events();
        drain(&mut link, &mut log);
        let at: Vec<_> = log.delivered().iter().map(|(_, at)| *at).collect();
        prop_assert_eq!(at, arrivals);
    }
}
