//! Disciplines with classes: descriptions, filters, shares.

use crate::common::{Bench, Frame};
use proptest::collection::vec;
use proptest::prelude::*;
use sojourn_queue::{
    Device, Discipline, DropReason, Headers, NoKernelEquivalent, Packet, Params, Return, View,
};
use sojourn_units::{MICROSECOND, MILLISECOND, Nanos, SECOND};

fn params(text: &str) -> Params {
    Params::parse(text, &Device::default()).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// Offers a packet that names its class.
fn offer(bench: &mut Bench, class: u16, len: u32) -> Return {
    bench.offer(Frame { flow: class.into(), class: Some(class), ..Frame::new(0, len) })
}

/// Takes packets for `span` over a line with `rate` bit/s; returns the bytes of each class, by its
/// number up to 63.
fn carry(bench: &mut Bench, rate: u64, span: Nanos) -> [u64; 64] {
    let until = bench.now + span;
    let mut sent = [0; 64];
    while bench.now < until {
        match bench.take() {
            Some(frame) => {
                sent[frame.flow as usize] += u64::from(frame.len);
                bench.wait(u64::from(frame.len) * 8 * SECOND / rate);
            }
            None => match bench.not_before {
                Some(time) => bench.wait(time.min(until) - bench.now),
                None => break,
            },
        }
    }
    sent
}

fn is_near(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) * 50 <= expected, "{found} is not near {expected}");
}

mod text {
    use super::*;

    /// Different texts describe the same tree.
    #[test]
    fn statements_may_be_written_in_several_ways() {
        let plain = params(
            "htb default 20; class 1:1 parent 1: rate 10mbit; class 1:10 parent 1:1 rate 6mbit ceil \
             10mbit prio 0 fq_codel limit 300p; class 1:20 parent 1:1 rate 4mbit ceil 10mbit prio 1; \
             filter dscp EF to 1:10; filter src 3 to 1:20",
        );
        for other in [
            "htb default 20\n\
             class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
             class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 0\n\
             class add dev eth0 parent 1:1 classid 1:20 htb rate 4mbit ceil 10mbit prio 1\n\
             qdisc add dev eth0 parent 1:10 handle 10: fq_codel limit 300\n\
             filter add dev eth0 parent 1: dscp 46 flowid 1:10\n\
             filter src 10.0.0.4 flowid :20",
            "htb default 1:20 ; class 1:1 rate 10mbit ; class 1:10 parent 1:1 rate 6mbit ceil 10mbit \
             child fq_codel limit 300p ; class 1:20 parent 1:1 rate 4mbit prio 1 ceil 10mbit; \
             filter dscp ef to 1:10; filter src 3 to 1:20",
        ] {
            assert_eq!(params(other), plain, "{other}");
        }
        assert_eq!(params(&plain.to_text()), plain, "{}", plain.to_text());
    }

    /// Units are added in inner disciplines and in the child of `tbf` as well.
    #[test]
    fn numbers_without_a_unit_are_those_of_tc() {
        for (bare, whole) in [
            (
                "htb; class 1:1 rate 4000000 ceil 5000000.5 burst 20000",
                "htb; class 1:1 rate 4mbit ceil 5000000bit burst 20000b",
            ),
            (
                "hfsc; class 1:1 sc m1 2000000 d 5000 m2 1000000 ul rate 3000000",
                "hfsc; class 1:1 sc m1 2mbit d 5ms m2 1mbit ul rate 3mbit",
            ),
            (
                "hfsc; class 1:1 ls umax 1500 dmax 20000 rate 1000000",
                "hfsc; class 1:1 ls umax 1500b dmax 20ms rate 1mbit",
            ),
            (
                "htb; class 1:1 rate 1mbit; qdisc parent 1:1 codel target 2000",
                "htb; class 1:1 rate 1mbit; qdisc parent 1:1 codel target 2ms",
            ),
        ] {
            assert_eq!(params(bare), params(whole), "{bare}");
        }
    }

    #[test]
    fn a_curve_needs_no_first_part() {
        let curve = |text: &str| params(&format!("hfsc; class 1:1 ls {text}"));
        assert_eq!(curve("d 5ms m2 1mbit"), curve("m1 0bit d 5ms m2 1mbit"));
        assert_eq!(curve("m1 2mbit m2 1mbit"), curve("m1 2mbit d 0us m2 1mbit"));
    }

