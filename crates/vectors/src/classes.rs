//! Recordings of classful disciplines: their classes are given as `tc` commands and as the kernel's
//! numbers.

use crate::read::{self, Json, Object};
use crate::report::Outcome;
use crate::tbf::speed;
use serde_json::json;
use sojourn_queue::hfsc::Curve;
use sojourn_queue::htb::MBUFFER;
use sojourn_queue::{Params, ets, hfsc, htb};

type Result<T> = std::result::Result<T, Outcome>;

/// Names of the classful disciplines in recordings.
pub const NAMES: [&str; 5] = ["prio", "drr", "ets", "htb", "hfsc"];

/// Returns the numbers without `leaf_limit`, which a row for a change of a classful discipline does
/// not state.
pub fn without_leaves(numbers: &Json) -> Json {
    let mut numbers = numbers.clone();
    _ = numbers.as_object_mut().and_then(|numbers| numbers.remove("leaf_limit"));
    numbers
}

/// Returns a complete description: the discipline's own words, followed by the header's classes.
pub fn description(head: &Object, words: &str) -> Result<String> {
    let params = read::map(1, "params", read::field(1, head, "params")?)?;
    let limit = read::number(1, params, "leaf_limit", u32::MAX.into())?;
    let mut text = format!("{words} txqueuelen {limit}");
    if head.contains_key("tc_classes") {
        for class in read::names(1, head, "tc_classes")? {
            text.push_str(" ; class ");
            text.push_str(&class);
        }
    }
    Ok(text)
}

/// Returns the description of a change. `command` changes a class or the discipline itself.
pub fn change(name: &str, command: &str) -> String {
    match command.split_whitespace().next() {
        Some("class") => format!("{name} ; {command}"),
        _ => command.to_owned(),
    }
}

/// Returns the parameters as recordings of classes represent them; `None` for other disciplines.
pub fn numbers(params: &Params) -> Option<Json> {
    Some(match params {
        Params::Prio(p) => {
            json!({"bands": p.bands, "priomap": p.priomap, "leaf_limit": p.tree.txqueuelen})
        }
        Params::Drr(p) => json!({"leaf_limit": p.tree.txqueuelen}),
        Params::Ets(p) => json!({
            "bands": p.bands, "strict": p.strict, "priomap": p.map(), "quanta": quanta(p),
            "leaf_limit": p.tree.txqueuelen,
        }),
        Params::Htb(p) => json!({
            "default": p.default, "r2q": p.r2q, "direct_qlen": p.direct_limit(),
            "leaf_limit": p.tree.txqueuelen,
        }),
        Params::Hfsc(p) => json!({"default": p.default, "leaf_limit": p.tree.txqueuelen}),
        _ => return None,
    })
}

fn quanta(params: &ets::Params) -> Vec<u32> {
    (0..params.bands).map(|band| params.quantum(band.into())).collect()
}

/// Compares the header's recorded classes with those computed from `params`.
pub fn compare(head: &Object, params: &Params) -> Result<()> {
    let empty = Json::Object(Object::new());
    let recorded = read::map(1, "classes", head.get("classes").unwrap_or(&empty))?;
    let ours = classes(params);
    for (id, class) in recorded {
        let found = id.parse().ok().and_then(|id| class_numbers(params, id));
        if found.as_ref() != Some(class) {
            let found = found.unwrap_or(Json::Null);
            return Err(Outcome::differs(1, format!("class {id}"), class, found));
        }
    }
    if ours != recorded.len() {
        return Err(Outcome::malformed(
            1,
            "`classes` and `tc_classes` must state the same classes",
        ));
    }
    Ok(())
}

/// Compares the numbers that a row records for a changed class with the computed numbers.
pub fn compare_class(line: usize, row: &Object, params: &Params) -> Result<()> {
    let id = read::number(line, row, "class", u16::MAX.into())? as u16;
    let recorded = read::field(line, row, "p")?;
    let found = match params {
        Params::Ets(_) => without_leaves(&numbers(params).unwrap_or_default()),
        params => class_numbers(params, id).unwrap_or(Json::Null),
    };
    if *recorded != found {
        return Err(Outcome::differs(line, format!("class {id}"), recorded, found));
    }
    Ok(())
}

fn classes(params: &Params) -> usize {
    match params {
        Params::Drr(p) => p.tree.classes.len(),
        Params::Htb(p) => p.tree.classes.len(),
        Params::Hfsc(p) => p.tree.classes.len(),
        _ => 0,
    }
}

fn class_numbers(params: &Params, id: u16) -> Option<Json> {
    Some(match params {
        Params::Drr(p) => json!({"quantum": p.quantum(&p.tree.class(id)?.words)}),
        Params::Htb(p) => htb_class(p, id)?,
        Params::Hfsc(p) => hfsc_class(p, id)?,
        _ => return None,
    })
}

fn htb_class(params: &htb::Params, id: u16) -> Option<Json> {
    let class = params.tree.class(id)?;
    let constants = class.words.constants(params.r2q);
    Some(json!({
        "parent": class.parent, "level": params.level(id), "prio": class.words.prio,
        "quantum": constants.quantum, "buffer": constants.buffer, "cbuffer": constants.cbuffer,
        "mbuffer": MBUFFER, "rate": speed(&constants.rate), "ceil": speed(&constants.ceil),
    }))
}

fn hfsc_class(params: &hfsc::Params, id: u16) -> Option<Json> {
    let class = params.tree.class(id)?;
    let curve = |curve: Option<Curve>| {
        curve.map(|curve| {
            let own = hfsc::Internal::new(&curve);
            // The inverse of a slope of 0 is -1.
            json!({
                "sm1": own.sm1, "ism1": own.ism1 as i64, "dx": own.dx, "dy": own.dy,
                "sm2": own.sm2, "ism2": own.ism2 as i64,
            })
        })
    };
    let words = &class.words;
    Some(json!({
        "parent": class.parent, "level": height(params, id),
        "rsc": curve(words.rt), "fsc": curve(words.ls), "usc": curve(words.ul),
    }))
}

/// Returns the largest depth of nested classes below a class.
fn height(params: &hfsc::Params, id: u16) -> usize {
    let below = params.tree.classes.iter().filter(|class| class.parent == id);
    below.map(|class| 1 + height(params, class.id)).max().unwrap_or(0)
}
