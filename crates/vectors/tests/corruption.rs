//! A recording with a single altered value must be reported as different.
//!
//! Alterations that no replay can detect are excluded: the low bits of a draw, which do not affect
//! the result; packet fields that the discipline does not read (such as the ECN field of a packet
//! that is not marked); the number of draws of `choke` that hit holes; and the hash of a flow with
//! a single packet.

mod common;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value};
use sojourn_vectors::{Outcome, replay};
use std::collections::BTreeMap;

/// An altered row or header, with the name of the kind of alteration.
type Altered = (String, Value);

/// Returns a number that differs from `value`.
fn other_number(value: &Value, by: u64) -> Value {
    match value {
        Value::Number(n) => {
            let n = n.as_i64().map(i128::from).or(n.as_u64().map(i128::from)).unwrap_or(0);
            let changed = if n == 0 || by.is_multiple_of(2) { n + 1 } else { n - 1 };
            if changed < 0 {
                Value::from(changed as i64)
            } else {
                Value::from(u64::try_from(changed).unwrap_or(0))
            }
        }
        Value::String(text) => Value::from((text.parse::<u128>().unwrap_or(0) + 1).to_string()),
        Value::Null => Value::from(by),
        other => other.clone(),
    }
}

/// Returns all alterations of `row`.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn alterations(row: &Value, by: u64) -> Vec<Altered> {
    let object = row.as_object().expect("a row is an object");
    let mut all = Vec::new();
    let mut with = |name: &str, change: &dyn Fn(&mut Map<String, Value>)| {
        let mut altered = object.clone();
        change(&mut altered);
        all.push((name.to_owned(), Value::Object(altered)));
    };
    for (key, value) in object {
        match (key.as_str(), value) {
            ("v", Value::Number(n)) if !object.contains_key("d") => {
                let flipped = 1 - n.as_u64().unwrap_or(0).min(1);
                with("verdict flipped", &|row| _ = row.insert("v".into(), flipped.into()));
            }
            ("v", _) => {
                with("verdict changed", &|row| {
                    let changed = other_number(&row["v"], by);
                    row.insert("v".into(), changed);
                });
                if !value.is_null() {
                    with("verdict null", &|row| _ = row.insert("v".into(), Value::Null));
                }
            }
            ("ret", Value::Number(n)) => {
                let other = 3 - n.as_u64().unwrap_or(0).clamp(1, 2);
                with("return changed", &|row| _ = row.insert("ret".into(), other.into()));
            }
            ("x" | "m" | "r" | "h" | "w" | "q", Value::Array(items)) => {
                let pick = by as usize % items.len();
                let name = match key.as_str() {
                    "x" => "drop",
                    "m" => "mark",
                    "r" => "draw",
                    "h" => "hash",
                    "w" => "counter",
                    _ => "backlog",
                };
                let edit = |change: &dyn Fn(&mut Vec<Value>)| {
                    let mut items = items.clone();
                    change(&mut items);
                    Value::Array(items)
                };
                let shorter = edit(&|items| _ = items.remove(pick));
                with(&format!("{name} taken out"), &|row| {
                    _ = row.insert(key.clone(), shorter.clone());
                });
                let longer = edit(&|items| items.insert(pick, items[pick].clone()));
                with(&format!("{name} twice"), &|row| {
                    _ = row.insert(key.clone(), longer.clone());
                });
                if key == "r" {
                    let wider = edit(&|items| {
                        let text = items[pick].as_str().unwrap_or("");
                        let width = if text.starts_with('h') { "w" } else { "h" };
                        items[pick] = format!("{width}{}", by % 65_536).into();
                    });
                    with("draw of another width", &|row| {
                        _ = row.insert(key.clone(), wider.clone());
                    });
                } else if key == "w" {
                    with("counter changed", &|row| {
                        _ = row.insert("w".into(), vec!["qlen"].into());
                    });
                } else {
                    let changed = edit(&|items| items[pick] = other_number(&items[pick], by));
                    with(&format!("{name} changed"), &|row| {
                        _ = row.insert(key.clone(), changed.clone());
                    });
                }
            }
            ("wd", _) => with("wake-up changed", &|row| {
                let changed = other_number(&row["wd"], by);
                row.insert("wd".into(), changed);
            }),
            ("s" | "end", Value::Object(fields)) => {
                let name = if key == "s" { "state" } else { "final counter" };
                let pick = fields.keys().nth(by as usize % fields.len()).expect("not empty");
                with(&format!("{name} changed"), &|row| {
                    let changed = other_number(&row[key][pick], by);
                    row[key][pick] = changed;
                });
                with(&format!("{name} taken out"), &|row| {
                    _ = row[key].as_object_mut().expect("an object").remove(pick);
                });
            }
            ("f", Value::Object(flows)) => {
                let flow = flows.keys().nth(by as usize % flows.len()).expect("not empty");
                let fields = flows[flow].as_object().expect("an object");
                let pick = fields.keys().nth(by as usize % fields.len()).expect("not empty");
                with("flow state changed", &|row| {
                    let changed = other_number(&row["f"][flow][pick], by);
                    row["f"][flow][pick] = changed;
                });
                with("flow state taken out", &|row| {
                    _ = row["f"][flow].as_object_mut().expect("an object").remove(pick);
                });
                with("flow taken out", &|row| {
                    _ = row["f"].as_object_mut().expect("an object").remove(flow);
                });
            }
            ("L", Value::Array(lists)) => {
                with("list longer", &|row| {
                    row["L"][0].as_array_mut().expect("a list").push(by.into());
                });
                with("list taken out", &|row| {
                    row["L"].as_array_mut().expect("lists").pop();
                });
                with("list put in", &|row| {
                    row["L"].as_array_mut().expect("lists").push(Value::Array(Vec::new()));
                });
                if lists.get(1).is_some_and(|second| *second != lists[0]) {
                    with("lists swapped", &|row| {
                        row["L"].as_array_mut().expect("lists").swap(0, 1);
                    });
                }
            }
            _ => {}
        }
        if !matches!(key.as_str(), "e" | "d" | "u") {
            with(&format!("`{key}` left out"), &|row| _ = row.remove(key));
        }
    }
    with("unknown key put in", &|row| _ = row.insert("zz".into(), 1.into()));
    if object.contains_key("q") {
        with("result put in", &|row| {
            let key = if row.contains_key("x") { "wd" } else { "x" };
            let value = if key == "x" { Value::from(vec![by]) } else { by.into() };
            row.insert(key.into(), value);
        });
        with("draw put in", &|row| {
            let key = if row.contains_key("r") { "ret" } else { "r" };
            let value = if key == "r" { Value::from(vec!["w1"]) } else { 7.into() };
            row.insert(key.into(), value);
        });
    }
    all
}

