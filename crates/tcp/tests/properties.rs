//! Properties that hold under any loss, duplication and reordering.

use crate::pipe::{Draws, Fate, Pipe};
use proptest::prelude::*;
use sojourn_tcp::State;
use sojourn_units::{MILLISECOND, SECOND};

fn words() -> impl Strategy<Value = String> {
    let controls: Vec<_> = sojourn_tcp::tables().iter().map(|table| table.name).collect();
    let control = prop::sample::select(controls);
    let profile = prop::sample::select(sojourn_tcp::Profile::NAMES);
    let extra = prop::sample::subsequence(
        vec![
            "sack off",
            "rack off",
            "timestamps off",
            "dsack off",
            "recovery newreno",
            "limited_transmit off",
            "undo on",
            "frto on",
            "frto off",
            "nagle on",
            "pacing on",
            "ecn classic",
            "ecn accecn",
            "iw 1",
            "delack_timeout 0",
            "autotune on",
            "window_scaling off",
            "mss 500",
            "rwnd 20kb",
            "hystart plus_plus",
            "idle_restart decay",
        ],
        0..6,
    );
    (control, profile, extra).prop_map(|(control, profile, extra)| {
        let mut text =
            format!("{control} profile {profile} syn_retries 200 synack_retries 200 retries 200");
        let mut seen = Vec::new();
        for words in extra {
            let first = words.split(' ').next().unwrap();
            if !seen.contains(&first) {
                seen.push(first);
                text.push(' ');
                text.push_str(words);
            }
        }
        text
    })
}

/// Fates of the first packets of a direction; all later ones arrive.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Deliver),
        3 => Just(Fate::Drop),
        1 => Just(Fate::Duplicate),
        1 => Just(Fate::Mark),
        2 => (1u64..80).prop_map(|ms| Fate::Late(ms * MILLISECOND)),
    ];
    prop::collection::vec(fate, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// Every byte arrives once and in order, and both ends finish and close.
    #[test]
    fn all_arrives_and_all_ends(
        text in words(),
        there in fates(),
        back in fates(),
        bytes in 1u64..200_000,
        answer in prop_oneof![Just(0u64), 1u64..50_000],
        rate in prop::sample::select(vec!["", "1mbit", "20mbit"]),
        limit in 3usize..100,
    ) {
        let mut pipe = Pipe::simple(&text, rate, 15 * MILLISECOND, limit);
        for (path, fates) in pipe.paths.iter_mut().zip([there, back]) {
            path.fate = Box::new(move |n, _| {
                fates.get(n as usize - 1).copied().unwrap_or(Fate::Deliver)
            });
        }
        pipe.ends[0].write(bytes);
        pipe.ends[0].close();
        pipe.ends[1].write(answer);
        let span = 40_000 * SECOND;
        prop_assert!(
            pipe.run_until(span, |p| p.ends[0].is_finished() && p.ends[1].is_finished()),
            "not finished: {:?} {:?}", pipe.ends[0].state(), pipe.ends[1].state()
        );
        prop_assert_eq!(pipe.ends[1].bytes_delivered(), bytes);
        prop_assert_eq!(pipe.ends[0].bytes_delivered(), answer);
        prop_assert_eq!(pipe.ends[0].bytes_acked(), bytes);
        prop_assert!(pipe.ends[1].peer_finished());
        pipe.ends[1].close();
        prop_assert!(pipe.run_until(span, |p| p.ends.iter().all(|e| e.state() == State::Closed)));
        prop_assert!(!pipe.ends[0].was_reset() && !pipe.ends[1].was_reset());
    }

    /// The same calls give the same segments.
    #[test]
    fn is_deterministic(text in words(), seed in any::<u64>()) {
        let trace = || {
            let mut pipe = Pipe::simple(&text, "5mbit", 20 * MILLISECOND, 20);
            let mut draws = Draws(seed);
            pipe.paths[0].fate =
                Box::new(move |_, _| if draws.chance(0.05) { Fate::Drop } else { Fate::Deliver });
            let log = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let sink = log.clone();
            pipe.log = Some(Box::new(move |t, e, s| sink.borrow_mut().push((t, e, *s))));
            pipe.ends[0].write_unlimited();
            pipe.run(3 * SECOND);
            let events = pipe.ends[0].events();
            drop(pipe);
            (std::rc::Rc::try_unwrap(log).unwrap().into_inner(), events)
        };
        prop_assert!(trace() == trace());
    }

    /// A closed window opens again, even if the acknowledgement that announces it is lost.
    #[test]
    fn a_closed_window_opens(
        text in words(),
        back in fates(),
        bytes in 100_000u64..400_000,
        step in 1u64..60_000,
    ) {
        let mut pipe = Pipe::simple(&text, "20mbit", 10 * MILLISECOND, 50);
        pipe.paths[1].fate = Box::new(move |n, _| {
            if n < 3 { Fate::Deliver } else { back.get(n as usize - 3).copied().unwrap_or(Fate::Deliver) }
        });
        pipe.ends[1].pause_reading();
        pipe.ends[0].write(bytes);
        pipe.run(2 * SECOND);
        for _ in 0..20 {
            pipe.ends[1].read(step);
            pipe.drain(1);
            pipe.run(SECOND / 2);
        }
        pipe.ends[1].resume_reading();
        pipe.drain(1);
        prop_assert!(pipe.run_until(40_000 * SECOND, |p| p.ends[0].is_finished()));
        prop_assert_eq!(pipe.ends[1].bytes_delivered(), bytes);
    }
}
