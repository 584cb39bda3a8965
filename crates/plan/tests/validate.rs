//! Errors of invalid plans, with their paths and messages.

use sojourn_plan::{
    Bottleneck, Change, Group, Link, Medium, Node, Observe, Offload, Plan, Transport, Wire,
};
use sojourn_queue::Device;
use sojourn_traffic::App;
use sojourn_units::{Rate, SECOND};

fn plan() -> Plan {
    let node = |name: &str| Node { name: name.into() };
    let link = |name: &str, from, to| Link {
        name: name.into(),
        from,
        to: Some(to),
        medium: None,
        ring: 0,
        host: None,
        host_queue: false,
        offload: None,
        changes: Vec::new(),
        params: sojourn_link::Params {
            rate: Rate::new(10_000_000),
            trace: None,
            overhead: 0,
            cells: sojourn_link::Cells::None,
            delay: 1_000_000,
            impairments: sojourn_link::Impairments::default(),
            queue: sojourn_queue::Params::parse("codel", &Device::default()).unwrap(),
        },
    };
    let group = |name: &str, transport, app| Group {
        count: 2,
        start_spread: SECOND,
        ..Group::new(name, vec![(0, 2)], transport, App::parse(app).unwrap())
    };
    Plan {
        sources: std::collections::BTreeMap::default(),
        duration: 60 * SECOND,
        warmup: 10 * SECOND,
        nodes: vec![node("home"), node("router"), node("server")],
        media: Vec::new(),
        links: vec![
            link("up", 0, 1),
            link("up.reverse", 1, 0),
            link("core", 1, 2),
            link("core.reverse", 2, 1),
        ],
        balancers: Vec::new(),
        groups: vec![
            group("ftp", Transport::Tcp(sojourn_tcp::Params::default()), "bulk"),
            group("call", Transport::Udp, "voip"),
        ],
        apps: Vec::new(),
        observe: Observe {
            bottleneck: Bottleneck { name: "up".into(), links: vec![0] },
            series_interval: SECOND / 10,
            per_flow_histograms: false,
            monitor: false,
            capture: vec![0],
            qlog: Vec::new(),
            snaplen: 128,
            trace_hash: true,
        },
    }
}

fn host(text: &str) -> sojourn_link::host::Params {
    sojourn_link::host::Params::parse(text).unwrap()
}

#[test]
fn a_plan_survives_json() {
    let mut plan = plan();
    plan.links[0].host =
        Some(host("grain 4ms late exp(20us) stall const(1ms) every pareto2(5ms,1.5)"));
    let text = serde_json::to_string(&plan).unwrap();
    let back: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(back, plan);
    assert_eq!(back.validate(), Ok(()));
}

#[test]
fn packet_sources_go_over_either_transport() {
    let mut plan = plan();
    plan.groups[1].transport = plan.groups[0].transport.clone();
    assert_eq!(plan.validate(), Ok(()));
}

#[test]
fn only_the_first_start_must_lie_within_the_run() {
    let mut plan = plan();
    plan.groups[0].start_every = 100 * SECOND;
    assert_eq!(plan.validate(), Ok(()));
}

#[test]
fn unknown_fields_are_refused() {
    let mut json = serde_json::to_value(plan()).unwrap();
    json["durration"] = 1.into();
    assert!(serde_json::from_value::<Plan>(json).is_err());
}

#[test]
fn mistakes_of_hosts_are_named_with_their_places() {
    each_is_refused(&[
        (
            |p| p.links[1].host = Some(host("late measured(a)")),
            "links[1].host.late",
            "has not been read",
        ),
        (
            |p| p.links[1].host = Some(host("stall 3ms every 2ms")),
            "links[1].host.stall",
            "shorter than `every`",
        ),
        (
            |p| {
                p.media = vec![medium("air")];
                p.links[1].medium = Some(0);
                p.links[1].host = Some(host("grain 1ms"));
            },
            "links[1].host",
            "cannot be late",
        ),
    ]);
}