/// Returns the largest number of packets in a class at the end of any row.
fn longest(lines: &[&str]) -> u64 {
    let rows = lines[1..].iter().filter(|line| line.contains("\"qlen\":"));
    let rows = rows.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let longest = |row: Value| {
        row["f"].as_object().into_iter().flatten().filter_map(|(_, f)| f["qlen"].as_u64()).max()
    };
    rows.filter_map(longest).max().expect("a class with packets")
}

/// Returns all alterations of the header.
fn header_alterations(lines: &[&str], head: &Value, by: u64) -> Vec<Altered> {
    let object = head.as_object().expect("a header is an object");
    let mut all = Vec::new();
    let mut put = |name: &str, value: Value| all.push((name.to_owned(), value));
    let params = object["params"].as_object().expect("an object");
    let takes_text = object.get("tc").is_some_and(|tc| !tc.as_str().unwrap_or("").contains('#'));
    for key in params.keys() {
        let mut without = head.clone();
        _ = without["params"].as_object_mut().expect("an object").remove(key);
        put("a parameter taken out", without);
        if takes_text && params[key].is_number() {
            let mut changed = head.clone();
            changed["params"][key] = match key.as_str() {
                // The limit only decides whether a packet fits, so two limits above all backlogs
                // are equivalent. The altered limit is below the longest backlog.
                "leaf_limit" => (longest(lines) - 1).into(),
                _ => other_number(&params[key], by),
            };
            put("a parameter", changed);
        }
        for (index, tin) in params[key].as_array().into_iter().flatten().enumerate() {
            for (name, number) in tin.as_object().into_iter().flatten() {
                let mut changed = head.clone();
                changed["params"][key][index][name] = other_number(number, by);
                put("a parameter of a tin", changed);
            }
        }
    }
    for key in ["discipline", "t0", "params", "state", "init", "format", "time_unit"] {
        let mut without = head.clone();
        _ = without.as_object_mut().expect("an object").remove(key);
        put("a header key taken out", without);
    }
    for (key, field) in object["init"]["s"].as_object().into_iter().flatten() {
        let mut changed = head.clone();
        changed["init"]["s"][key] = other_number(field, 0);
        put("initial state", changed);
        let mut without = head.clone();
        without["state"].as_array_mut().expect("names").retain(|name| name != key);
        put("a name of state", without);
    }
    all
}