    #[test]
    fn any_discipline_may_be_in_a_class() {
        for text in [
            "prio bands 2 priomap 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0; qdisc parent 1:1 handle 10: htb \
             default 1; class 10:1 parent 10: rate 2mbit; qdisc parent 10:1 handle 20: drr; class 20:5 \
             quantum 700b; filter parent 20: all to 20:5; filter parent 10: protocol udp to 10:1",
            "prio; filter sport 25 dport 1024-65535 to 1:1; filter port 53 mark 7 to 1:2; filter mark \
             0x10/0xff to 1:3",
            "tbf rate 9mbit burst 5kb child hfsc default 2; class 1:2 sc rate 2mbit ul rate 3mbit",
            "drr handle 8001: txqueuelen 9p; class 8001:1 tbf rate 1mbit burst 3kb child prio handle 9:; \
             qdisc parent 9:3 codel; filter flow divisor 1 dst 7 to 8001:1",
        ] {
            let read = params(text);
            assert_eq!(params(&read.to_text()), read, "{}", read.to_text());
        }
        let nested =
            params("prio; qdisc parent 1:2 handle 2: drr; class 2:1; qdisc parent 2:1 pie");
        assert!(nested.to_text().contains("qdisc parent 2:1 pie"), "{}", nested.to_text());
    }

    #[test]
    fn a_change_names_what_changes() {
        let device = Device::default();
        let before = params(
            "prio bands 4; qdisc parent 1:1 codel limit 9p; qdisc parent 1:2 handle 2: drr; class 2:1; \
             filter all to 1:2",
        );
        let after = |text: &str| before.change(text, &device).unwrap();
        let expected = params(
            "prio bands 4; qdisc parent 1:1 codel limit 9p target 7ms; qdisc parent 1:2 handle 2: drr; \
             class 2:1 quantum 700b; class 2:2",
        );
        let changed = after(
            "prio; qdisc parent 1:1 codel target 7ms; class 2:1 quantum 700b; class 2:2; filter del",
        );
        assert_eq!(changed, expected);
        assert_eq!(after("prio bands 3; filter del"), {
            params(
                "prio; qdisc parent 1:1 codel limit 9p; qdisc parent 1:2 handle 2: drr; class 2:1",
            )
        });
        let refused = |before: &str, text: &str| {
            params(before).change(text, &device).unwrap_err().to_string()
        };
        let htb = "htb; class 1:1 rate 1mbit; class 1:2 parent 1:1 rate 1mbit";
        for (text, why) in [
            ("htb; class 1:3 parent 1:2 rate 1mbit", "`1:2` cannot gain its first class"),
            ("htb; class del 1:2", "`1:1` cannot gain its first class or lose its last one"),
            ("htb; class del 1:1", "`1:1` contains classes; delete them first"),
            ("htb; class 1:2 parent 1: rate 1mbit", "`1:2` cannot move to another class"),
            ("htb handle 3:", "`handle` cannot be changed"),
        ] {
            let error = refused(htb, text);
            assert!(error.starts_with(why), "{error}");
        }
        let hfsc = "hfsc; class 1:1 sc rate 1mbit; class 1:2 parent 1:1 sc rate 1mbit";
        let error = refused(hfsc, "hfsc; class del 1:2");
        assert!(error.starts_with("`1:1` cannot gain its first class or lose its last"), "{error}");
    }

    #[test]
    fn errors_say_what_and_where() {
        for (text, at, message) in [
            ("htb; class 1:1 rate", "rate", "`rate` needs a value"),
            (
                "htb; class 1:1 rte 1mbit",
                "rte",
                "unknown word `rte` for `class`: did you mean `rate`?",
            ),
            (
                "htb; class 1:1 rate 1mbit; class 1:2 parent 1:3 rate 1mbit",
                "1:2",
                "`1:2` cannot be in `1:3`",
            ),
            (
                "htb; clas 1:1 rate 1mbit",
                "clas",
                "`clas` cannot begin a statement; begin with class, qdisc or filter: did you mean `class`?",
            ),
            (
                "htb; class 1:1 ceil 1mbit",
                "",
                "a class of `htb` needs `rate`, such as `rate 10mbit`",
            ),
            (
                "drr; class 1:1 codel limt 9p",
                "limt",
                "unknown word `limt` for `codel`: did you mean `limit`?",
            ),
            (
                "drr; class 1:1; qdisc parent 1:1  codel  limt 9p",
                "limt",
                "unknown word `limt` for `codel`: did you mean `limit`?",
            ),
            ("drr; qdisc parent 1:1 codel", "1:1", "class `1:1` does not exist"),
            (
                "prio; filter dport 0 to 1:1",
                "0",
                "`dport` needs a port, such as 443, or 5000-5100; found `0`",
            ),
            (
                "prio; filter port 30-20 to 1:1",
                "30-20",
                "`port` needs a port, such as 443, or 5000-5100; found `30-20`",
            ),
            (
                "prio; filter mark 0x1ffffffff to 1:1",
                "0x1ffffffff",
                "`mark` needs a 32-bit number, such as 1, or number/mask, such as 0x10/0xff; found `0x1ffffffff`",
            ),
            (
                "prio; filter dprt 1 to 1:1",
                "dprt",
                "unknown word `dprt` for `filter`: did you mean `dport`?",
            ),
            (
                "prio; filter dscp EFF to 1:1",
                "EFF",
                "`dscp` needs a code point, such as EF or 46; found `EFF`",
            ),
            ("prio; filter dscp EF to 2:1", "2:1", "`2:1` is not a class of `1:`"),
            ("prio priomap 1 2", "1 2", "`priomap` needs 16 bands"),
            ("prio bands 2", "", "`priomap` names band 2, but the last band is 1"),
            ("ets", "", "`ets` needs `bands`, `strict` or `quanta`, with 1 to 16 bands in total"),
            (
                "ets bands 2 strict 1 quanta 5 6",
                "5 6",
                "`strict` and `quanta` name 3 bands, but `bands` is 2",
            ),
            (
                "hfsc; class 1:1 ul rate 1mbit",
                "",
                "a class of `hfsc` needs `rt`, `ls` or `sc`, such as `sc rate 2mbit`",
            ),
            (
                "hfsc; class 1:1 rt rate 1mbit ul rate 1mbit",
                "rate 1mbit",
                "`ul` needs `ls` or `sc`",
            ),
            (
                "hfsc; class 1:1 rt m1 1mbit",
                "m1 1mbit",
                "`rt`: needs m1, d and m2; umax, dmax and rate; or rate, such as `rate 2mbit`",
            ),
            (
                "hfsc; class 1:1 sc rate 1mbit rt rate 2mbit",
                "rate 2mbit",
                "`sc` and `rt` exclude each other",
            ),
        ] {
            let error = Params::parse(text, &Device::default()).expect_err(text);
            assert_eq!(error.to_string(), message, "{text}");
            assert_eq!(&text[error.at], at, "{text}");
        }
    }