#[test]
fn a_host_s_own_queue_lies_at_a_host() {
    for text in ["codel", "fq", "fq nopacing", "tbf rate 1mbit burst 10k limit 10k"] {
        let mut allowed = plan();
        allowed.links[0].host_queue = true;
        allowed.links[0].params.queue =
            sojourn_queue::Params::parse(text, &Device::default()).unwrap();
        assert_eq!(allowed.validate(), Ok(()), "{text}");
    }
    each_is_refused(&[
        (|p| p.links[2].host_queue = true, "links[2].host_queue", "`router` is not a host"),
        (
            |p| p.links[0].offload = Some(Offload::Linux),
            "links[0].offload",
            "`offload` needs `host_queue`",
        ),
        (
            |p| {
                p.links[0].host_queue = true;
                p.links[0].offload = Some(Offload::Linux);
                p.links[0].ring = 1;
            },
            "links[0].offload",
            "no `ring`",
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_mistake_is_named_with_its_place() {
    each_is_refused(&[
        (
            |p| {
                p.groups[0].start_every = SECOND;
                p.groups[0].app = App::parse("web intersession exp(1s)").unwrap();
            },
            "groups[0].start",
            "the start must not have an interval",
        ),
        (|p| p.duration = 0, "duration", "above zero"),
        (|p| p.duration = u64::MAX, "duration", "at most 72 hours"),
        (|p| p.warmup = p.duration, "warmup", "shorter than the duration"),
        (
            |p| p.nodes[1].name = "home".into(),
            "nodes[1].name",
            "the name `home` is already the name of a node",
        ),
        (|p| p.nodes[1].name.clear(), "nodes[1].name", "is empty"),
        (|p| p.links[1].to = Some(9), "links[1].to", "there is no node 9; there are only 3"),
        (
            |p| {
                let name = "ring".into();
                p.links.push(Link { name, to: Some(1), ..p.links[1].clone() });
            },
            "links[4]",
            "must not join `router` to itself",
        ),
        (|p| p.links[1].to = None, "links[1].to", "only a link on a shared medium"),
        (
            |p| p.links[1].medium = Some(0),
            "links[1].medium",
            "there is no medium 0; there are only 0",
        ),
        (|p| p.links[1].ring = u32::MAX, "links[1].ring", "at most 1000000 packets"),
        (|p| p.media = vec![medium("up")], "links[0].name", "the name `up` is already the name of"),
        (
            |p| p.media = vec![medium("a"), medium("a")],
            "media[1].name",
            "the name `a` is already the name of",
        ),
        (
            |p| p.media = vec![medium("ftp")],
            "groups[0].name",
            "the name `ftp` is already the name of",
        ),
        (
            |p| {
                p.media = vec![medium("bus")];
                p.media[0].access.slot = 0;
            },
            "media[0].access",
            "`slot` must be above 0",
        ),
        (
            |p| p.links[1].name = "up".into(),
            "links[1].name",
            "the name `up` is already the name of",
        ),
        (|p| p.links[0].params.delay = u64::MAX, "links[0].params.delay", "one hour"),
        (
            |p| p.links[0].params.impairments.duplicate.probability = f64::NAN,
            "links[0].params.duplicate",
            "must be from 0 to 1",
        ),
        (|p| p.groups[0].count = 0, "groups[0].count", "above zero"),
        (|p| p.groups[0].count = 1_000_000, "groups", "1000002 flows: at most 1000000"),
        (|p| p.groups[0].pairs.clear(), "groups[0].pairs", "a pair of nodes"),
        (|p| p.groups[1].pairs[0] = (0, 7), "groups[1].pairs[0]", "there is no node 7"),
        (|p| p.groups[1].pairs[0] = (1, 1), "groups[1].pairs[0]", "from `router` to itself"),
        (
            |p| p.groups[1].name = "ftp".into(),
            "groups[1].name",
            "the name `ftp` is already the name of",
        ),
        (
            |p| p.groups[1].name = "up".into(),
            "groups[1].name",
            "the name `up` is already the name of",
        ),
        (|p| p.groups[0].start = p.duration, "groups[0].start", "before the end"),
        (|p| p.groups[0].stop = Some(0), "groups[0].stop", "after the start"),
        (|p| p.groups[0].dscp = 64, "groups[0].dscp", "at most 63"),
        (|p| p.groups[0].transport = Transport::Udp, "groups[0].transport", "`bulk` needs TCP"),
        (|p| drop(p.links.pop()), "groups[0].pairs[0]", "no links lead from `server` to `home`"),
        (
            |p| p.observe.bottleneck.links = vec![4],
            "observe.bottleneck.links[0]",
            "there is no link 4; there are only 4",
        ),
        (|p| p.observe.bottleneck.links.clear(), "observe.bottleneck", "must contain a link"),
        (
            |p| p.observe.bottleneck = Bottleneck { name: "both".into(), links: vec![0, 1, 0] },
            "observe.bottleneck.links[2]",
            "`up` must not be listed twice",
        ),
        (
            |p| p.observe.bottleneck.name = "it".into(),
            "observe.bottleneck",
            "have the link's name, `up`",
        ),
        (
            |p| p.observe.bottleneck.links = vec![0, 1],
            "observe.bottleneck",
            "the name `up` is already the name of",
        ),
        (
            |p| p.observe.bottleneck = Bottleneck { name: "ftp".into(), links: vec![0, 1] },
            "groups[0].name",
            "the name `ftp` is already the name of the bottleneck",
        ),
        (|p| p.observe.capture = vec![0, 9], "observe.capture[1]", "there is no link 9"),
        (|p| p.observe.capture = vec![0, 0], "observe.capture[1]", "listed twice"),
        (|p| p.observe.snaplen = 0, "observe.snaplen", "must be from 1 to 65535"),
        (|p| p.observe.series_interval = 1, "observe.series_interval", "choose a longer interval"),
    ]);
}

#[test]
fn all_mistakes_are_named_at_once() {
    let mut plan = plan();
    plan.duration = 0;
    plan.warmup = u64::MAX;
    plan.links[0].params.delay = u64::MAX;
    plan.links[2].ring = u32::MAX;
    plan.groups[0].stop = Some(0);
    plan.groups[1].name = "ftp".into();
    plan.observe.snaplen = 0;
    let errors = plan.validate().unwrap_err();
    let places: Vec<String> = errors.0.iter().map(|error| error.at.to_string()).collect();
    let expected = [
        "duration",
        "links[0].params.delay",
        "links[2].ring",
        "groups[1].name",
        "groups[0].stop",
        "observe.snaplen",
    ];
    assert_eq!(places, expected);
    assert_eq!(errors.to_string().lines().count(), 6);
    // Other checks use indices, so an invalid index is the only reported error.
    plan.links[1].to = Some(9);
    assert_eq!(
        plan.validate().unwrap_err().to_string(),
        "links[1].to: there is no node 9; there are only 3"
    );
}

#[test]
fn so_is_each_mistake_in_changes() {
    each_is_refused(&[
        (
            |p| p.links[1].changes = vec![Change { rate: None, ..slower() }],
            "links[1].changes[0]",
            "must set a rate",
        ),
        (
            |p| {
                p.links[1].changes = vec![slower()];
                p.links[1].params.rate = None;
            },
            "links[1].changes[0].rate",
            "without an initial rate",
        ),
        (
            |p| {
                let wire = Wire { delay: u64::MAX, ..Wire::default() };
                p.links[0].changes = vec![slower(), Change { wire: Some(wire), ..slower() }];
            },
            "links[0].changes[1].wire.delay",
            "at most one hour",
        ),
        (
            |p| p.links[2].changes = vec![Change { every: 1, ..slower() }],
            "links[2].changes",
            "55000000000 changes in a run: at most 50000000 are allowed",
        ),
        (
            |p| p.links[1].params.trace = Some(trace()),
            "links[1].params.trace",
            "must not have both a rate and a trace",
        ),
        (
            |p| {
                p.links[1].params.trace = Some(trace());
                p.links[1].params.rate = None;
                p.links[1].ring = 1;
            },
            "links[1].params.trace",
            "transmit ring",
        ),
        (
            |p| {
                let long = sojourn_link::Trace::new(&vec![1; 1_000_000], 1).unwrap();
                let mut link = p.links[0].clone();
                link.params.rate = None;
                link.params.trace = Some(long);
                let more = (0..6).map(|i| Link { name: format!("more{i}"), ..link.clone() });
                p.links.extend(more);
            },
            "links",
            "6000000 opportunities: at most 5000000",
        ),
        (|p| p.links[2].changes = vec![slower(); 250_001], "links", "250001 changes: at most"),
    ]);
}

type Spoil = fn(&mut Plan);

/// Checks that each change of a valid plan gives one error with this path and a message that
/// contains this text.
fn each_is_refused(cases: &[(Spoil, &str, &str)]) {
    for (spoil, at, message) in cases {
        let mut plan = plan();
        spoil(&mut plan);
        let errors = plan.validate().expect_err(at);
        assert_eq!(errors.0.len(), 1, "a mistake without echoes: {errors}");
        assert_eq!(errors.0[0].at.to_string(), *at, "{errors}");
        assert!(errors.0[0].message.contains(message), "{errors}");
    }
}

fn medium(name: &str) -> Medium {
    Medium { name: name.into(), access: sojourn_link::csma::Params::default() }
}

fn trace() -> sojourn_link::Trace {
    sojourn_link::Trace::new(&[0, 3, 3, 7], 1500).unwrap()
}

#[test]
fn a_trace_survives_json() {
    let mut plan = plan();
    plan.links[0].params.rate = None;
    plan.links[0].params.trace = Some(trace());
    assert_eq!(plan.validate(), Ok(()));
    let text = serde_json::to_string(&plan).unwrap();
    assert!(text.contains(r#""trace":{"opportunities":[3,3,7,7],"bytes":1500}"#), "{text}");
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    let broken = text.replace("[3,3,7,7]", "[3,2]");
    let error = serde_json::from_str::<Plan>(&broken).unwrap_err().to_string();
    assert!(error.contains("found 2 ms after 3 ms"), "{error}");
}

fn slower() -> Change {
    Change { at: 5 * SECOND, every: 0, rate: Rate::new(1_000_000), wire: None }
}

#[test]
fn changes_may_lie_beyond_the_end() {
    let mut plan = plan();
    plan.links[0].changes = vec![Change { at: u64::MAX, every: u64::MAX, ..slower() }];
    assert_eq!(plan.validate(), Ok(()));
}

#[test]
fn the_rate_of_a_shared_medium_does_not_change() {
    let mut plan = on_a_bus();
    plan.links[0].changes = vec![slower()];
    let error = &plan.validate().unwrap_err().0[0];
    assert_eq!(error.at.to_string(), "links[0].changes[0].rate");
    assert!(error.message.contains("of a shared medium"), "{error}");
}

#[test]
fn a_plan_without_changes_can_be_read() {
    let mut json = serde_json::to_value(plan()).unwrap();
    for link in json["links"].as_array_mut().unwrap() {
        link.as_object_mut().unwrap().remove("changes");
    }
    assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), plan());
}

/// A plan in which home and router share a bus, and the server is behind the router.
fn on_a_bus() -> Plan {
    let mut plan = plan();
    plan.media = vec![medium("bus")];
    for link in &mut plan.links[..2] {
        link.to = None;
        link.medium = Some(0);
    }
    plan
}

#[test]
fn stations_of_a_medium_reach_each_other() {
    assert_eq!(on_a_bus().validate(), Ok(()));
    // A node that only receives is not a station.
    let mut plan = on_a_bus();
    plan.links.remove(0);
    plan.observe.bottleneck.name = "up.reverse".into();
    plan.observe.capture.clear();
    let error = &plan.validate().unwrap_err().0[0];
    assert_eq!(error.message, "no links lead from `home` to `server`");
    // The two directions of a link may also share a medium.
    let mut plan = on_a_bus();
    plan.links[2].medium = Some(0);
    plan.links[3].medium = Some(0);
    assert_eq!(plan.validate(), Ok(()));
}

#[test]
fn several_links_may_be_the_bottleneck() {
    let mut plan = on_a_bus();
    plan.observe.bottleneck = Bottleneck { name: "bus".into(), links: vec![0, 1] };
    assert_eq!(plan.validate(), Ok(()));
}

#[test]
fn udp_needs_no_way_back() {
    let mut plan = plan();
    plan.groups.remove(0);
    plan.links.retain(|link| !link.name.ends_with("reverse"));
    assert_eq!(plan.validate(), Ok(()));
}
