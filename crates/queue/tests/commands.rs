//! Tests of the commands of `tc` that create a queue on a device.

use sojourn_queue::classes::Name;
use sojourn_queue::{Device, Params, Place};
use sojourn_units::Rate;

fn params(text: &str) -> Params {
    Params::parse(text, &Device::default()).unwrap()
}

fn at_root(text: &str) -> Result<Vec<String>, String> {
    let commands = params(text).commands(&Place::default());
    commands.map(|all| all.texts("eth0")).map_err(|error| error.to_string())
}

#[test]
fn a_single_discipline_is_one_command() {
    let commands = at_root("fq_codel limit 300p").unwrap();
    assert_eq!(
        commands,
        [format!(
            "tc qdisc replace dev eth0 root handle 1: {}",
            params("fq_codel limit 300p").to_tc().unwrap()
        )]
    );
}

/// Commands for outer disciplines come first, and filters are in the order of the description.
#[test]
fn a_tree_is_written_from_outside() {
    let text = "htb default 20; class 1:1 parent 1: rate 10mbit; \
                class 1:10 parent 1:1 rate 6mbit ceil 10mbit burst 3000; class 1:20 parent 1:1 rate 4mbit; \
                qdisc parent 1:10 codel; \
                qdisc parent 1:20 handle 30: drr; class 30:1; class 30:2 quantum 3000b; \
                filter parent 30: flow divisor 2 to 30:1; \
                filter dscp EF to 1:10; filter host 3 protocol udp to 1:10; filter all to 1:20";
    let commands = at_root(text).unwrap();
    let expected = "\
        tc qdisc replace dev eth0 root handle 1: htb default 20 r2q 10
        tc class replace dev eth0 parent 1: classid 1:1 htb rate 10mbit burst 1600 cburst 1600 prio 0 quantum 0 \
        overhead 0 mpu 0
        tc class replace dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit burst 3000 cburst 1600 prio 0 \
        quantum 0 overhead 0 mpu 0
        tc class replace dev eth0 parent 1:1 classid 1:20 htb rate 4mbit burst 1600 cburst 1600 prio 0 quantum 0 \
        overhead 0 mpu 0
        tc qdisc replace dev eth0 parent 1:10 handle 10: codel limit 1000 target 5ms interval 100ms noecn
        tc qdisc replace dev eth0 parent 1:20 handle 30: drr
        tc class replace dev eth0 parent 30: classid 30:1 drr
        tc class replace dev eth0 parent 30: classid 30:2 drr quantum 3000
        tc filter replace dev eth0 parent 30: protocol all pref 1 handle 1 flow hash keys \
        src,dst,proto,proto-src,proto-dst divisor 2 baseclass 30:1
        tc filter replace dev eth0 parent 1: protocol ip pref 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
        tc filter replace dev eth0 parent 1: protocol ipv6 pref 2 u32 match ip6 priority 0xb8 0xfc flowid 1:10
        tc filter replace dev eth0 parent 1: protocol ip pref 3 u32 match ip src 10.0.0.4/32 match ip protocol 17 \
        0xff flowid 1:10
        tc filter replace dev eth0 parent 1: protocol ip pref 4 u32 match ip dst 10.0.0.4/32 match ip protocol 17 \
        0xff flowid 1:10
        tc filter replace dev eth0 parent 1: protocol all pref 5 u32 match u32 0 0 flowid 1:20";
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    assert_eq!(commands, expected);
}

/// No two disciplines have one number, for any number of the caller and of the description.
#[test]
fn numbers_are_unique() {
    let text = "prio; qdisc parent 1:1 pie; qdisc parent 1:2 handle 10: drr; class 10:1; \
                qdisc parent 10:1 tbf rate 1mbit burst 9kb child codel; qdisc parent 1:3 prio";
    let numbers = |parent: Option<&str>, handle| {
        let parent = parent.and_then(Name::read).and_then(|name| Some((name.major?, name.minor)));
        let place = Place { parent, handle, addresses: None };
        let commands = params(text).commands(&place).unwrap().texts("eth0");
        let number = |line: &String| {
            let words: Vec<_> = line.split(' ').collect();
            let at = words.iter().position(|word| *word == "handle")?;
            (words[1] == "qdisc").then(|| words[at + 1].to_owned())
        };
        commands.iter().filter_map(number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(None, None), ["1:", "11:", "10:", "12:", "13:", "30:"]);
    assert_eq!(numbers(Some("1:10"), Some(16)), ["10:", "11:", "20:", "12:", "13:", "30:"]);
    for (parent, handle) in [(Some("1:10"), None), (Some("30:1"), Some(1)), (None, Some(0x7fff))] {
        let mut all = numbers(parent, handle);
        all.extend(parent.map(|name| name.split(':').next().unwrap().to_owned() + ":"));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "{all:?}");
    }
}

