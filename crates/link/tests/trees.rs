//! The rate that a tree of `htb` states, compared with that of a backlog.

use crate::common::{Frame, Log, drain, link, params};
use proptest::prelude::*;
use sojourn_units::{EPOCH, SECOND};

const GBIT: u64 = 1_000_000_000;
/// A frame of full length.
const LENGTH: u32 = 1514;

/// An outermost class of `htb`: rate, and what the ceiling has more, in Mbit/s; and its classes.
type Top = ((u64, u64), Vec<(u64, u64)>);

/// Returns an `htb` with these classes and small buckets, and its number of leaves. Packets of flow
/// N are those of leaf N.
fn classes(tops: &[Top]) -> (String, usize) {
    let (mut inner, mut leaves) = (Vec::new(), Vec::new());
    let words = |(rate, more): (u64, u64)| {
        format!("rate {rate}mbit ceil {}mbit burst 3kb cburst 3kb quantum 1514b", rate + more)
    };
    for (number, (own, children)) in tops.iter().enumerate() {
        if children.is_empty() {
            leaves.push((0, words(*own)));
        } else {
            inner.push(format!("class 1:{} {}", number + 1, words(*own)));
            leaves.extend(children.iter().map(|child| (number + 1, words(*child))));
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
    (format!("htb default 100; {}", inner.join("; ")), count)
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
        let (text, leaves) = classes(&tops);
        let queue = params(GBIT, "", &text);
        let stated = queue.queue.rate().unwrap().bits() as f64;
        let mut log = Log::default();
        let mut link = link(&queue, 1);
        for number in 0..3000 * leaves as u32 {
            link.send(EPOCH, Frame { flow: number % leaves as u32, ..Frame::new(number, LENGTH) }, &mut log);
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
        prop_assert!((found / stated - 1.0).abs() < 0.02, "{found} for {stated}: {text}");
    }
}
