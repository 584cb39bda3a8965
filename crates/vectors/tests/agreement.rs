//! The replay of each recorded scenario must give the recorded results.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;

use sojourn_vectors::{Outcome, replay};

#[test]
fn every_scenario_agrees() {
    let mut found = BTreeMap::<&str, usize>::new();
    for scenario in common::scenarios() {
        let report = replay("unnamed", &scenario.text);
        assert_eq!(report.outcome, Outcome::Agrees, "{report}");
        assert_eq!(report.discipline, scenario.discipline);
        assert_ne!(report.scenario, "unnamed");
        let end = usize::from(scenario.discipline != "cobalt");
        assert_eq!(report.operations, scenario.text.lines().count() - 1 - end);
        *found.entry(scenario.file).or_default() += report.operations;
    }
    for &(file, _, operations, _) in common::PACKED {
        assert_eq!(found[file], operations, "{file}");
    }
}

/// Recordings fire each timer exactly at the jiffy that the discipline requests, unless they
/// intentionally fire timers late.
#[test]
fn timers_are_due_when_the_kernel_fires_them() {
    let mut on_time = 0;
    for scenario in common::scenarios() {
        let report = replay("", &scenario.text);
        let made_late = [
            "dualpi2-15-adversarial-a",
            "fq_pie-13-adversarial-a",
            "pie-12-hz250-latetimer-a",
            "pie-15-adversarial-a",
            "red-10-adaptive-a",
        ];
        if !made_late.contains(&report.scenario.as_str()) {
            assert_eq!((report.timers.late, report.timers.early), (0, 0), "{}", report.scenario);
            on_time += report.timers.on_time;
        }
    }
    assert!(on_time > 500);
}

/// A repeated row is a repeated operation, even if the repetition has no effect.
#[test]
fn a_row_of_changes_cannot_be_repeated() {
    let scenarios = common::scenarios();
    let of = |discipline| scenarios.iter().find(|s| s.discipline == discipline).expect("one");
    for discipline in ["cobalt", "fq_codel", "fq_pie", "red"] {
        let lines: Vec<&str> = of(discipline).text.lines().collect();
        let at = lines.iter().rposition(|line| line.contains("\"s\":{\"")).expect("a change");
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        let outcome = replay("", &twice.join("\n")).outcome;
        assert_ne!(outcome, Outcome::Agrees, "{discipline}");
    }
}

#[test]
fn empty_lines_at_the_end_say_nothing() {
    let text = &common::scenarios()[0].text;
    assert_eq!(replay("", &format!("{text}\n\r\n")).outcome, Outcome::Agrees);
    assert_eq!(replay("", &text.replace('\n', "\r\n")).outcome, Outcome::Agrees);
    let (head, rows) = text.split_once('\n').expect("lines");
    let outcome = replay("", &format!("{head}\n\n{rows}")).outcome;
    assert_eq!(outcome.to_string(), "line 2: malformed: the line is empty");
}

#[test]
fn other_disciplines_are_named_not_judged() {
    let text = r#"{"format":"aqm-vectors/1","discipline":"qfq","scenario":"qfq-01"}"#;
    let report = replay("", text);
    assert_eq!(report.outcome, Outcome::UnknownDiscipline);
    assert_eq!(report.to_string(), "qfq-01 (qfq): unknown discipline, 0 operations");
}

/// Changes of parameters: by the kernel's rules, packets that no longer fit are dropped from the
/// head.
mod change {
    use super::*;

    const HEAD: &str = r#"{"format":"aqm-vectors/1","discipline":"codel","scenario":"s","kernel":"k","time_unit":"ns","t0":1000,"tc":"codel limit 9","params":{"limit":9,"target_us":5000,"interval_us":100000,"ecn":0,"ce_threshold_us":null,"target":4882,"interval":97656,"ce_threshold":2147483647,"mtu":1514},"psched_mtu":1514,"hz":1000,"e_cols":["t","id","len","flow","ecn"],"state":["count","maxpacket"],"counters":["qlen","backlog","drops","overlimits","packets","bytes","drop_overlimit","ecn_mark","ce_mark"],"init":{"s":{"count":0,"maxpacket":0}}}"#;
    const END: &str = r#"{"end":{"qlen":2,"backlog":200,"drops":1,"overlimits":0,"packets":0,"bytes":0,"drop_overlimit":0,"ecn_mark":0,"ce_mark":0}}"#;

    fn with_change(row: &str) -> sojourn_vectors::Report {
        let mut text = format!("{HEAD}\n");
        for id in 0..3 {
            let (n, bytes) = (id + 1, 100 * (id + 1));
            _ = writeln!(text, "{{\"e\":[2000,{id},100,0,0],\"v\":1,\"q\":[{n},{bytes}]}}");
        }
        replay("", &format!("{text}{row}\n{END}\n"))
    }

    #[test]
    fn a_lower_limit_drops_from_the_head() {
        for tc in [
            "codel limit 2",
            "limit 2",
            "codel limit 2 target 6ms",
            "tc qdisc change dev eth0 root codel limit 0x2 target 6000 # by hand",
        ] {
            let row = format!(r#"{{"c":3000,"tc":"{tc}","x":[0],"q":[2,200]}}"#);
            let report = with_change(&row);
            assert_eq!(report.outcome, Outcome::Agrees, "{tc}: {report}");
        }
    }

    #[test]
    fn drops_by_a_change_are_compared() {
        for row in [
            r#"{"c":3000,"tc":"codel limit 2","x":[1],"q":[2,200]}"#,
            r#"{"c":3000,"tc":"codel limit 2","q":[2,200]}"#,
            r#"{"c":3000,"tc":"codel limit 3","x":[0],"q":[2,200]}"#,
            r#"{"c":3000,"tc":"codel limit 2","x":[0],"q":[3,300]}"#,
            r#"{"c":3000,"tc":"codel limit 2","x":[0],"q":[2,200],"r":["w1"]}"#,
            r#"{"c":3000,"tc":"codel limit 2","x":[0],"q":[2,200],"s":{"count":0}}"#,
        ] {
            assert!(matches!(with_change(row).outcome, Outcome::Differs { line: 5, .. }), "{row}");
        }
    }

    #[test]
    fn a_change_that_cannot_be_read_is_malformed() {
        for row in [
            r#"{"c":3000,"tc":"pie limit 2","x":[0],"q":[2,200]}"#,
            r#"{"c":3000,"x":[0],"q":[2,200]}"#,
            r#"{"c":100,"tc":"codel limit 2","x":[0],"q":[2,200]}"#,
        ] {
            assert!(
                matches!(with_change(row).outcome, Outcome::Malformed { line: 5, .. }),
                "{row}"
            );
        }
    }
}