/// `u32` compares leading bits, so a range of ports becomes the smallest number of blocks.
#[test]
fn ports_and_marks_are_words_of_u32() {
    let words = |filter: &str| -> Vec<String> {
        let commands = at_root(&format!("prio; filter {filter} to 1:1")).unwrap();
        let ipv4 = commands.iter().filter(|line| line.contains("protocol ip "));
        ipv4.map(|line| {
            let (_, words) = line.split_once(" u32 ").unwrap();
            words.replace("match ", "").replace(" flowid 1:1", "")
        })
        .collect()
    };
    assert_eq!(words("dport 22"), ["ip dport 22 0xffff"]);
    assert_eq!(words("sport 1024-65535").len(), 6);
    assert_eq!(
        words("sport 5-12"),
        ["ip sport 5 0xffff", "ip sport 6 0xfffe", "ip sport 8 0xfffc", "ip sport 12 0xffff"]
    );
    assert_eq!(words("port 53"), ["ip sport 53 0xffff", "ip dport 53 0xffff"]);
    assert_eq!(words("mark 0x10/0xf0 dport 22"), ["mark 0x10 0xf0 ip dport 22 0xffff"]);
    assert_eq!(words("dport 1-65535").len(), 16);
}

#[test]
fn a_child_of_tbf_is_a_second_command() {
    let commands = at_root("tbf rate 5mbit burst 5kb child fq_codel").unwrap();
    assert_eq!(
        commands[0],
        "tc qdisc replace dev eth0 root handle 1: tbf rate 5mbit burst 5120 limit 5120 overhead 0 mpu 0"
    );
    assert!(commands[1].starts_with("tc qdisc replace dev eth0 parent 1:1 handle 10: fq_codel "));
    assert_eq!(params("tbf rate 5mbit burst 5kb limit 9kb child codel").limit().unwrap().1, 1000);
}

#[test]
fn the_device_gets_its_length() {
    let commands = at_root("prio txqueuelen 50p").unwrap();
    assert_eq!(commands[0], "ip link set dev eth0 txqueuelen 50");
    assert_eq!(commands.len(), 2);
    let fast = at_root("pfifo_fast limit 300p").unwrap();
    let queue = "tc qdisc replace dev eth0 root handle 1: pfifo_fast";
    assert_eq!(fast, ["ip link set dev eth0 txqueuelen 300", queue]);
    assert_eq!(at_root("pfifo_fast").unwrap(), [queue]);
}

/// Each transmit queue gets an explicit discipline, so that the machine's default has no effect.
#[test]
fn transmit_queues_are_written_with_their_disciplines() {
    let text = "mq numtxqueues 3 txqueuelen 500p; qdisc parent 1:2 handle 20: drr; class 20:1";
    let expected = "\
        ip link set dev eth0 txqueuelen 500
        tc qdisc replace dev eth0 root handle 1: mq
        tc qdisc replace dev eth0 parent 1:1 handle 10: pfifo_fast
        tc qdisc replace dev eth0 parent 1:2 handle 20: drr
        tc class replace dev eth0 parent 20: classid 20:1 drr
        tc qdisc replace dev eth0 parent 1:3 handle 30: pfifo_fast";
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    // A class of `drr` has the device's transmit queue length.
    assert_eq!(at_root(&text.replace("drr", "drr txqueuelen 500p")).unwrap(), expected);
    assert!(at_root(text).unwrap_err().ends_with("an outer one has another value"));
}

