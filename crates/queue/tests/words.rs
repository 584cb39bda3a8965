//! Tests of the descriptions of queues: their values, and the text written for them.

use proptest::prelude::*;
use sojourn_queue::{Device, Params, red, tables};
use sojourn_units::words::Kind;

fn parse(text: &str) -> Params {
    Params::parse(text, &Device::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn error(text: &str) -> String {
    match Params::parse(text, &Device::default()) {
        Ok(params) => panic!("{text} was read as {params:?}"),
        Err(error) => error.to_string(),
    }
}

/// The defaults in the tables are those of a description with only the name.
#[test]
fn documented_defaults_are_true() {
    for table in tables() {
        let bare = match table.name {
            "red" => "red limit 60000",
            "choke" => "choke limit 200",
            "tbf" => "tbf rate 10mbit burst 16kb limit 60000",
            "ets" => "ets bands 3",
            name => name,
        };
        let mut text = bare.to_owned();
        for word in table.words {
            // Some defaults of RED and CHOKe depend on other values; they are tested below.
            let computed = bare != table.name && ["min", "max", "burst"].contains(&word.name);
            if word.default.is_empty() || computed {
                continue;
            }
            match word.kind {
                Kind::Switch { .. } | Kind::OneOf { .. } => text.extend([" ", word.default]),
                _ => text.extend([" ", word.name, " ", word.default]),
            }
        }
        assert_eq!(parse(&text), parse(bare), "{text}");
        assert!(!table.source.is_empty() && !table.summary.is_empty());
        assert!(table.words.iter().all(|w| w.doc.ends_with('.')), "{}", table.name);
    }
    assert_eq!(
        parse("red limit 60000"),
        parse(
            "red limit 60000 min 5000 max 15000 burst 8 probability 0.02 bandwidth 10mbit avpkt 1000"
        )
    );
    assert_eq!(
        parse("red limit 60000 min 4000"),
        parse("red limit 60000 min 4000 max 12000 burst 6")
    );
    assert_eq!(
        parse("red limit 60000 max 9000"),
        parse("red limit 60000 max 9000 min 3000 burst 5")
    );
    assert_eq!(
        parse("choke limit 200p"),
        parse(
            "choke limit 200 max 50 min 16 burst 27 probability 0.02 avpkt 1000 bandwidth 10mbit"
        )
    );
    assert_eq!(parse("choke limit 200 min 20"), parse("choke limit 200 min 20 max 50 burst 30"));
    assert_eq!(parse("sfb target 8"), parse("sfb target 8 max 10"));
    assert_eq!(parse("sfb max 11"), parse("sfb max 11 target 9"));
}

#[test]
fn defaults_come_from_the_device() {
    let big = Device { psched_mtu: 9014, hz: 250, rate: None };
    let parse = |text| Params::parse(text, &big).unwrap();
    assert_eq!(parse("fq_codel"), parse("fq_codel quantum 9014"));
    assert_ne!(parse("codel"), Params::parse("codel", &Device::default()).unwrap());
    assert_eq!(parse("bfifo"), parse("bfifo limit 9014000"));
    let Params::Cobalt(cobalt) = parse("cobalt") else { panic!() };
    assert_eq!(cobalt.buffer_limit(), 10_240 * 9014);
    assert_eq!(parse("fq"), parse("fq quantum 18028 initial_quantum 90140"));
    assert_eq!(parse("fq_pie"), parse("fq_pie quantum 9014"));
    assert_eq!(parse("fq_cobalt"), parse("fq_cobalt quantum 9014"));
    let Params::Pie(pie) = parse("pie") else { panic!() };
    assert_eq!((pie.hz, pie.mtu), (250, 9014));
    let Params::Sfb(sfb) = parse("sfb") else { panic!() };
    assert_eq!(sfb.hz, 250);
}

#[test]
fn cobalt_is_a_cake_with_one_queue() {
    for (text, kernel) in [
        ("cobalt", "cake unlimited besteffort flowblind rtt 100ms"),
        (
            "cobalt interval 20ms target 1ms memlimit 20480",
            "cake unlimited besteffort flowblind rtt 20ms memlimit 20480",
        ),
    ] {
        assert_eq!(parse(text).to_tc().as_deref(), Ok(kernel));
        let (Params::Cobalt(cobalt), Params::Cake(cake)) = (parse(text), parse(kernel)) else {
            panic!()
        };
        assert_eq!(
            vec![cobalt.control.constants()],
            cake.tins().iter().map(|tin| tin.constants).collect::<Vec<_>>()
        );
        assert_eq!(cobalt.buffer_limit(), cake.buffer_limit());
    }
    for text in ["target 6ms", "increment 0.1", "blue_threshold 1s", "noecn"] {
        assert!(parse(&format!("cobalt {text}")).to_tc().is_err(), "{text}");
    }
}

mod cake {
    use super::*;
    use sojourn_queue::cake;
    use sojourn_queue::cake::framing::{Cells, Framing};

    fn params(text: &str) -> cake::Params {
        match parse(text) {
            Params::Cake(params) => params,
            other => panic!("{text} was read as {other:?}"),
        }
    }

    #[test]
    fn printed_descriptions_of_tc_are_read() {
        let printed = "cake bandwidth 20Mbit diffserv3 triple-isolate nonat nowash no-ack-filter \
                       split-gso rtt 100ms raw overhead 0";
        assert_eq!(parse(printed), parse("cake bandwidth 20mbit"));
        let printed = "cake bandwidth unlimited";
        assert!(error(printed).contains("needs a rate"), "{}", error(printed));
    }

    #[test]
    fn lines_have_their_names() {
        let framing = |text: &str| params(&format!("cake {text}")).framing;
        let of = |overhead: i32, mpu, cells| Framing { overhead: Some(overhead), mpu, cells };
        assert_eq!(framing(""), Framing::default());
        assert_eq!(framing("raw"), Framing::default());
        for (text, expected) in [
            ("conservative", of(48, 0, Cells::Atm)),
            ("ethernet", of(38, 84, Cells::None)),
            ("ethernet ether-vlan", of(42, 84, Cells::None)),
            ("docsis", of(18, 64, Cells::None)),
            ("docsis mpu 60", of(18, 60, Cells::None)),
            ("pppoe-ptm", of(30, 0, Cells::Ptm)),
            ("bridged-ptm ptm", of(22, 0, Cells::Ptm)),
            ("pppoa-vcmux", of(10, 0, Cells::Atm)),
            ("pppoa-llc", of(14, 0, Cells::Atm)),
            ("pppoe-vcmux", of(32, 0, Cells::Atm)),
            ("pppoe-llcsnap", of(40, 0, Cells::Atm)),
            ("bridged-vcmux", of(24, 0, Cells::Atm)),
            ("bridged-llcsnap", of(32, 0, Cells::Atm)),
            ("ipoa-vcmux", of(8, 0, Cells::Atm)),
            ("ipoa-llcsnap", of(16, 0, Cells::Atm)),
            ("overhead -14 mpu 64 ptm", of(-14, 64, Cells::Ptm)),
            ("ether-vlan", of(4, 0, Cells::None)),
        ] {
            assert_eq!(framing(text), expected, "{text}");
        }
    }

    #[test]
    fn round_trip_times_have_names() {
        for (name, time) in [
            ("datacentre", "100us"),
            ("lan", "1ms"),
            ("metro", "10ms"),
            ("regional", "30ms"),
            ("internet", "100ms"),
            ("oceanic", "300ms"),
            ("satellite", "1s"),
            ("interplanetary", "1000s"),
        ] {
            assert_eq!(parse(&format!("cake {name}")), parse(&format!("cake rtt {time}")));
        }
    }

    #[test]
    fn contradictions_and_foreign_words_are_refused() {
        for (text, expected) in [
            ("bandwidth 5mbit unlimited", "`bandwidth` and `unlimited` exclude each other"),
            ("besteffort precedence", "`besteffort` and `precedence` exclude each other"),
            ("flows hosts", "`flows` and `hosts` exclude each other"),
            ("rtt 10ms lan", "`rtt` and `lan` exclude each other"),
            ("docsis overhead 18", "`docsis` sets the overhead; remove `overhead`"),
            ("raw overhead 5", "`raw` sets the overhead; remove `overhead`"),
            ("raw ether-vlan", "`raw` and `ether-vlan` exclude each other"),
            ("pppoe-ptm atm", "`pppoe-ptm` sets the cells of the line; remove the other word"),
            ("overhead 300", "`overhead` needs a whole number from -64 to 256; found `300`"),
            ("bandwidth 7bit", "`bandwidth` must be at least a byte a second"),
            ("rtt 0", "`rtt` must be above 0"),
            ("diffserv5", "unknown word `diffserv5` for `cake`: did you mean `diffserv3`?"),
        ] {
            assert_eq!(error(&format!("cake {text}")), expected);
        }
        assert!(error("codel nat").starts_with("unknown word"));
    }

    /// The memory is the data of four round-trip times at the rate, within limits; the product has
    /// 32 bits, as in the kernel.
    #[test]
    fn memory_is_by_the_rate() {
        let limit = |text: &str| params(&format!("cake {text}")).buffer_limit();
        assert_eq!(limit(""), 10_240 * 1514);
        assert_eq!(limit("bandwidth 5mbit"), 4 << 20);
        assert_eq!(limit("bandwidth 100mbit"), 5_000_000);
        assert_eq!(limit("bandwidth 100mbit rtt 1s"), 10_240 * 1514);
        assert_eq!(limit("bandwidth 100mbit memlimit 20mb"), 20 << 20);
        // The product is slightly above 2^32 bytes, and only its low 32 bits count.
        assert_eq!(limit("bandwidth 86gbit"), 5_032_704);
    }
}

#[test]
fn errors_help() {
    assert_eq!(error("codle"), "unknown queue `codle`: did you mean `codel`?");
    assert_eq!(error("codel limit 0"), "`limit` must be above 0");
    assert!(error("codel target five").contains("a time, such as 5ms"));
    assert!(error("codel limit 5000000000").contains("must fit into 32 bits"));
    assert!(error("red").contains("needs `limit`"));
    assert!(error("red limit 60000 min 9000 max 8999").contains("below `min`"));
    assert!(error("red limit 60000 nodrop").contains("without `ecn`"));
    assert!(error("red limit 60000 weight 0.1 burst 5").contains("exclude each other"));
    assert!(error("red limit 60000 gentle gentle-limit").contains("exclude each other"));
    assert!(error("red limit 60000 adaptive feng").contains("exclude each other"));
    assert!(error("red limit 9000 max 9000 min 10 gentle-limit").contains("needs `limit`"));
    assert!(error("red limit 60000 min 30000 max 50000 burst 5").contains("must be at least 31"));
    assert!(error("red limit 60000 min 500 max 5000").contains("at least one packet"));
    assert!(error("red limit 60kp unit packets").contains("a number of packets"));
    assert!(error("red limit 60q").contains("a size"));
    assert!(error("red limit 60000 probability 0").contains("at least 2^-32"));
    assert!(error("choke").contains("needs `limit`"));
    assert!(error("choke limit 131072").contains("at most 131071"));
    assert!(error("choke limit 100 max 101").contains("above `limit`"));
    assert!(error("choke limit 100 min 25").contains("below `max`"));
    assert!(error("choke limit 100 min 20 max 30 burst 5").contains("must be at least 21"));
    assert!(error("choke limit 8").contains("at least one packet"));
    assert!(error("choke limit 100 probability 0").contains("at least 2^-32"));
    assert!(error("choke limit 100 adaptive").contains("unknown word"));
    assert!(error("sfb rehash 600s").contains("whole number"));
    assert!(error("sfb increment 2").contains("too large"));
    assert!(error("sfb target 0").contains("above 0"));
    assert!(error("sfb ecn").contains("unknown word"));
    assert!(error("fq_codel ce_threshold_selector 3").contains("VALUE/MASK"));
    for name in ["fq_codel", "fq_pie", "fq_cobalt"] {
        assert!(error(&format!("{name} quantum 2mb")).contains("at most 1mb"));
        let changed = parse(name).change(&format!("{name} flows 8"), &Device::default());
        assert!(changed.unwrap_err().to_string().contains("cannot be changed"));
    }
    assert!(error("fq_pie memory_limit 0").contains("above 0"));
    assert!(error("fq_pie ecn_prob 100").contains("99"));
    assert!(error("blue freeze 0ms").contains("above 0"));
    assert_eq!(error("daqm preset c4"), "`preset` has no value `c4`: did you mean `c1`?");
    assert!(error("daqm interval 0ms").contains("or `measured`; found `0ms`"));
    assert!(error("daqm interval mesured").contains("or `measured`; found `mesured`"));
    assert!(error("daqm sampling 0").contains("above 0"));
    assert_eq!(error("daqm features s+q4"), "`features` has no value `q4`: did you mean `q`?");
    assert_eq!(
        error("daqm s4-threshold 3"),
        "unknown word `s4-threshold` for `daqm`: did you mean `s-threshold`?"
    );
    assert!(error("daqm as-published published flag").contains("exclude each other"));
    assert!(error("cobalt blue_threshold 0ms").contains("above 0"));
    assert!(error("pi2 alpha 0").contains("from 0.00390625 to"));
    assert!(error("dualpi2 step_thresh 5").contains("such as 1ms or 5p; found `5`"));
    assert!(error("dualpi2 step_thresh 0p").contains("above 0"));
    assert!(error("dualpi2 classic_protection 10").contains("too large"));
    assert!(error("dualpi2 coupling_factor 256").contains("from 1 to 255"));
    assert!(error("dualpi2 max_rtt 10ms typical_rtt 20ms").contains("not be above `max_rtt`"));
    assert!(error("dualpi2 max_rtt 1us").contains("`beta` would be too large"));
    assert!(error("dualpi2 typical_rtt 60s").contains("would be 0"));
    assert!(error("dualpi2 drop_enqueue drop_dequeue").contains("given twice"));
    assert!(parse("codel").change("pie limit 3", &Device::default()).is_err());
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let device = Device::default();
    for (before, change, after) in [
        ("pfifo limit 5", "pfifo", "pfifo limit 5"),
        ("cake bandwidth 5mbit ingress", "cake docsis", "cake bandwidth 5mbit ingress docsis"),
        ("cake bandwidth 5mbit atm overhead 40", "cake raw unlimited", "cake"),
        ("cake ether-vlan lan", "cake ether-vlan rtt 30ms", "cake ether-vlan regional"),
        (
            "codel limit 5 target 1ms ecn",
            "codel interval 50ms",
            "codel limit 5 target 1ms interval 50ms ecn",
        ),
        ("codel ecn", "codel noecn ce_threshold 1ms", "codel ce_threshold 1ms"),
        ("fq_codel flows 8 limit 5", "fq_codel noecn", "fq_codel flows 8 limit 5 noecn"),
        ("pie limit 5 bytemode", "pie alpha 3 ecn", "pie limit 5 bytemode alpha 3 ecn"),
        (
            "fq_pie limit 5 flows 8 ecn_prob 20",
            "fq_pie alpha 3 ecn",
            "fq_pie limit 5 flows 8 ecn_prob 20 alpha 3 ecn",
        ),
        (
            "fq_cobalt flows 8 target 1ms",
            "fq_cobalt noecn quantum 300",
            "fq_cobalt flows 8 target 1ms quantum 300 noecn",
        ),
        ("blue limit 5 ecn", "blue freeze 10ms", "blue limit 5 ecn freeze 10ms"),
        (
            "daqm preset c3 limit 9 as-published",
            "daqm rate 0.3 q2-rate 0.4 features s+q2",
            "daqm preset c3 limit 9 as-published rate 0.3 q2-rate 0.4 features q2+s",
        ),
        (
            "daqm preset c3 q-threshold 9 interval 1ms published flag",
            "daqm preset f5 published none",
            "daqm preset f5 interval 1ms",
        ),
        ("pi2 limit 5 ecn", "pi2 beta 4", "pi2 limit 5 ecn beta 4"),
        ("dualpi2 any_ect", "dualpi2 overflow", "dualpi2 any_ect overflow"),
        ("dualpi2 memlimit 1mb", "dualpi2 target 5ms", "dualpi2 memlimit 1mb target 5ms"),
        // A given limit also sets the limit of memory.
        ("dualpi2 memlimit 1mb", "dualpi2 limit 50", "dualpi2 limit 50 memlimit 151400"),
        // `tc` states the numbers of RED anew; flags that were set remain set.
        ("red limit 60000 min 6000 max 9000 ecn", "red limit 90000", "red limit 90000 ecn"),
        ("red limit 60000 ecn", "red limit 60000 nodrop", "red limit 60000 ecn nodrop"),
        (
            "red limit 60000 min 6000 max 9000 burst 9 ecn",
            "red max 12000 harddrop",
            "red limit 60000 min 6000 max 12000 burst 9 ecn harddrop",
        ),
        // `tc` states all values of CHOKe anew if `limit` is given, and those of SFB always.
        ("choke limit 200 min 20 ecn harddrop", "choke limit 100", "choke limit 100"),
        (
            "choke limit 200 min 9 burst 30",
            "choke max 60 ecn",
            "choke limit 200 min 9 max 60 burst 30 ecn",
        ),
        ("sfb limit 50 target 8 rehash 0", "sfb limit 60", "sfb limit 60"),
    ] {
        assert_eq!(parse(before).change(change, &device), Ok(parse(after)), "{before} / {change}");
    }
}

#[test]
fn settings_that_the_kernel_lacks_are_named() {
    for (text, reason) in [
        ("red limit 60000 gentle", "gentle"),
        ("red limit 60000 gentle-limit", "gentle"),
        ("red limit 60000 feng", "`feng`"),
        ("red limit 100 unit packets", "only bytes"),
        ("red limit 60000 weight 0.002", "power of two"),
        ("blue", "sfb"),
        ("choke limit 200 harddrop", "`tc` has no word"),
        ("pi2", "dualpi2"),
        ("cobalt target 1ms", "1/20"),
        ("cobalt increment 0.08", "1/256"),
        ("cobalt blue_threshold 400ms", "has no threshold of delay"),
        ("cobalt noecn", "always marks"),
        ("fq_cobalt", "only `cake`"),
        ("daqm", "derivatives"),
    ] {
        let error = parse(text).to_tc().unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn assumptions_are_warnings() {
    let device = Device::default();
    assert_eq!(
        Params::warnings("red limit 60000", &device),
        ["`bandwidth` is not given: 10mbit is assumed"]
    );
    let text = "red limit 6mb min 1200000 max 2000000 burst 2000 bandwidth 1gbit";
    assert_eq!(Params::warnings(text, &device), ["`burst` 2000 may be too large"]);
    assert!(Params::warnings("codel", &device).is_empty());
    assert!(Params::warnings("daqm as-published wall-period 1ms s1-rate 0.3", &device).is_empty());
    let text = "daqm preset f1 s1-threshold 3 wall-period 1ms interval 1ms";
    assert_eq!(
        Params::warnings(text, &device),
        [
            "`wall-period` has no effect: it is used only with `published wall-clock`",
            "`s1-threshold` has no effect: s1 is off"
        ]
    );
    assert_eq!(
        Params::warnings("daqm published shared+interval interval 1ms q-rate 0.1", &device),
        [
            "`interval` has no effect: with the quirk `interval` it is always 2 ms",
            "`q-rate` has no effect: with the quirk `shared` all features use s1's"
        ]
    );
    let text = "choke limit 9000 min 2000 max 2100 burst 5000";
    assert_eq!(
        Params::warnings(text, &device),
        ["`bandwidth` is not given: 10mbit is assumed", "`burst` 5000 may be too large"]
    );
    assert!(Params::warnings("sfb", &device).is_empty());
    let [max, db] = &Params::warnings("sfb max 10 target 20 rehash 100 db 100", &device)[..] else {
        panic!("two warnings are expected")
    };
    assert!(max.contains("`max` 10 is below `target` 20"), "{max}");
    assert!(db.contains("`db` 100 is not below `rehash` 100"), "{db}");
    assert!(Params::warnings("sfb rehash 0", &device).is_empty());
    assert_eq!(
        Params::warnings("dualpi2 max_rtt 50ms beta 3", &device),
        ["`beta` has no effect: it is computed from `max_rtt` and `typical_rtt`"]
    );
    assert!(Params::warnings("dualpi2 beta 3", &device).is_empty());
    let link = Device { rate: sojourn_units::Rate::new(1_000_000_000), ..device };
    let ours = "red limit 100 unit packets weight 0.1";
    assert_eq!(Params::warnings(ours, &link), ["`bandwidth` is not given: 1gbit is assumed"]);
    assert_eq!(Params::parse("red limit 60000", &link), Ok(parse("red limit 60000")));
}

#[test]
fn parameters_survive_json() {
    for text in [
        "bfifo",
        "red limit 60000 ecn adaptive",
        "red limit 100 unit packets weight 0.002 gentle-limit feng",
        "choke limit 100 ecn",
        "blue",
        "sfb",
        "codel ce_threshold 1ms",
        "fq_codel",
        "pie",
        "fq_pie ecn_prob 5",
        "cobalt blue_threshold 400ms noecn",
        "fq_cobalt target 4ms",
        "daqm preset f3 interval measured published literal+whole-ms",
        "daqm as-published s2-threshold 0.125",
        "pi2 ecn",
        "dualpi2 step_thresh 5p",
        "prio bands 4; qdisc parent 1:4 handle 2: drr; class 2:1 quantum 700b fq_codel; filter dscp 46 to 1:1",
        "ets strict 1 quanta 500 600 priomap 2 1; class 1:3 quantum 900b; filter flow divisor 2 to 1:1",
        "htb default 2; class 1:1 parent 1: rate 5mbit; class 1:2 parent 1:1 rate 1mbit ceil 5mbit",
        "hfsc default 2; class 1:1 ls rate 5mbit ul rate 5mbit; class 1:2 parent 1:1 rt m1 2mbit d 9ms m2 1mbit",
    ] {
        let params = parse(text);
        let json = serde_json::to_string(&params).unwrap();
        assert!(json.starts_with(r#"{"name":""#), "{json}");
        assert_eq!(serde_json::from_str::<Params>(&json).unwrap(), params, "{json}");
    }
}

/// The rules of RFC 9332, appendix A.1, with the arithmetic of `tc`.
#[test]
fn dualpi2_is_fitted_to_round_trip_times() {
    for (text, target, tupdate, alpha, beta) in [
        // The gains are 0.15 Hz and 3 Hz.
        ("max_rtt 100ms typical_rtt 15ms", "15ms", "15ms", 38, 768),
        ("typical_rtt 1ms", "1ms", "1ms", 711, 12_800),
        ("max_rtt 60ms", "10ms", "10ms", 71, 1280),
        // A third of `max_rtt` is less than `typical_rtt`.
        ("max_rtt 90ms typical_rtt 60ms", "60ms", "30ms", 94, 853),
    ] {
        let hz = |gain: u32| f64::from(gain) / 256.0;
        let written = format!(
            "dualpi2 target {target} tupdate {tupdate} alpha {} beta {}",
            hz(alpha),
            hz(beta)
        );
        assert_eq!(parse(&format!("dualpi2 {text}")), parse(&written), "{text}");
    }
}

/// A weight that is a power of two is converted to a burst that gives this weight, as the kernel
/// needs.
#[test]
fn a_weight_of_a_power_of_two_is_a_burst() {
    for log in 2..10u32 {
        let weight = 1.0 / f64::from(1 << log);
        let text = format!("red limit 60000 min 5000 max 15000 weight {weight}");
        let Params::Red(params) = parse(&text) else { panic!() };
        assert!(matches!(params.averaging, red::Averaging::Burst(_)), "{text}");
        assert_eq!(u32::from(params.options().unwrap().wlog), log, "{text}");
        assert!(parse(&text).to_tc().is_ok());
    }
}

/// Limits of iproute2's arithmetic for RED. Single results of iproute2, recorded in the headers of
/// the vectors, are tested with the vectors.
#[test]
fn red_options_follow_iproute2() {
    let options = |text| {
        let Params::Red(params) = parse(text) else { panic!() };
        params.options().unwrap()
    };
    let o = options("red limit 60000 min 5000 max 25000 avpkt 500 burst 24 bandwidth 1mbit");
    assert_eq!((o.wlog, o.plog, o.scell_log, o.max_p), (5, 20, 17, 85_899_345));
    // Probability 1 overflows to 0, and then the kernel computes the probability from Plog.
    let o = options("red limit 60000 min 5000 max 25000 probability 1");
    assert_eq!((o.max_p, o.plog), (0, 15));
    assert_eq!(o.max_p_in_force(), (u32::MAX >> 15) * 20_000);
}

/// Limits of iproute2's arithmetic for `choke`; recorded results are tested with the vectors. Plog is
/// computed for a ramp in bytes although the thresholds are packets, so that probability 1, which
/// overflows, becomes very small.
#[test]
fn choke_options_follow_iproute2() {
    let Params::Choke(params) = parse("choke limit 200 min 10 max 30 probability 1") else {
        panic!()
    };
    let o = params.options().unwrap();
    assert_eq!((o.wlog, o.plog, o.max_p), (3, 15, 0));
    assert_eq!(o.max_p_in_force(), (u32::MAX >> 15) * 20);
}

fn time() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..5000).prop_map(|n| format!("{n}us")),
        (1u32..500).prop_map(|n| format!("{n}ms"))
    ]
}

fn option(
    word: &'static str,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), value.prop_map(move |value| format!(" {word} {value}"))]
}

fn switch(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words)
        .prop_map(|word| if word.is_empty() { String::new() } else { format!(" {word}") })
}

fn count(max: u32) -> impl Strategy<Value = String> {
    (1..=max).prop_map(|n| n.to_string())
}

fn dualpi2() -> impl Strategy<Value = String> {
    let gain = || (1u32..1 << 24).prop_map(|n| (f64::from(n) / 256.0).to_string());
    let words = (
        (option("limit", count(u32::MAX)), option("memlimit", count(u32::MAX))),
        option("coupling_factor", count(255)),
        option("step_thresh", prop_oneof![time(), count(u32::MAX).prop_map(|n| n + "pkts")]),
        option("min_qlen_step", count(u32::MAX)),
        switch(&["", "overflow", "drop_on_overload drop_enqueue", "drop_dequeue any_ect"]),
        option("classic_protection", (0u32..=100).prop_map(|n| format!("{n}%"))),
        prop_oneof![
            Just((" max_rtt 40ms".to_owned(), " typical_rtt 9ms".to_owned())),
            (option("alpha", gain()), option("beta", gain())),
            (option("target", time()), option("tupdate", time())),
        ],
        switch(&["", "split_gso", "l4s_ect no_split_gso"]),
    );
    words.prop_map(|((a, b), c, d, e, f, g, (h, i), j)| {
        // `l4s_ect` and `any_ect` set the same parameter, so that only one may be given.
        let j = if f.contains("any_ect") { String::new() } else { j };
        format!("dualpi2{a}{b}{c}{d}{e}{f}{g}{h}{i}{j}")
    })
}

#[test]
fn every_text_of_daqm_reads_as_its_parameters() {
    for words in [
        "",
        "preset c2 limit 1000p",
        "preset f5 interval measured as-published",
        "features none s-threshold 3ms q1-threshold 0.125 rate 1",
        "published shared+flag features s+q3 q3-duration 7us q2-rate 0.3",
    ] {
        let params = parse(&format!("daqm {words}"));
        assert_eq!(parse(&params.to_text()), params, "{}", params.to_text());
    }
}

fn descriptions() -> impl Strategy<Value = String> {
    let join = |parts: Vec<String>| parts.concat();
    let codel = (
        option("limit", count(u32::MAX)),
        option("target", time()),
        option("interval", time()),
        option("ce_threshold", time()),
        switch(&["", "ecn", "noecn"]),
    );
    let fq_codel = (
        option("flows", count(65_536)),
        option("quantum", count(1 << 20)),
        option("memory_limit", count(u32::MAX)),
        option("drop_batch", count(u32::MAX)),
        option(
            "ce_threshold_selector",
            (0u8..=255, 0u8..=255).prop_map(|(a, b)| format!("{a:#x}/{b}")),
        ),
        shared_words(),
    );
    let pie = (
        option("limit", count(u32::MAX)),
        option("target", time()),
        option("tupdate", time()),
        option("alpha", count(32)),
        option("beta", count(32)),
        switch(&["", "ecn", "noecn"]),
        switch(&["", "bytemode", "nobytemode"]),
        switch(&["", "dq_rate_estimator", "no_dq_rate_estimator"]),
    )
        .prop_map(move |(a, b, c, d, e, f, g, h)| join(vec![a, b, c, d, e, f, g, h]))
        .boxed();
    let fq_pie = (
        option("flows", count(65_536)),
        option("quantum", count(1 << 20)),
        option("memory_limit", count(u32::MAX)),
        option("ecn_prob", count(99)),
    );
    let red = (
        (20_000u32..400_000, 1000u32..9000, 1u32..9000)
            .prop_map(|(limit, min, more)| format!(" limit {limit} min {min} max {}", min + more)),
        option("probability", (1u32..1_000_000).prop_map(|n| format!("0.{n:06}"))),
        option("burst", (20u32..300).prop_map(|n| n.to_string())),
        option("bandwidth", (10u32..100_000).prop_map(|n| format!("{n}kbit"))),
        option("avpkt", (500u32..1500).prop_map(|n| n.to_string())),
        switch(&["", "ecn", "ecn nodrop", "ecn harddrop", "harddrop", "adaptive", "ecn adaptive"]),
    );
    let choke = (
        (40u32..130_000, 8u32..30, 1u32..10)
            .prop_map(|(limit, min, more)| format!(" limit {limit} min {min} max {}", min + more)),
        option("probability", (1u32..1_000_000).prop_map(|n| format!("0.{n:06}"))),
        option("burst", (40u32..300).prop_map(|n| n.to_string())),
        option("bandwidth", (10u32..100_000).prop_map(|n| format!("{n}kbit"))),
        option("avpkt", (500u32..1500).prop_map(|n| n.to_string())),
        switch(&["", "ecn"]),
    );
    let fraction = || (0u32..=100_000).prop_map(|n| format!("{}", f64::from(n) / 1e5));
    let sfb = (
        option("rehash", count(2_147_483_647)),
        option("db", count(2_147_483_647)),
        option("limit", count(u32::MAX)),
        option("max", count(u32::MAX)),
        option("target", count(u32::MAX)),
        option("increment", fraction()),
        option("decrement", fraction()),
        option("penalty_rate", count(u32::MAX)),
        option("penalty_burst", count(u32::MAX)),
    );
    let cake = (
        option("bandwidth", (8u64..1_000_000_000_000_000_000).prop_map(|n| format!("{n}bit"))),
        switch(&["", "besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"]),
        switch(&["", "flowblind", "srchost", "dual-dsthost", "triple-isolate"]),
        (option("rtt", time()), option("memlimit", count(u32::MAX))),
        switch(&["", "atm", "ptm", "noatm", "atm overhead -9", "conservative", "docsis", "raw"]),
        option("mpu", (0u32..257).prop_map(|n| n.to_string())),
        switch(&["", "ingress", "egress wash", "ack-filter", "ack-filter-aggressive nowash"]),
    );
    prop_oneof![
        option("limit", count(u32::MAX)).prop_map(|l| format!("pfifo{l}")),
        option("limit", count(u32::MAX)).prop_map(|l| format!("bfifo{l}")),
        codel.prop_map(move |(a, b, c, d, e)| format!("codel{}", join(vec![a, b, c, d, e]))),
        fq_codel.prop_map(move |(a, b, c, d, e, f)| format!(
            "fq_codel{}",
            join(vec![a, b, c, d, e, f])
        )),
        pie.clone().prop_map(|words| format!("pie{words}")),
        (pie, fq_pie).prop_map(move |(words, (a, b, c, d))| {
            format!("fq_pie{words}{}", join(vec![a, b, c, d]))
        }),
        red.prop_map(move |(a, b, c, d, e, f)| format!("red{}", join(vec![a, b, c, d, e, f]))),
        choke.prop_map(move |(a, b, c, d, e, f)| format!("choke{}", join(vec![a, b, c, d, e, f]))),
        sfb.prop_map(move |(a, b, c, d, e, f, g, h, i)| {
            format!("sfb{}", join(vec![a, b, c, d, e, f, g, h, i]))
        }),
        cake.prop_map(move |(a, b, c, (d, e), f, g, h)| {
            format!("cake{}", join(vec![a, b, c, d, e, f, g, h]))
        }),
        dualpi2(),
    ]
}

fn shared_words() -> impl Strategy<Value = String> {
    (option("limit", count(u32::MAX)), option("target", time()), switch(&["", "ecn", "noecn"]))
        .prop_map(|(a, b, c)| a + &b + &c)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_description_reads_the_same(text in descriptions()) {
        let device = Device::default();
        // Descriptions of RED and CHOKe for which no averaging weight fits are rejected.
        if let Ok(params) = Params::parse(&text, &device) {
            let written = params.to_tc().unwrap();
            prop_assert_eq!(Params::parse(&written, &device), Ok(params), "{} -> {}", text, written);
        } else {
            prop_assert!(text.starts_with("red") || text.starts_with("choke"), "{} refused", text);
        }
    }

    #[test]
    fn no_text_panics(name in prop::sample::select(tables().iter().map(|t| t.name).collect::<Vec<_>>()), rest in "[a-z_0-9 .%/-]{0,60}") {
        let _ = Params::parse(&format!("{name} {rest}"), &Device::default());
    }

    #[test]
    fn no_words_panic(
        name in prop::sample::select(tables().iter().map(|t| t.name).collect::<Vec<_>>()),
        words in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec!["0", "1", "4294967295", "1ms", "0.5", "1gbit", "10", "packets", "5000000s", "3/3", "1bit"])), 0..8)
    ) {
        let table = tables().iter().find(|t| t.name == name).unwrap();
        let mut text = name.to_owned();
        for (index, value) in words {
            let word = index.get(table.words);
            let spellings: Vec<_> = word.spellings().collect();
            text.extend([" ", *index.get(&spellings)]);
            if word.takes_value() {
                text.extend([" ", value]);
            }
        }
        let device = Device::default();
        if let Ok(params) = Params::parse(&text, &device) {
            let _ = params.to_tc();
            if !text.contains("flows") {
                let _ = params.change(&text, &device);
            }
        }
    }
}