    /// The position of an error about the whole tree is the statement that causes the error.
    #[test]
    fn errors_of_a_whole_tree_name_the_statement() {
        for (text, at, message) in [
            (
                "prio; filter all to 1:4",
                "filter all to 1:4",
                "a filter sends packets to `1:4`, which is not a class that holds packets",
            ),
            (
                "drr; class 1:1; filter flow divisor 2 to 1:1; filter src 1 to 1:1",
                "filter flow divisor 2 to 1:1",
                "a filter sends packets to `1:2`, which is not a class that holds packets",
            ),
            (
                "htb; class 1:1 rate 1mbit codel; class 1:2 parent 1:1 rate 1mbit",
                "class 1:1 rate 1mbit codel",
                "`1:1` holds no packets and cannot have a discipline",
            ),
            (
                "htb; class 1:1 rate 1mbit; qdisc parent 1:1 codel; class 1:2 parent 1:1 rate 1mbit",
                "qdisc parent 1:1 codel",
                "`1:1` holds no packets and cannot have a discipline",
            ),
            (
                "ets bands 2 strict 1; class 1:1 quantum 3b; class 1:2",
                "class 1:1 quantum 3b",
                "`1:1` is a strict band and cannot have a quantum",
            ),
            (
                "ets bands 3; class 1:9 quantum 3b",
                "class 1:9 quantum 3b",
                "class `1:9` does not exist",
            ),
            (
                "prio; qdisc parent 1:4 codel",
                "qdisc parent 1:4 codel",
                "class `1:4` does not exist",
            ),
            (
                "prio; class 5:1 quantum 3b",
                "class 5:1 quantum 3b",
                "no inner discipline has the number `5:`",
            ),
            (
                "prio; qdisc parent 1:1 handle 2: drr; qdisc parent 1:2 handle 2: drr",
                "qdisc parent 1:2 handle 2: drr",
                "two disciplines have the number `2:`; numbers must differ",
            ),
            (
                "drr; filter parent 1:1 all to 1:1",
                "1:1",
                "filters of classes are not modelled; set the discipline as parent",
            ),
        ] {
            let error = Params::parse(text, &Device::default()).expect_err(text);
            assert_eq!((error.to_string().as_str(), &text[error.at]), (message, at), "{text}");
        }
    }

    #[test]
    fn a_band_with_default_values_needs_no_statement() {
        for (text, short) in [
            ("ets bands 3; class 1:1", "ets bands 3"),
            ("prio; class 1:2", "prio"),
            ("prio; qdisc parent 1:2 codel; qdisc del parent 1:2", "prio"),
        ] {
            assert_eq!(params(text), params(short), "{text}");
        }
    }

    /// One command of `tc` can create a discipline without classes; a discipline with classes needs
    /// several.
    #[test]
    fn the_kernel_has_what_one_command_says() {
        assert_eq!(
            params("prio bands 4").to_tc().unwrap(),
            "prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"
        );
        assert_eq!(params("ets bands 3 strict 1").to_tc().unwrap(), "ets bands 3 strict 1");
        assert_eq!(params("htb default 30").to_tc().unwrap(), "htb default 30 r2q 10");
        let with_class = params("drr; class 1:1").to_tc();
        assert!(matches!(with_class, Err(NoKernelEquivalent { place: None, .. })));
    }

