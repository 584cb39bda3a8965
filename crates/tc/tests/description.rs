//! Lines of `tc` as the description of a queue, or of a link's impairments.

use proptest::prelude::*;
use sojourn_link::Netem;
use sojourn_queue::{Device, Params};
use sojourn_tc::{netem, queue};

fn parse(text: &str) -> Params {
    queue(text, &Device::default()).unwrap_or_else(|why| panic!("{text}: {why}")).params
}

fn warnings(text: &str) -> Vec<String> {
    queue(text, &Device::default()).map(|queue| queue.notices).unwrap_or_default()
}

#[test]
fn commands_read_as_their_discipline() {
    let line = "tc qdisc add dev eth0 root cake bandwidth 20mbit nat";
    assert_eq!(parse(line), parse("cake bandwidth 20mbit"));
    assert_eq!(queue(line, &Device::default()).unwrap().text, "cake bandwidth 20mbit nat");
    assert!(warnings(line)[0].starts_with("`nat`"));
    let wrong = "tc qdisc add dev eth0 root codel traget 5ms";
    let error = queue(wrong, &Device::default()).unwrap_err();
    assert_eq!((error.nearest.as_deref(), &wrong[error.at]), (Some("target"), "traget"));
}

/// The lines that iproute2 7.2 prints for each discipline.
#[test]
fn printed_disciplines_read_as_they_were_set() {
    for (printed, meant) in [
        ("pfifo 8003: dev eth0 root refcnt 2 limit 300p", "pfifo limit 300p"),
        ("bfifo 8003: dev eth0 root refcnt 2 limit 15000b", "bfifo limit 15000b"),
        (
            "pfifo_fast 0: dev eth0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            "pfifo_fast",
        ),
        ("skbprio 8001: dev eth0 root refcnt 2 limit 50 ", "skbprio limit 50p"),
        (
            "hhf 8001: dev eth0 root refcnt 2 limit 900p quantum 1514b hh_limit 2048 reset_timeout 40ms \
             admit_bytes 128Kb evict_timeout 1s non_hh_weight 2 ",
            "hhf limit 900p",
        ),
        (
            "codel 8001: dev eth0 root refcnt 2 limit 1000p target 4ms interval 90ms ecn ",
            "codel limit 1000p target 4ms interval 90ms ecn",
        ),
        (
            "fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms \
             ce_threshold 1ms ce_threshold_selector 0/0 interval 100ms memory_limit 32Mb ecn drop_batch 64 ",
            "fq_codel ce_threshold 1ms",
        ),
        (
            "fq_pie 8002: dev eth0 root refcnt 2 limit 10240p flows 1024 target 15ms tupdate 16ms \
             alpha 2 beta 20 quantum 1514b memory_limit 32Mb ecn_prob 10 ",
            "fq_pie tupdate 16ms",
        ),
        (
            "pie 8002: dev eth0 root refcnt 2 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 ecn ",
            "pie tupdate 16ms ecn",
        ),
        (
            "red 8002: dev eth0 root refcnt 2 limit 60000b min 5000b max 15000b ecn \
             ewma 3 probability 0.05 Scell_log 10",
            "red limit 60000 min 5000 max 15000 ecn probability 0.05",
        ),
        (
            "choke 8002: dev eth0 root refcnt 2 limit 1000p min 83p max 250p ",
            "choke limit 1000 min 83 max 250",
        ),
        (
            "sfb 8002: dev eth0 root refcnt 2 rehash 600s db 60s limit 1000p max 25p target 20p \
             increment 0.0005 decrement 5e-05 penalty_rate 10pps penalty_burst 20p ",
            "sfb",
        ),
        (
            "tbf 8002: dev eth0 root refcnt 2 rate 1Mbit burst 5Kb lat 50ms ",
            "tbf rate 1mbit burst 5kb latency 50ms",
        ),
        (
            "tbf 8002: dev eth0 root refcnt 2 rate 1Mbit burst 5Kb/8 mpu 64b [00013880] limit 9Kb linklayer ethernet",
            "tbf rate 1mbit burst 5kb mpu 64 limit 9kb",
        ),
        (
            "fq 8001: dev eth0 root refcnt 2 limit 9000p flow_limit 100p buckets 1024 orphan_mask 1023 bands 3 \
             priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 0 weights 589824 196608 65536 quantum 3028b initial_quantum 15140b \
             maxrate 20Mbit low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop ",
            "fq limit 9000p maxrate 20mbit priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 0",
        ),
        (
            "dualpi2 8002: dev eth0 root refcnt 2 limit 10000p memlimit 30280000B target 15ms tupdate 16ms \
             alpha 0.160156 beta 3.199219 step_thresh 1ms min_qlen_step 0p coupling_factor 2 \
             drop_on_overload drop_dequeue classic_protection 10% l4s_ect split_gso ",
            "dualpi2",
        ),
        (
            "cake 8009: dev eth0 root refcnt 2 bandwidth unlimited diffserv3 triple-isolate nat nowash \
             no-ack-filter split-gso rtt 100ms raw overhead 0 fwmark 0xff ",
            "cake",
        ),
    ] {
        let counters = " Sent 5044 bytes 47 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0";
        let read = parse(&format!("qdisc {printed}\n{counters}"));
        assert_eq!(read, parse(meant), "{printed}");
        assert_eq!(read, parse(printed));
        let description = queue(printed, &Device::default()).unwrap().text;
        assert_eq!(parse(&description), read, "{description}");
    }
    assert!(warnings("qdisc red 1: root limit 60000b min 5000b max 15000b")[0].contains("avpkt"));
}