fn replay_with(lines: &[&str], at: usize, row: &Value) -> Outcome {
    let mut text = String::new();
    let row = row.to_string();
    for (index, line) in lines.iter().enumerate() {
        text.push_str(if index == at { &row } else { line });
        text.push('\n');
    }
    replay("", &text).outcome
}

/// Number of alterations: few by default, or according to `PROPTEST_CASES`, which `make soak` sets.
#[derive(Clone, Copy)]
struct Effort {
    /// Number of altered rows per scenario, at any position.
    rows: usize,
    /// Number of altered rows per scenario that contain each of [`KEYS`].
    with_each: usize,
    /// Number of alterations of each kind per scenario.
    of_a_kind: usize,
    /// Minimum total number of alterations.
    least: usize,
    /// Number of lines per scenario, including the header, in which numbers are replaced by extreme
    /// values.
    extreme: usize,
}

impl Effort {
    fn of_this_run() -> Self {
        let cases = Config::default().cases as usize;
        Self {
            rows: cases / 500,
            with_each: 1 + cases / 4000,
            of_a_kind: (cases / 200).max(1),
            least: if cases < 20_000 { 5_000 } else { 50_000 },
            extreme: if cases < 20_000 { 6 } else { 12 },
        }
    }
}

/// Keys of rows, each with the beginning of the name of a kind of alteration that is possible only
/// in rows with this key. The key of an operation is the first in its row; `f` of other rows may
/// have a field of that name.
const KEYS: &[(&str, &str)] = &[
    ("{\"e\":", "verdict flipped"),
    ("{\"d\":", "verdict changed"),
    ("{\"deq\":", "verdict flipped"),
    ("{\"u\":", "`q` left out"),
    ("\"ret\":", "return"),
    ("\"x\":", "drop"),
    ("\"m\":", "mark"),
    ("\"r\":", "draw"),
    ("\"h\":", "hash"),
    ("\"w\":", "counter"),
    ("\"q\":", "backlog"),
    ("\"s\":", "state"),
    ("\"f\":", "flow"),
    ("\"L\":", "list"),
    ("\"wd\":", "wake-up"),
    ("{\"end\":", "final counter"),
];