    proptest! {
        #[test]
        fn no_statement_panics(words in "((htb|hfsc|drr|ets|prio|mq|default_qdisc|numtxqueues|class|qdisc|filter|parent|del|1:|1:1|1:2|2:1|;|to|handle|2:|codel|rate|1mbit|sc|m1|d|5ms|m2|quantum|9b|all|flow|divisor|3|strict|quanta|dport|port|sport|mark|7-9|9-7|0x1/0x3|4294967295) ){0,14}") {
            for name in ["htb", "hfsc", "drr", "ets bands 3", "prio", "mq"] {
                let text = format!("{name} ; {words}");
                match Params::parse(&text, &Device::default()) {
                    Ok(read) => {
                        let written = read.to_text();
                        prop_assert_eq!(Params::parse(&written, &Device::default()), Ok(read), "{}", written);
                    }
                    Err(error) => prop_assert!(text.get(error.at).is_some()),
                }
            }
        }
    }
}

mod filters {
    use super::*;

    /// Returns the class of a packet in a `drr` with classes 1 to 4; `None` if it is dropped.
    fn class_of(filters: &str, frame: Frame) -> Option<u16> {
        let classes = "class 1:1; class 1:2; class 1:3; class 1:4";
        let mut bench = Bench::new(&format!("drr; {classes}; {filters}"));
        bench.offer(frame);
        (1..=4).find(|class| bench.flow(usize::from(*class), "qlen") == 1)
    }

    #[test]
    fn the_first_filter_that_fits_counts() {
        let frame = |flow, dscp| Frame { flow, dscp, ..Frame::new(0, 100) };
        let filters = "filter dscp EF host 2 to 1:1; filter dscp 46 to 1:2; filter src 3 to 1:3";
        assert_eq!(class_of(filters, frame(2, 46)), Some(1));
        assert_eq!(class_of(filters, frame(5, 46)), Some(2));
        assert_eq!(class_of(filters, frame(3, 0)), Some(3));
        assert_eq!(class_of(filters, frame(5, 0)), None);
        assert_eq!(
            class_of("filter dst 9 to 1:4", Frame { hosts: Some((1, 9)), ..frame(0, 0) }),
            Some(4)
        );
        assert_eq!(class_of("filter protocol 0 to 1:2", frame(0, 0)), Some(2));
        assert_eq!(class_of("filter protocol tcp to 1:2", frame(0, 0)), None);
        // The class that a packet names takes precedence over filters.
        let named = Frame { class: Some(4), ..frame(3, 0) };
        assert_eq!(class_of(filters, named), Some(4));
        for flow in 0..9 {
            let expected = 2 + (frame(flow, 0).flow_hash() % 3) as u16;
            assert_eq!(class_of("filter flow divisor 3 to 1:2", frame(flow, 0)), Some(expected));
        }
    }

    #[test]
    fn ports_and_marks_are_those_of_the_headers() {
        let with = |ports, mark| {
            let headers = Headers { protocol: Headers::UDP, ports, mark };
            Frame { headers, ..Frame::new(0, 100) }
        };
        let filters = "filter sport 25 to 1:1; filter dport 5000-5100 to 1:2; filter port 53 protocol udp \
                       to 1:3; filter mark 0x10/0xf0 to 1:4";
        for (ports, mark, class) in [
            ((25, 5050), 0, Some(1)),
            ((25, 53), 0x10, Some(1)),
            ((1, 5000), 0, Some(2)),
            ((1, 5100), 0, Some(2)),
            ((1, 5101), 0, None),
            ((5000, 25), 0, None),
            ((53, 9), 0, Some(3)),
            ((9, 53), 0, Some(3)),
            ((9, 9), 0x1f, Some(4)),
            ((9, 9), 0x20, None),
        ] {
            assert_eq!(class_of(filters, with(ports, mark)), class, "{ports:?} {mark}");
        }
        assert_eq!(class_of("filter port 53 protocol tcp to 1:1", with((53, 1), 0)), None);
        assert_eq!(class_of("filter mark 16 to 1:1", with((1, 1), 0x1f)), None);
        assert_eq!(class_of("filter mark 31 to 1:1", with((1, 1), 0x1f)), Some(1));
    }