mod fq {
    use super::*;

    #[test]
    fn numbers_are_the_kernel_s() {
        let Params::Fq(fq) = parse(
            "fq maxrate 20mbit ce_threshold 2ms refill_delay 1500us horizon 1s horizon_cap buckets 1000 \
             offload_horizon 7us low_rate_threshold 1bit",
        ) else {
            panic!()
        };
        let constants = fq.constants();
        assert_eq!((constants.maxrate, constants.low_rate_threshold), (2_500_000, 0));
        assert_eq!((constants.ce_threshold, constants.horizon), (2_000_000, 1_000_000_000));
        assert_eq!(
            (constants.refill_delay, constants.offload_horizon, fq.buckets_log()),
            (2, 7000, 10)
        );
        let Params::Fq(fq) = parse("fq") else { panic!() };
        let constants = fq.constants();
        assert_eq!((constants.maxrate, constants.low_rate_threshold), (u64::MAX, 68_750));
        assert_eq!(constants.ce_threshold, 4_294_967_295_000);
    }

    #[test]
    fn refuses_what_the_kernel_refuses() {
        for (text, why) in [
            ("fq quantum 0", "above 0"),
            ("fq quantum 2mb", "at most 1mb"),
            ("fq initial_quantum 2gb", "below 2gb"),
            ("fq maxrate 7bit", "a byte a second"),
            ("fq maxrate 40gbit", "below 34.3gbit"),
            ("fq low_rate_threshold 40gbit", "below 34.3gbit"),
            ("fq weights 16384 16383 16384", "at least 16384 each"),
            ("fq weights 20000 20000", "three numbers"),
            ("fq priomap 0 1 2", "16 bands"),
            ("fq priomap 0 1 2 3", "from 0 to 2"),
            ("fq bands 4", "3"),
        ] {
            assert!(error(text).contains(why), "{text}: {}", error(text));
        }
    }

