//! JSON of `nft -j` (libnftables-json(5)), as the commands of `nft` that have the same effect.

use crate::json::Json;

const VERBS: [&str; 6] = ["add", "create", "insert", "replace", "flush", "delete"];

/// Whether a text begins like the output of `nft -j`.
pub(crate) fn is_nft(text: &str) -> bool {
    let start: String = text.chars().filter(|c| !c.is_whitespace()).take(12).collect();
    start == r#"{"nftables":"#
}

/// Returns the commands of a listing, or of a file for `nft -j -f`.
pub(crate) fn commands(text: &str) -> Result<Vec<String>, serde_json::Error> {
    let whole: Json = serde_json::from_str(text)?;
    let entries = whole.get("nftables").map_or(&[][..], Json::list);
    let command = |(key, value): &(String, Json)| match (key.as_str(), value.pairs()) {
        (verb, [(object, fields)]) if VERBS.contains(&verb) => Some(spoken(verb, object, fields)),
        // A test that uses a set of a listing is refused, so its elements do not matter.
        ("chain" | "rule", _) => Some(spoken("add", key, value)),
        _ => None,
    };
    Ok(entries.iter().flat_map(Json::pairs).filter_map(command).collect())
}

/// Returns the words of a command.
fn spoken(verb: &str, object: &str, fields: &Json) -> String {
    let mut words = vec![verb.to_owned(), object.to_owned()];
    let keys: &[&str] = if matches!(object, "rule" | "element") {
        &["family", "table", "chain", "name"]
    } else {
        &["family", "table", "name"]
    };
    words.extend(keys.iter().filter_map(|key| fields.get(key)).map(term));
    if object == "chain" && verb != "flush" && verb != "delete" {
        words.push("{".to_owned());
        for (key, word) in [("type", "type"), ("hook", "hook"), ("prio", "priority")] {
            words.extend(fields.get(key).into_iter().flat_map(|value| [word.into(), term(value)]));
        }
        words.push("}".to_owned());
    }
    let statements = fields.get("expr").map_or(&[][..], Json::list);
    words.extend(statements.iter().flat_map(Json::pairs).map(|(kind, value)| {
        let part = |key: &str| value.get(key).map(term).unwrap_or_default();
        match kind.as_str() {
            "match" if part("op") == "in" => format!("{} {}", part("left"), part("right")),
            "match" => format!("{} {} {}", part("left"), part("op"), part("right")),
            "mangle" => format!("{} set {}", part("key"), part("value")),
            "jump" | "goto" => format!("{kind} {}", part("target")),
            "counter" => kind.clone(),
            _ => format!("{kind} {}", term(value)).trim_end().to_owned(),
        }
    }));
    words.join(" ")
}

/// Returns an expression as `nft` prints it.
fn term(value: &Json) -> String {
    let joined = |parts: &[Json], by: &str| parts.iter().map(term).collect::<Vec<_>>().join(by);
    match value {
        Json::Text(text)
            if text.contains(|c: char| c.is_whitespace() || "{},;=<>!".contains(c)) =>
        {
            format!("\"{text}\"")
        }
        Json::List(list) => joined(list, " "),
        Json::Object(_) => {
            let whole = |(key, inner): &(String, Json)| {
                let part = |key: &str| inner.get(key).map(term).unwrap_or_default();
                match key.as_str() {
                    "set" => format!("{{ {} }}", joined(inner.list(), ", ")),
                    "range" => joined(inner.list(), "-"),
                    "&" | "|" | "^" | "<<" | ">>" => joined(inner.list(), &format!(" {key} ")),
                    "prefix" => format!("{}/{}", part("addr"), part("len")),
                    "payload" => format!("{} {}", part("protocol"), part("field")),
                    "meta" if part("key").starts_with(['i', 'o']) => part("key"),
                    "meta" | "ct" => format!("{key} {}", part("key")),
                    _ => format!("{key} {}", term(inner)),
                }
            };
            value.pairs().iter().map(whole).collect::<Vec<_>>().join(" ")
        }
        value => value.text(),
    }
}

#[cfg(test)]
mod tests {
    use crate::firewall::{Firewall, Step};
    use crate::nft::file;
    use crate::place::Place;
    use proptest::prelude::*;

    type Chains = Vec<(String, Vec<Step>)>;

    /// Reads a file of rules; returns the chains without lines, the hooks, and what is refused.
    fn read(text: &str) -> (Chains, String, Vec<String>) {
        let mut firewall = Firewall::default();
        let place = |n: usize| Place { line: n as u32 + 1, ..Place::default() };
        let lines = text.lines().enumerate().map(|(n, line)| (line.to_owned(), place(n)));
        let refused = file(&mut firewall, lines)
            .into_iter()
            .map(|(_, fault, _)| fault.message.rsplit("`: ").next().unwrap_or_default().to_owned());
        let refused = refused.collect();
        let bare = |step: Step| Step { line: Place::default(), ..step };
        let bare = |steps: Vec<Step>| steps.into_iter().map(bare).collect();
        let chains = firewall.chains.into_iter().map(|(name, steps)| (name, bare(steps)));
        (chains.collect(), format!("{:?}", firewall.hooks), refused)
    }

    /// Both files are what `nft list ruleset` of nftables 1.1.3 printed of one set of rules.
    #[test]
    fn rules_in_json_are_those_in_text() {
        let text = read(include_str!("../tests/nft/ruleset.nft"));
        assert_eq!(read(include_str!("../tests/nft/ruleset.json")), text);
        assert_eq!(text.0.iter().map(|(_, steps)| steps.len()).sum::<usize>(), 11);
        assert_eq!(text.2.len(), 5);
    }

    #[test]
    fn commands_in_json_are_obeyed() {
        let rule = |verb: &str, mark: u32| {
            format!(
                r#"{{"{verb}": {{"rule": {{"family": "ip", "table": "t", "chain": "c", "expr": [
                {{"mangle": {{"key": {{"meta": {{"key": "mark"}}}}, "value": {mark}}}}}]}}}}}}"#
            )
        };
        let flush = r#"{"flush": {"ruleset": null}}"#;
        let whole = [rule("add", 1), flush.to_owned(), rule("add", 2), rule("insert", 3)];
        let found = read(&format!(r#"{{"nftables": [{}]}}"#, whole.join(",")));
        let text = "add rule t c meta mark set 3\nadd rule t c meta mark set 2";
        assert_eq!((&found.0, found.2.len()), (&read(text).0, 0));
    }

    proptest! {
        #[test]
        fn any_part_of_a_listing_is_read_or_refused(from in 0..6000usize, length in 0..40usize) {
            let mut text = include_str!("../tests/nft/ruleset.json").to_owned();
            let from = from.min(text.len());
            text.drain(from..(from + length).min(text.len()));
            read(&text);
        }
    }
}