#[test]
fn a_text_without_a_queue_is_refused_at_its_place() {
    for (text, at, why) in [
        ("tc qdisc del dev eth0 root", "tc qdisc del dev eth0 root", "sets no queue discipline"),
        ("tc qdisc add dev eth0 root", "qdisc", "kind of discipline is missing"),
        ("tc qdisc adn dev eth0 root cake", "adn", "unknown command `adn`"),
        ("tc qdisc add dev eth0 root handle 1: gred default 10", "gred", "`gred` is not modelled"),
        ("tc qdisc add dev eth0 root netem delay 9ms", "", "a key of a link: `netem = \"delay 9ms"),
        (
            "tc qdisc add dev a root codel\ntc qdisc add dev b root pie",
            "",
            "sets queues of 2 devices, a, b: keep one",
        ),
    ] {
        let error = queue(text, &Device::default()).unwrap_err();
        assert!(error.message.contains(why), "{text}: {error}");
        assert!(at.is_empty() || &text[error.at] == at, "{text}");
    }
}

#[test]
fn errors_in_impairments_of_tc_have_their_place() {
    let error = netem("tc qdisc add dev eth0 root cake").unwrap_err();
    assert!(error.message.contains("`cake` is no impairment: it is a link's `queue`"), "{error}");
    let text = "tc qdisc add dev eth0 root netem dealy 15ms";
    let error = netem(text).unwrap_err();
    assert_eq!((&text[error.at.clone()], error.nearest.as_deref()), ("dealy", Some("delay")));
}

#[test]
fn a_whole_tree_is_one_queue() {
    let script = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                  tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n\
                  tc qdisc add dev eth0 parent 1:20 fq_codel";
    let meant = "htb default 20; class 1:20 parent 1: rate 5mbit; qdisc parent 1:20 fq_codel";
    assert_eq!(parse(script), parse(meant));
}

#[test]
fn printed_impairments_read_as_they_were_set() {
    for (line, meant) in [
        (
            "tc qdisc add dev eth0 root netem delay 100ms 10ms loss 1%",
            "delay 100ms 10ms loss 1% limit 1000",
        ),
        (
            "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms  10ms 25% loss 0.3% duplicate 1% \
             reorder 25% 50% corrupt 0.1% rate 1Mbit packetoverhead 20 cellsize 48 celloverhead 5 \
             slot 800us 1ms packets 5 bytes 1500 seed 77 gap 5\n Sent 0 bytes 0 pkt (dropped 0, overlimits 0)",
            "limit 1000 delay 100ms 10ms 25% loss 0.3% duplicate 1% reorder 25% 50% corrupt 0.1% \
             rate 1mbit 20 48 5 slot 800us 1ms packets 5 bytes 1500b gap 5",
        ),
        (
            "qdisc netem 8001: root refcnt 2 limit 1000 loss state p13 1% p31 10% p32 5% p23 50% p14 2% ecn ",
            "limit 1000 loss state 1% 10% 5% 50% 2% ecn",
        ),
    ] {
        let read = netem(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(Ok(read.params), Netem::parse(meant), "{line}");
        assert_eq!(Netem::parse(&read.text), Netem::parse(meant), "{line}");
    }
    assert!(netem("tc qdisc add dev eth0 root codel").is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in "\\PC{0,60}",
        words in "((tc|qdisc|add|show|del|dev|eth0|8001:|root|red|sfb|tbf|lat|burst|stab|mtu|9|5kb/8|rate|netem|delay|prio|htb|class|filter|parent|1:|1:1|;|to|handle|2:|drr|bands|Sent|estimator|-s|\n) ){0,12}",
    ) {
        for text in [text, words] {
            if let Err(error) = queue(&text, &Device::default()) {
                prop_assert!(text.get(error.at).is_some());
            }
            let _ = netem(&text);
        }
    }
}