    #[test]
    fn is_handed_to_tc() {
        let tc = |text: &str| parse(text).to_tc();
        let plain = tc("fq").expect("the kernel has it");
        // Older versions of `tc` do not know the words that are new in 7.3, so these are written
        // only if their values are not the defaults.
        assert!(
            ["priomap", "weights", "offload"].iter().all(|word| !plain.contains(word)),
            "{plain}"
        );
        let all =
            tc("fq weights 20000 20000 30000 priomap 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 horizon_cap");
        let all = all.expect("the kernel has it");
        assert!(all.contains("weights 20000 20000 30000") && all.contains("horizon_cap"), "{all}");
        assert_eq!(parse(&all).to_tc().as_ref(), Ok(&all));
        assert!(tc("fq offload_horizon 5ms").is_err());
        let warnings = |text| Params::warnings(text, &Device::default());
        assert!(warnings("fq buckets 64")[0].contains("no effect"));
        assert!(warnings("fq limit 64").is_empty());
    }
}

mod typed {
    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        Params::warnings(text, &Device::default())
    }

    #[test]
    fn words_without_effect_are_read_with_a_warning() {
        for (words, why) in [
            ("nat", "never translated"),
            ("fwmark 0xff", "no firewall marks"),
            ("autorate-ingress", "keeps its `bandwidth`"),
            ("via-ethernet", "as in `tc`"),
        ] {
            let text = format!("cake bandwidth 20mbit {words}");
            assert_eq!(parse(&text), parse("cake bandwidth 20mbit"), "{text}");
            assert_eq!(warnings(&text).len(), 1, "{text}");
            assert!(warnings(&text)[0].contains(why), "{text}");
        }
        assert!(warnings("cake bandwidth 20mbit nonat split-gso").is_empty());
    }

    #[test]
    fn numbers_without_a_unit_are_as_tc_reads_them() {
        for (bare, meant, read) in [
            ("codel target 2000", "codel target 2ms", "2ms"),
            ("fq_codel interval 5000", "fq_codel interval 5ms", "5ms"),
            ("fq_codel ce_threshold 1024000", "fq_codel ce_threshold 1024ms", "1.024s"),
            ("fq priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 horizon 5000", "fq horizon 5ms", "5ms"),
            ("cake rtt 200", "cake rtt 200us", "200us"),
            ("cake bandwidth 1000", "cake bandwidth 1kbit", "1kbit"),
            ("choke limit 1000 bandwidth 10000", "choke limit 1000 bandwidth 10kbit", "10kbit"),
            (
                "tbf rate 1000000 burst 16kb latency 50000",
                "tbf rate 1mbit burst 16kb latency 50ms",
                "1mbit",
            ),
        ] {
            assert_eq!(parse(bare), parse(meant));
            let shown = warnings(bare);
            assert!(shown.iter().any(|w| w.contains(&format!("is read as {read}:"))), "{shown:?}");
        }
        assert_eq!(parse("codel limit 7"), parse("codel limit 7p"));
        assert!(warnings("codel limit 7 target 5ms").is_empty());
        // A misspelled word is not converted.
        let error = error("cake rtt 200 bandwith 5mbit");
        assert_eq!(error, "unknown word `bandwith` for `cake`: did you mean `bandwidth`?");
    }

    #[test]
    fn other_disciplines_are_not_modelled() {
        for name in ["mqprio", "noqueue", "gred", "netem", "qfq", "cbs", "etf", "taprio"] {
            for text in [name.to_owned(), format!("{name} limit 100")] {
                let error = Params::parse(&text, &Device::default()).unwrap_err();
                let message = error.to_string();
                assert!(message.starts_with(&format!("`{name}` is not modelled")), "{message}");
                assert!(!message.contains("did you mean"), "{message}");
                assert_eq!(&text[error.at], name);
            }
        }
        // No name is both a modelled discipline and one that is not modelled.
        assert!(tables().iter().all(|table| sojourn_queue::not_modelled(table.name).is_none()));
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}", words in "((tc|qdisc|add|dev|8001:|root|red|sfb|tbf|lat|burst|rehash|ewma|5|5kb/8|rate|child|nat|prio|htb|class|qdisc|filter|parent|1:|1:1|;|to|handle|2:|drr|bands|priomap|1|0) ){0,9}") {
            for text in [text, words] {
                let read = Params::parse(&text, &Device::default());
                prop_assert!(read.is_ok() || Params::warnings(&text, &Device::default()).is_empty());
                if let Err(error) = read {
                    prop_assert!(text.get(error.at).is_some());
                }
            }
        }
    }
}
