//! The rate that a tree of `htb` or `hfsc` states, compared with that of a backlog.

use crate::common::{Frame, Log, drain, link, params};
use proptest::prelude::*;
use sojourn_units::{EPOCH, SECOND};

const GBIT: u64 = 1_000_000_000;
/// A frame of full length.
const LENGTH: u32 = 1514;

/// An outermost class with its classes; each has two numbers.
type Top = ((u64, u64), Vec<(u64, u64)>);

/// Returns the words of a class of `htb` with small buckets, from its rate and what the ceiling has
/// more, in Mbit/s.
fn bucket((rate, more): (u64, u64), _leaf: bool) -> String {
    format!("rate {rate}mbit ceil {}mbit burst 3kb cburst 3kb quantum 1514b", rate + more)
}

/// Returns the words of a class of `hfsc`, from its rate and upper limit in Mbit/s. A leaf may have
/// no upper limit, or only one of the other curves.
fn curves((rate, limit): (u64, u64), leaf: bool) -> String {
    match (leaf, limit % 4) {
        (true, 1) | (false, _) => format!("ls rate {rate}mbit ul rate {limit}mbit"),
        (true, 0) => format!("rt rate {rate}mbit"),
        (true, 2) => format!("sc rate {rate}mbit"),
        (true, _) => format!("sc rate {rate}mbit ul rate {limit}mbit"),
    }
}

/// Returns a discipline with these classes, and its number of leaves. Packets of flow N are those
/// of leaf N.
fn classes(
    discipline: &str,
    tops: &[Top],
    words: fn((u64, u64), bool) -> String,
) -> (String, usize) {
    let (mut inner, mut leaves) = (Vec::new(), Vec::new());
    for (number, (own, children)) in tops.iter().enumerate() {
        if children.is_empty() {
            leaves.push((0, words(*own, true)));
        } else {
            inner.push(format!("class 1:{} {}", number + 1, words(*own, false)));
            leaves.extend(children.iter().map(|child| (number + 1, words(*child, true))));
        }
    }
    let count = leaves.len();
    inner.extend(leaves.into_iter().enumerate().flat_map(|(number, (parent, words))| {
        let id = 100 + number;
        let parent = if parent == 0 { String::new() } else { format!(" parent 1:{parent}") };
        let long = format!("qdisc parent 1:{id} pfifo limit 100000p");
        [format!("class 1:{id}{parent} {words}"), long]
    }));
    inner.extend((0..count).map(|number| format!("filter src {number} to 1:{}", 100 + number)));
    (format!("{discipline} default 100; {}", inner.join("; ")), count)
}

/// Returns the rate that a tree states, and that at which it sends while all leaves have packets,
/// in bit/s. Without a stated rate, the link's is expected.
fn rates(text: &str, leaves: usize) -> (f64, f64) {
    let queue = params(GBIT, "", text);
    let stated = queue.queue.rate().map_or(GBIT, sojourn_link::Rate::bits);
    let mut log = Log::default();
    let mut link = link(&queue, 1);
    for number in 0..3000 * leaves as u32 {
        let flow = number % leaves as u32;
        link.send(EPOCH, Frame { flow, ..Frame::new(number, LENGTH) }, &mut log);
    }
    drain(&mut link, &mut log);
    let departed = log.departed();
    let mut left = vec![3000; leaves];
    let until = departed.iter().position(|(number, _)| {
        let leaf = *number as usize % leaves;
        left[leaf] -= 1;
        left[leaf] == 0
    });
    let until = until.unwrap();
    let from = until / 5;
    let bits = (until - from) as f64 * f64::from(LENGTH) * 8.0;
    let found = bits * SECOND as f64 / (departed[until].1 - departed[from].1) as f64;
    (stated as f64, found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The rate that an `htb` states is that at which it sends while all of its leaves have packets.
    #[test]
    fn classes_send_at_the_rate_that_they_state(
        tops in proptest::collection::vec(
            ((2..20u64, 0..20u64), proptest::collection::vec((2..20u64, 0..20u64), 0..4)),
            1..4,
        ),
    ) {
        let (text, leaves) = classes("htb", &tops, bucket);
        let (stated, found) = rates(&text, leaves);
        prop_assert!((found / stated - 1.0).abs() < 0.02, "{found} for {stated}: {text}");
    }

    /// The same of an `hfsc`, whose real-time curves are no more than half of the link's rate.
    #[test]
    fn curves_send_at_the_rate_that_they_state(
        tops in proptest::collection::vec(
            ((2..20u64, 2..40u64), proptest::collection::vec((2..20u64, 2..40u64), 0..4)),
            1..4,
        ),
    ) {
        let (text, leaves) = classes("hfsc", &tops, curves);
        let (stated, found) = rates(&text, leaves);
        prop_assert!((found / stated - 1.0).abs() < 0.02, "{found} for {stated}: {text}");
    }
}