    proptest! {
        /// The first filter whose conditions hold selects the class.
        #[test]
        fn filters_are_asked_in_their_order(
            filters in vec((0..4u8, 0..6u16, 0..3u16, 1..5u16), 0..6),
            ports in (1..6u16, 1..6u16),
            mark in 0..6u32,
        ) {
            let number = |first: u16, more: u16| (first.max(1), first.max(1) + more);
            let text = |(kind, first, more, class): &(u8, u16, u16, u16)| {
                let (low, high) = number(*first, *more);
                let condition = match kind {
                    0 => format!("sport {low}-{high}"),
                    1 => format!("dport {low}-{high}"),
                    2 => format!("port {low}-{high}"),
                    _ => format!("mark {first:#x}/0x3"),
                };
                format!("filter {condition} to 1:{class}")
            };
            let fits = |(kind, first, more, _): &&(u8, u16, u16, u16)| {
                let (low, high) = number(*first, *more);
                let within = |port: u16| low <= port && port <= high;
                match kind {
                    0 => within(ports.0),
                    1 => within(ports.1),
                    2 => within(ports.0) || within(ports.1),
                    _ => mark & 3 == u32::from(*first) & 3,
                }
            };
            let all: Vec<_> = filters.iter().map(text).collect();
            let expected = filters.iter().find(fits).map(|filter| filter.3);
            let headers = Headers { protocol: Headers::TCP, ports, mark };
            let frame = Frame { headers, ..Frame::new(0, 100) };
            prop_assert_eq!(class_of(&all.join("; "), frame), expected, "{:?}", all);
        }
    }

    /// Priorities of code points, and bands of priorities, are those of tc-prio(8).
    #[test]
    fn code_points_have_priorities() {
        for (dscp, band) in
            [(0, 1), (46, 1), (8, 1), (2, 2), (4, 0), (34, 2), (40, 1), (1, 1), (7, 1)]
        {
            let mut bench = Bench::new("prio");
            bench.offer(Frame { dscp, ..Frame::new(0, 100) });
            let found = (0..3).find(|band| bench.flow(band + 1, "qlen") == 1);
            assert_eq!(found, Some(band), "{dscp}");
        }
    }

    #[test]
    fn packets_without_a_class_are_dropped_or_bypass_the_classes() {
        for text in ["drr; class 1:1", "hfsc; class 1:1 sc rate 1mbit"] {
            let mut bench = Bench::new(text);
            assert_eq!(bench.arrive(100), Return::Success);
            assert_eq!(bench.kept.dropped[0].1, DropReason::Overflow);
            assert_eq!((bench.counter("drops"), bench.queue.packets()), (1, 0));
        }
        let mut bench = Bench::new("htb direct_qlen 1p; class 1:1 rate 8kbit");
        assert_eq!([bench.arrive(100), bench.arrive(100)], [Return::Success, Return::Drop]);
        assert_eq!((bench.state("direct_qlen"), bench.counter("direct_pkts")), (1, 1));
        assert!(bench.take().is_some());
    }
}

mod shares {
    use super::*;

    const TWO: &str = "htb txqueuelen 20000p; class 1:1 rate 10mbit; class 1:10 parent 1:1 rate 6mbit \
                       ceil 10mbit; class 1:20 parent 1:1 rate 3mbit ceil 8mbit";

    #[test]
    fn htb_gives_each_its_rate_and_lends_the_rest_up_to_ceil() {
        let mut bench = Bench::new(TWO);
        for _ in 0..9000 {
            offer(&mut bench, 0x10, 1000);
            offer(&mut bench, 0x20, 1000);
        }
        let sent = carry(&mut bench, 1_000_000_000, 4 * SECOND);
        is_near(sent[0x10] + sent[0x20], 5_000_000);
        assert!(sent[0x10] >= 2_950_000 && sent[0x20] >= 1_450_000, "{sent:?}");
        assert!(bench.flow(0x10, "borrows") > 0 && bench.flow(1, "lends") > 0);
        // A class without competition borrows up to its ceiling.
        let mut alone = Bench::new(TWO);
        (0..9000).for_each(|_| _ = offer(&mut alone, 0x20, 1000));
        is_near(carry(&mut alone, 1_000_000_000, 4 * SECOND)[0x20], 4_000_000);
    }

    /// Among classes that borrow, those with the smallest priority number borrow first.
    #[test]
    fn htb_lends_by_priority() {
        let mut bench = Bench::new(
            "htb txqueuelen 20000p; class 1:1 rate 10mbit; class 1:2 parent 1:1 rate 1mbit ceil 10mbit \
             prio 0; class 1:3 parent 1:1 rate 1mbit ceil 10mbit prio 1",
        );
        for _ in 0..9000 {
            offer(&mut bench, 2, 1000);
            offer(&mut bench, 3, 1000);
        }
        let sent = carry(&mut bench, 1_000_000_000, 4 * SECOND);
        is_near(sent[2], 4_500_000);
        is_near(sent[3], 500_000);
    }

    #[test]
    fn prio_starves_the_bands_behind_a_busy_one() {
        let mut bench = Bench::new("prio txqueuelen 1000p");
        for _ in 0..500 {
            offer(&mut bench, 3, 1000);
            offer(&mut bench, 1, 1000);
        }
        let sent = carry(&mut bench, 8_000_000, 400 * MILLISECOND);
        assert_eq!((sent[1], sent[3]), (400_000, 0));
        let sent = carry(&mut bench, 8_000_000, SECOND);
        assert_eq!((sent[1], sent[3]), (100_000, 500_000));
    }