#[test]
fn queues_that_tc_lacks_are_named_with_their_place() {
    for (text, message) in [
        (
            "prio; qdisc parent 1:2 handle 9: drr; class 9:1; qdisc parent 9:1 blue",
            "no kernel equivalent of this `blue` in `9:1`: Linux has only its stochastic fair variant, sfb",
        ),
        (
            "prio; qdisc parent 1:1 mq",
            "no kernel equivalent of this `mq` in `1:1`: Linux allows it only at the root of a device, and \
             here it is in a class",
        ),
        (
            "prio txqueuelen 5p; qdisc parent 1:1 prio",
            "no kernel equivalent of this `prio` in `1:1`: all disciplines of a device have the same \
             `txqueuelen`, and an outer one has another value",
        ),
    ] {
        assert_eq!(at_root(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn rates_are_those_of_all_packets() {
    let rate = |text| params(text).rate().map(Rate::bits);
    let htb = "class 1:1 rate 3mbit ceil 5mbit; class 1:2 rate 1mbit";
    for (text, expected) in [
        ("codel", None),
        ("cake", None),
        ("cake bandwidth 4mbit", Some(4_000_000)),
        ("tbf rate 7mbit burst 9kb child codel", Some(7_000_000)),
        (&*format!("htb default 1; {htb}"), Some(4_000_000)),
        (
            "htb default 10; class 1:1 rate 9mbit; class 1:10 parent 1:1 rate 1mbit ceil 5mbit",
            Some(5_000_000),
        ),
        (
            "htb default 2; class 1:1 rate 2mbit; class 1:2 parent 1:1 rate 3mbit; \
          class 1:3 parent 1:1 rate 1mbit ceil 4mbit",
            Some(4_000_000),
        ),
        // Packets may bypass the classes.
        (&*format!("htb; {htb}"), None),
        ("hfsc default 1; class 1:1 ls rate 1mbit ul rate 2mbit", Some(2_000_000)),
        ("hfsc default 1; class 1:1 ls rate 1mbit ul rate 2mbit; class 1:2 ls rate 1mbit", None),
        ("prio; qdisc parent 1:1 tbf rate 1mbit burst 9kb limit 9kb", None),
        ("mq numtxqueues 2; qdisc parent 1:1 tbf rate 1mbit burst 9kb limit 9kb", None),
        (
            "mq numtxqueues 2; qdisc parent 1:1 cake bandwidth 2mbit; qdisc parent 1:2 tbf rate 1mbit burst 9kb \
             limit 9kb",
            Some(3_000_000),
        ),
    ] {
        assert_eq!(rate(text), expected, "{text}");
    }
}

/// Returns the commands for the filters of `prio; filter WORDS to 1:2`, from the protocol on.
fn filters(words: &str) -> Vec<String> {
    let commands = at_root(&format!("prio; filter {words} to 1:2")).unwrap();
    let lead = "tc filter replace dev eth0 parent 1: protocol ";
    commands.iter().filter_map(|line| Some(line.strip_prefix(lead)?.to_owned())).collect()
}

#[test]
fn a_mark_alone_is_fw_s() {
    assert_eq!(filters("mark 16"), ["all pref 1 handle 0x10 fw classid 1:2"]);
    assert_eq!(filters("mark 0x10/0xf0"), ["all pref 1 handle 0x10/0xf0 fw classid 1:2"]);
    // `fw` has no handle 0.
    assert_eq!(filters("mark 0/1")[0], "ip pref 1 u32 match mark 0x0 0x1 flowid 1:2");
    assert_eq!(
        filters("mark 16 protocol udp")[1],
        "ipv6 pref 2 u32 match mark 0x10 0xffffffff match ip6 protocol 17 0xff flowid 1:2"
    );
}

#[test]
fn some_flows_are_spread_by_their_hash() {
    let hash = "handle 1 flow hash keys src,dst,proto,proto-src,proto-dst match";
    let spread = "divisor 2 baseclass 1:2";
    let found = filters("dscp EF mark 3/7 protocol tcp port 80-90 flow divisor 2");
    let test = |field: &str, protocol: u32, port: u32| {
        format!(
            "'cmp({field}) and meta(nf_mark mask 0x7 eq 0x3) and cmp(u8 at {protocol} layer 1 eq 6) \
             and cmp(u16 at {port} layer 2 gt 79) and cmp(u16 at {port} layer 2 lt 91)'"
        )
    };
    let (ipv4, ipv6) =
        ("u8 at 1 layer 1 mask 0xfc eq 0xb8", "u16 at 0 layer 1 mask 0xfc0 eq 0xb80");
    for (n, (kind, field, protocol, port)) in
        [("ip", ipv4, 9, 0), ("ipv6", ipv6, 6, 0), ("ip", ipv4, 9, 2), ("ipv6", ipv6, 6, 2)]
            .into_iter()
            .enumerate()
    {
        let test = test(field, protocol, port);
        assert_eq!(found[n], format!("{kind} pref {} {hash} {test} {spread}", n + 1));
    }
    assert_eq!(
        filters("src 1 sport 1024-65535 mark 1 flow divisor 2"),
        [format!(
            "ip pref 1 {hash} 'cmp(u32 at 12 layer 1 eq 0xa000002) and cmp(u16 at 0 layer 2 gt 1023) \
             and meta(nf_mark eq 0x1)' {spread}"
        )]
    );
}