/// Alters the header and some rows of each scenario, among them at least one row with each of
/// [`KEYS`].
#[test]
fn single_alterations_are_reported() {
    let effort = Effort::of_this_run();
    let mut total = BTreeMap::<String, usize>::new();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for scenario in common::scenarios() {
        let lines: Vec<&str> = scenario.text.lines().collect();
        let head: Value = serde_json::from_str(lines[0]).expect("JSON");
        for (name, altered) in header_alterations(&lines, &head, random()) {
            let outcome = replay_with(&lines, 0, &altered);
            assert!(
                !matches!(outcome, Outcome::Agrees | Outcome::UnknownDiscipline),
                "{}: header: {name} not reported:\n{altered}",
                head["scenario"]
            );
            *total.entry(name).or_default() += 1;
        }
        let mut rows: Vec<usize> =
            (0..effort.rows).map(|_| 1 + random() as usize % (lines.len() - 1)).collect();
        let mut wanted = Vec::new();
        for (key, kind) in KEYS {
            let with: Vec<usize> = (1..lines.len()).filter(|&i| lines[i].contains(key)).collect();
            if !with.is_empty() {
                rows.extend((0..effort.with_each).map(|_| with[random() as usize % with.len()]));
                wanted.push(*kind);
            }
        }
        let is_undetectable = |name: &str, row: &Value| match name {
            "hash changed" => {
                let times = |hash: &str| lines.iter().filter(|line| line.contains(hash)).count();
                row["h"].as_array().into_iter().flatten().any(|hash| times(&hash.to_string()) == 1)
            }
            "draw taken out" | "draw twice" if scenario.discipline == "choke" => {
                let draws = row["r"].as_array().map_or(0, Vec::len);
                draws - usize::from(!row["s"]["qR"].is_null()) > 1
            }
            // A packet that is queued has two draws; a packet that is dropped earlier has only one.
            "draw taken out" | "draw twice" if scenario.discipline == "dualpi2" => {
                row["r"].as_array().map_or(0, Vec::len) > 1
            }
            _ => false,
        };
        let mut counts = BTreeMap::<String, usize>::new();
        for at in rows {
            let row: Value = serde_json::from_str(lines[at]).expect("JSON");
            for (name, altered) in alterations(&row, random()) {
                if is_undetectable(&name, &row) {
                    continue;
                }
                let count = counts.entry(name.clone()).or_default();
                if *count == effort.of_a_kind {
                    continue;
                }
                *count += 1;
                let outcome = replay_with(&lines, at, &altered);
                assert!(
                    outcome != Outcome::Agrees,
                    "{}: line {}: {name} not reported:\n{}\n{altered}",
                    head["scenario"],
                    at + 1,
                    lines[at]
                );
            }
        }
        for kind in wanted {
            let tried = counts.keys().any(|name| name.starts_with(kind));
            assert!(tried, "{}: {}: no alteration `{kind}`", scenario.file, head["scenario"]);
        }
        for (name, count) in counts {
            *total.entry(name).or_default() += count;
        }
        if scenario.discipline != "cobalt" {
            let cut = lines[..lines.len() - 1].join("\n");
            assert!(matches!(replay("", &cut).outcome, Outcome::Malformed { .. }));
            *total.entry("`end` taken out".to_owned()).or_default() += 1;
        }
    }
    let sum = total.values().sum::<usize>();
    println!("{sum} alterations reported: {total:#?}");
    assert!(sum > effort.least);
}

/// Files with altered bytes at any position may give any result, but no panic.
#[test]
fn garbage_never_panics() {
    let scenarios = common::scenarios();
    let cases = Config::default().cases.max(2_000);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let input = (
        0..scenarios.len(),
        proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..6),
        // Most alterations are in or near the header.
        prop_oneof![Just(4_000usize), Just(usize::MAX)],
        any::<prop::sample::Index>(),
    );
    TestRunner::new_with_rng(config, rng)
        .run(&input, |(which, edits, reach, end)| {
            let mut bytes = scenarios[which].text.clone().into_bytes();
            bytes.truncate(bytes.len().min(1 + end.index(60_000)));
            for (place, byte, kind) in edits {
                let at = place.index(bytes.len().min(reach));
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes[at] = b'0' + byte % 10,
                    2 => bytes.insert(at, b"0123456789-\"{}[],:"[byte as usize % 18]),
                    _ => _ = bytes.remove(at),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let _ = replay("", &String::from_utf8_lossy(&bytes));
            Ok(())
        })
        .expect("no panic");
}

/// Replaces each number in the first lines by extreme values, one at a time; the replay must not
/// panic.
#[test]
fn extreme_numbers_never_panic() {
    let effort = Effort::of_this_run();
    for scenario in common::scenarios() {
        let head = scenario.text.lines().take(effort.extreme).collect::<Vec<_>>().join("\n");
        let bytes = head.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !bytes[at].is_ascii_digit() || (at > 0 && bytes[at - 1].is_ascii_digit()) {
                at += 1;
                continue;
            }
            let end =
                (at..bytes.len()).find(|&i| !bytes[i].is_ascii_digit()).unwrap_or(bytes.len());
            // The 256 entries of the idle table are equivalent, so only some of them are altered.
            if head[..at].matches(',').count() < 300 || at % 7 == 0 {
                for extreme in ["0", "1", "4294967295", "9223372036854775807", "1e300"] {
                    let text = format!("{}{extreme}{}", &head[..at], &head[end..]);
                    let _ = replay("", &text);
                }
            }
            at = end;
        }
    }
}