    /// While a band must wait, later bands send.
    #[test]
    fn a_band_that_holds_packets_back_does_not_stop_others() {
        let mut bench = Bench::new("prio; qdisc parent 1:1 tbf rate 8mbit burst 1000b limit 9kb");
        (0..3).for_each(|_| _ = offer(&mut bench, 1, 1000));
        offer(&mut bench, 2, 1000);
        let flows: Vec<_> = (0..2).map(|_| bench.take().unwrap().flow).collect();
        assert_eq!(flows, [1, 2]);
        assert!(bench.take().is_none());
        assert_eq!(bench.not_before, Some(bench.now + MILLISECOND));
    }

    #[test]
    fn drr_shares_bytes_by_quanta() {
        let mut bench =
            Bench::new("drr txqueuelen 20000p; class 1:1 quantum 1000b; class 1:2 quantum 3000b");
        for _ in 0..20_000 {
            offer(&mut bench, 1, 1500);
            offer(&mut bench, 2, 300);
        }
        let sent = carry(&mut bench, 8_000_000, 4 * SECOND);
        is_near(sent[1] * 3, sent[2]);
    }

    #[test]
    fn ets_serves_strict_bands_first() {
        let mut bench = Bench::new("ets strict 1 quanta 1000 2000 txqueuelen 5000p");
        for _ in 0..3000 {
            for band in 1..4 {
                offer(&mut bench, band, 500);
            }
        }
        let sent = carry(&mut bench, 8_000_000, 2 * SECOND);
        assert_eq!(sent[1], 1_500_000);
        is_near(sent[2] * 2, sent[3]);
    }

    /// A class with 1 Mbit/s, whose first packet leaves within 2 ms, and a class that uses the
    /// whole line.
    #[test]
    fn hfsc_keeps_the_real_time_curve() {
        let delay = |own: &str| {
            let mut bench = Bench::new(&format!(
                "hfsc default 2 txqueuelen 20000p; class 1:1 {own}; class 1:2 ls rate 9mbit"
            ));
            (0..9000).for_each(|_| _ = offer(&mut bench, 2, 1500));
            let (mut due, mut worst) = (bench.now, 0);
            let until = bench.now + 2 * SECOND;
            while bench.now < until {
                while due <= bench.now {
                    let at = bench.now;
                    bench.now = at.max(due);
                    offer(&mut bench, 1, 1000);
                    due += 8 * MILLISECOND;
                }
                let at = bench.queue.enqueued_at(0);
                let frame = bench.take().expect("work conservation");
                bench.wait(u64::from(frame.len) * 8 * 100);
                if frame.flow == 1 {
                    worst = worst.max(bench.now - bench.queue.left_at().or(at).unwrap());
                }
            }
            worst
        };
        // A packet of the other class may be on the line.
        let real_time = delay("rt m1 4mbit d 2ms m2 1mbit");
        assert!(real_time <= 2 * MILLISECOND + 1200 * MICROSECOND, "{real_time}");
        let shared = delay("ls rate 1mbit");
        assert!(shared > 2 * real_time, "{shared} {real_time}");
    }

    #[test]
    fn hfsc_shares_the_rest_and_keeps_upper_limits() {
        let mut bench = Bench::new(
            "hfsc txqueuelen 20000p; class 1:1 ls rate 1mbit; class 1:2 ls rate 3mbit; class 1:3 ls rate \
             4mbit ul rate 2mbit",
        );
        for _ in 0..9000 {
            for class in 1..4 {
                offer(&mut bench, class, 1000);
            }
        }
        let sent = carry(&mut bench, 10_000_000, 4 * SECOND);
        is_near(sent[3], 1_000_000);
        is_near(sent[1], 1_000_000);
        is_near(sent[2], 3_000_000);
    }
}

