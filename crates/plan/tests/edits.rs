//! Edits parse the same texts as scenarios, and their errors name the wrong edit.

use sojourn_link::{Cells, Impairments, Params, Trace};
use sojourn_plan::{Bottleneck, Edits, Link, Node, Observe, Plan, scaled_warmup, shared_delays};
use sojourn_queue::Device;
use sojourn_units::{MILLISECOND, Rate, SECOND};
use std::collections::BTreeMap;

fn queue(text: &str, rate: u64) -> sojourn_queue::Params {
    let device = Device { rate: Rate::new(rate), ..Device::default() };
    sojourn_queue::Params::parse(text, &device).unwrap()
}

fn plan() -> Plan {
    let link = |name: &str, from, to, delay| Link {
        name: name.into(),
        from,
        to: Some(to),
        medium: None,
        ring: 0,
        host: None,
        host_queue: false,
        offload: None,
        params: Params {
            rate: Rate::new(10_000_000),
            trace: None,
            overhead: 0,
            cells: Cells::default(),
            delay,
            impairments: Impairments::default(),
            queue: queue("fq_codel", 10_000_000),
        },
        changes: Vec::new(),
    };
    Plan {
        duration: 10 * SECOND,
        warmup: 2 * SECOND,
        nodes: ["a", "b"].map(|name| Node { name: name.into() }).into(),
        media: Vec::new(),
        links: vec![link("up", 0, 1, 30 * MILLISECOND), link("up.reverse", 1, 0, 10 * MILLISECOND)],
        balancers: Vec::new(),
        groups: Vec::new(),
        apps: Vec::new(),
        observe: Observe {
            bottleneck: Bottleneck { name: "up".into(), links: vec![0] },
            series_interval: 0,
            per_flow_histograms: false,
            monitor: false,
            capture: Vec::new(),
            qlog: Vec::new(),
            snaplen: 128,
            trace_hash: true,
        },
        sources: BTreeMap::default(),
    }
}

fn edited(edits: &str) -> Result<Plan, String> {
    let mut plan = plan();
    let edits: Edits = serde_json::from_str(edits).unwrap();
    plan.edit(&edits).map_err(|errors| errors.to_string())?;
    Ok(plan)
}

#[test]
fn no_edit_changes_nothing() {
    assert_eq!(edited("{}").unwrap(), plan());
}

#[test]
fn a_queue_is_read_for_the_new_rate() {
    let edits = r#"{"links": [{"link": 0, "rate": "1mbit", "queue": "cake besteffort"}]}"#;
    let plan = edited(edits).unwrap();
    assert_eq!(plan.links[0].params.rate, Rate::new(1_000_000));
    assert_eq!(plan.links[0].params.queue, queue("cake besteffort", 1_000_000));
    let red = "red limit 300p min 45p max 195p avpkt 1514 unit packets";
    let edits = format!(r#"{{"links": [{{"link": 0, "rate": "1mbit", "queue": "{red}"}}]}}"#);
    assert_eq!(edited(&edits).unwrap().links[0].params.queue, queue(red, 1_000_000));
    assert_ne!(queue(red, 1_000_000), queue(red, 10_000_000), "a queue that the rate decides");
}

#[test]
fn a_round_trip_time_is_shared_as_before() {
    let plan = edited(r#"{"paths": [{"there": 0, "back": 1, "rtt": "80ms"}]}"#).unwrap();
    let delays = [0, 1].map(|link| plan.links[link].params.delay);
    assert_eq!(delays, [60 * MILLISECOND, 20 * MILLISECOND]);
    assert_eq!(shared_delays(5, (0, 0)), (2, 3));
    assert_eq!(shared_delays(u64::MAX, (u64::MAX, u64::MAX)), (u64::MAX / 2, u64::MAX / 2 + 1));
}

#[test]
fn a_warm_up_keeps_its_share() {
    let plan = edited(r#"{"duration": "5s"}"#).unwrap();
    assert_eq!((plan.duration, plan.warmup), (5 * SECOND, SECOND));
    assert_eq!(scaled_warmup(SECOND, 3 * SECOND, SECOND), 333 * MILLISECOND);
    assert_eq!(scaled_warmup(0, SECOND, 2 * SECOND), 0);
}

#[test]
fn the_wrong_text_is_named() {
    for (edits, wrong) in [
        (r#"{"duration": "5"}"#, "duration: a time needs its unit"),
        (r#"{"links": [{"link": 2}]}"#, "links[0].link: there is no link 2; there are only 2"),
        (r#"{"links": [{"link": 0, "rate": "0mbit"}]}"#, "links[0].rate: expected a rate"),
        (r#"{"links": [{"link": 0}, {"link": 1, "queue": "codle"}]}"#, "links[1].queue: unknown"),
        (r#"{"paths": [{"there": 0, "back": 7, "rtt": "1ms"}]}"#, "paths[0].back: there is no"),
        (r#"{"paths": [{"there": 0, "back": 1, "rtt": "x"}]}"#, "paths[0].rtt: expected a time"),
        (r#"{"groups": [{"group": 0, "count": 1}]}"#, "groups[0].group: there is no group 0"),
    ] {
        let error = edited(edits).unwrap_err();
        assert!(error.starts_with(wrong), "{error}");
    }
}

#[test]
fn a_trace_is_no_rate() {
    let mut plan = plan();
    plan.links[0].params.rate = None;
    plan.links[0].params.trace = Some(Trace::new(&[1, 2, 4], 1500).unwrap());
    let edits = |text| serde_json::from_str::<Edits>(text).unwrap();
    let refused = plan.edit(&edits(r#"{"links": [{"link": 0, "rate": "1mbit"}]}"#));
    assert!(refused.unwrap_err().to_string().contains("follows a trace"));
    plan.edit(&edits(r#"{"links": [{"link": 0, "queue": "cobalt"}]}"#)).unwrap();
    let mean = 1500 * 8 * 3 * 1000 / 4;
    assert_eq!(plan.links[0].params.queue, queue("cobalt", mean));
}