/// When a class of HFSC is deleted, the other classes keep their packets, curves and virtual times.
#[test]
fn hfsc_goes_on_without_a_class() {
    let text = "hfsc txqueuelen 2000p; class 1:1 ls rate 8mbit; class 1:2 parent 1:1 sc m1 4mbit d 50ms \
                m2 1mbit; class 1:3 parent 1:1 ls rate 3mbit; class 1:4 ls rate 2mbit";
    let order = |deletes: bool| {
        let mut bench = Bench::new(text);
        for _ in 0..500 {
            for class in [2, 3].into_iter().chain(deletes.then_some(4)) {
                offer(&mut bench, class, 1000);
            }
        }
        let mut found = Vec::new();
        while found.len() < 600 {
            if deletes && found.len() == 40 && bench.counter("drops") == 0 {
                bench.change("hfsc; class del 1:4");
            }
            let flow = bench.take().expect("work conservation").flow;
            bench.wait(MILLISECOND);
            if flow != 4 {
                found.push(flow);
            }
        }
        (found, bench)
    };
    let (found, mut bench) = order(true);
    let dropped = bench.counter("drops");
    assert!((480..500).contains(&dropped), "{dropped}");
    assert_eq!(bench.queue.packets(), 400);
    // Afterwards the tree within `1:1` shares the rate as if `1:4` had never existed: its curves
    // have not begun anew.
    let (other, _) = order(false);
    let of_first = |flows: &[u32]| flows.iter().filter(|flow| **flow == 2).count();
    let begun = |flows: &[u32]| of_first(&flows[..40]);
    assert!(begun(&other).abs_diff(begun(&found)) <= 3, "{} {}", begun(&other), begun(&found));
    let later = of_first(&found[100..500]);
    assert!(later.abs_diff(of_first(&other[100..500])) <= 4, "{later}");
    // A new class can have the same name.
    bench.change("hfsc; class 1:4 ls rate 2mbit");
    assert_eq!(offer(&mut bench, 4, 1000), Return::Success);
    assert_eq!(bench.counter("drops"), dropped);
    let classes: Vec<_> = (0..20).map(|_| bench.take().unwrap().flow).collect();
    assert!(classes.contains(&4), "{classes:?}");
}

/// Packets are dropped when their class is deleted, or when the class gets another discipline.
#[test]
fn removed_classes_and_disciplines_drop_their_packets() {
    let mut bench = Bench::new("drr; class 1:1; class 1:2; class 1:3 codel");
    for class in [1, 2, 3, 1, 2, 3] {
        offer(&mut bench, class, 1000);
    }
    bench.change("drr; class del 1:2; qdisc parent 1:3 pie");
    assert_eq!(bench.dropped_ids(), [1, 4, 2, 5]);
    assert!(bench.kept.dropped.iter().all(|(.., queued)| *queued));
    assert_eq!((bench.queue.packets(), bench.counter("drops")), (2, 4));
    assert_eq!(offer(&mut bench, 2, 1000), Return::Success);
    assert_eq!(bench.counter("drops"), 5);
}

/// `leaves` visits the packets of all classes, including those of inner disciplines. Their sum is
/// the number of queued packets.
#[test]
fn leaves_are_called_as_in_tc_and_hold_all_packets() {
    let leaves = |bench: &Bench| {
        let mut found = Vec::new();
        bench.queue.leaves(&mut |name, leaf| {
            found.push((name.to_owned(), leaf.backlog.packets as usize, leaf.backlog.bytes));
        });
        found
    };
    let of = |name: &str, packets: usize, bytes: u64| (name.to_owned(), packets, bytes);
    let mut bench = Bench::new(
        "htb default 10; class 1:1 rate 8mbit; class 1:10 parent 1:1 rate 4mbit; class 1:20 parent 1:1 rate \
         4mbit; qdisc parent 1:20 handle 20: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1; filter \
         dscp EF to 1:20",
    );
    let ef = |id| Frame { dscp: 46, ..Frame::new(id, 700) };
    bench.offer(Frame::new(1, 1000));
    bench.offer(ef(2));
    bench.offer(ef(3));
    let found = leaves(&bench);
    assert_eq!(found, [of("1:10", 1, 1000), of("1:20/20:1", 0, 0), of("1:20/20:2", 2, 1400)]);
    let (packets, bytes) = found.iter().fold((0, 0), |(p, b), leaf| (p + leaf.1, b + leaf.2));
    assert_eq!((packets, bytes), (bench.queue.packets(), bench.queue.bytes()));
    for (text, names) in [
        ("hfsc; class 1:1 ls rate 1mbit; class 1:2 parent 1:1 ls rate 1mbit", vec!["1:2"]),
        ("tbf rate 9mbit burst 5kb child hfsc default 2; class 1:2 sc rate 2mbit", vec!["1:2"]),
        ("tbf rate 1mbit burst 10kb latency 10ms", vec![]),
        ("fq_codel", vec![]),
    ] {
        let found: Vec<_> = leaves(&Bench::new(text)).into_iter().map(|leaf| leaf.0).collect();
        assert_eq!(found, names, "{text}");
    }
}

/// The packets that came to a class since the last restart were sent or dropped, or wait.
#[test]
fn the_packets_of_a_class_are_sent_dropped_or_queued() {
    let mut bench = Bench::new(
        "htb default 20; class 1:10 rate 8mbit; class 1:20 rate 8mbit; qdisc parent 1:20 pfifo \
         limit 3; filter dscp EF to 1:10",
    );
    let of = |bench: &Bench| {
        let mut found = Vec::new();
        bench.queue.leaves(&mut |name, leaf| {
            let slowest = leaf.sojourn.moments().greatest();
            found.push((name.to_owned(), leaf.sent.packets, leaf.drops(), slowest));
        });
        found
    };
    let told = |name: &str, sent, drops, slowest| (name.to_owned(), sent, drops, slowest);
    for id in 0..5 {
        bench.offer(Frame::new(id, 1000));
    }
    assert_eq!(of(&bench), [told("1:10", 0, 0, 0), told("1:20", 0, 2, 0)]);
    bench.now += 1_000_000;
    bench.take();
    assert_eq!(of(&bench), [told("1:10", 0, 0, 0), told("1:20", 1, 2, 1_000_000)]);
    bench.queue.restart();
    assert_eq!(of(&bench), [told("1:10", 0, 0, 0), told("1:20", 0, 0, 0)]);
    bench.now += 1_000_000;
    bench.take();
    bench.offer(Frame { dscp: 46, ..Frame::new(6, 700) });
    assert_eq!(of(&bench), [told("1:10", 0, 0, 0), told("1:20", 1, 0, 2_000_000)]);
}

/// Every class that a description states, or whose discipline it states, is found by the name of
/// its queue; bands and transmit queues that follow from a number are not stated.
#[test]
fn stated_classes_have_the_names_of_leaves() {
    let htb = "htb default 20; class 1:1 rate 9mbit; class parent 1:1 classid 1:10 rate 8mbit; \
               class parent 1:1 classid 1:20 rate 1mbit; qdisc parent 1:20 handle 20: prio; \
               qdisc parent 20:2 pfifo limit 3";
    for (text, stated) in [
        ("pfifo", &[][..]),
        ("prio", &[]),
        ("prio; qdisc parent 1:2 codel", &["1:2"]),
        (htb, &["1:10", "1:20/20:2"]),
        ("htb default 10; class 1:10 rate 1mbit; qdisc parent 1:10 prio", &["1:10"]),
        ("hfsc default 16; class 1:10 ls rate 1mbit; class 1:16 ls rate 1mbit", &["1:10", "1:16"]),
        ("drr; class 1:1; filter dscp EF to 1:1", &["1:1"]),
        ("ets bands 3; class 1:1 quantum 3000", &["1:1"]),
        ("tbf rate 1mbit burst 10kb child htb default 1; class 1:1 rate 1mbit", &["1:1"]),
        ("mq", &[]),
    ] {
        let Ok(params) = Params::parse(text, &Device::default()) else { panic!("{text}") };
        assert_eq!(params.stated_classes(), stated, "{text}");
        let bench = Bench::new(text);
        let mut leaves = Vec::new();
        bench.queue.leaves(&mut |name, _| leaves.push(name.to_owned()));
        for name in stated {
            let inner = format!("{name}/");
            assert!(
                leaves.iter().any(|one| one == name || one.starts_with(&inner)),
                "{text}: {leaves:?}"
            );
        }
    }
}

/// Classes that a description forgets are named, with the fate of their packets.
#[test]
fn packets_without_a_class_are_announced() {
    let said = |text: &str| Params::warnings(text, &Device::default());
    for (text, words) in [
        ("htb default 10", "`htb` has no class here: all packets bypass all classes"),
        ("htb", "all packets bypass all classes"),
        (
            "htb default 16; class 1:10 rate 1mbit",
            "`default 16`: `1:16` is no class with packets: those that no filter matches bypass",
        ),
        (
            "htb default 1; class 1:1 rate 1mbit; class parent 1:1 classid 1:10 rate 1mbit",
            "`default 1`: `1:1`",
        ),
        ("hfsc", "are dropped"),
        (
            "hfsc default 16; class 1:10 ls rate 1mbit",
            "`1:16` is no class with packets: those that no filter matches are dropped",
        ),
        ("drr", "all packets are dropped"),
    ] {
        let found = said(text);
        assert!(found.len() == 1 && found[0].contains(words), "{text}: {found:?}");
    }
    for text in [
        "htb default 10; class 1:10 rate 1mbit",
        "htb; class 1:10 rate 1mbit; filter dscp EF to 1:10",
        "hfsc default 10; class 1:10 ls rate 1mbit",
        "drr; class 1:1; filter dscp EF to 1:1",
        "prio",
        "ets bands 3",
        "mq",
    ] {
        assert!(said(text).is_empty(), "{text}: {:?}", said(text));
    }
}

/// A shaper whose nanoseconds give another rate has a notice, and one that keeps its rate has none.
#[test]
fn shapers_announce_the_rate_that_they_keep() {
    for (rate, differs) in
        [("10mbit", false), ("1gbit", false), ("10gbit", true), ("40gbit", true), ("100gbit", true)]
    {
        for text in [
            format!("htb default 10; class 1:10 rate {rate}"),
            format!("htb default 10; class 1:10 rate 1mbit ceil {rate}"),
            format!("tbf rate {rate} burst 10mb limit 10mb"),
            format!("cake bandwidth {rate}"),
        ] {
            let found = Params::warnings(&text, &Device::default());
            let said = found
                .iter()
                .any(|text| text.contains("as in Linux, and sends those of 64 bytes at"));
            assert_eq!(said, differs, "{text}: {found:?}");
        }
    }
}
