//! Rules in commands of `iptables` and in the input of `iptables-restore` (iptables-extensions(8)).

use crate::filter::{End, Match, marked, network, port_range, protocol};
use crate::firewall::{Change, Firewall, HOOKS, Step, Verdict};
use crate::name::{Name, number};
use crate::place::{Fault, Place, Word, Words, among};

pub(crate) const PROGRAMS: [&str; 5] =
    ["iptables", "ip6tables", "ipt", "iptables-legacy", "iptables-nft"];
pub(crate) const RESTORES: [&str; 2] = ["iptables-restore", "ip6tables-restore"];
/// Priority of each table at a hook; the table with the lowest priority comes first.
const TABLES: [(&str, i32); 4] = [("raw", -300), ("mangle", -150), ("nat", 0), ("filter", 1)];
const TOS: [(&str, u32); 5] = [
    ("minimize-delay", 0x10),
    ("maximize-throughput", 0x08),
    ("maximize-reliability", 0x04),
    ("minimize-cost", 0x02),
    ("normal-service", 0),
];
/// Modules whose tests are supported.
const MODULES: &str = "tcp udp multiport dscp tos mark length comment";
/// Options of tests that take one value; `nft` has sets of such values.
const SINGLE: &str = "-p --protocol --proto --length --mark --dscp --dscp-class --tos";
/// Targets that are not names of chains, and are not supported.
const OTHERS: &str = "\
    CONNMARK CONNSECMARK CT DNAT DROP IDLETIMER IMQ LOG MASQUERADE NETMAP NFLOG NFQUEUE NOTRACK \
    QUEUE RATEEST REDIRECT REJECT SET SNAT TCPMSS TCPOPTSTRIP TEE TPROXY TRACE TTL ULOG";

#[derive(Clone, Copy, PartialEq)]
enum Act {
    Append,
    Insert,
    Delete,
    Flush,
    Other,
}

fn act(word: &str) -> Option<Act> {
    Some(match word {
        "-A" | "--append" => Act::Append,
        "-I" | "--insert" => Act::Insert,
        "-D" | "--delete" => Act::Delete,
        "-F" | "--flush" => Act::Flush,
        "-N" | "-X" | "-P" | "-Z" | "-L" | "-S" | "-C" | "-E" | "-R" | "--new-chain"
        | "--delete-chain" | "--policy" | "--list" | "--check" | "--zero" => Act::Other,
        _ => return None,
    })
}

/// Applies a command, given by its words after the name; `table` is the table without `-t`.
pub(crate) fn command(
    firewall: &mut Firewall,
    words: &[Word],
    line: Place,
    table: &str,
) -> Result<(), Fault> {
    let mut given = Words::new(words);
    let mut table = table.to_owned();
    let (mut rest, mut asked, mut chain, mut at) = (Vec::new(), None, String::new(), None);
    while let Some(word) = given.next() {
        match (word.text.as_str(), act(&word.text)) {
            ("-t" | "--table", _) => table.clone_from(&given.value(word)?.text),
            (_, Some(act)) if asked.is_none() => {
                asked = Some(act);
                if let Some(name) = given.next_if(|word| !word.starts_with('-')) {
                    chain.clone_from(&name.text);
                }
                let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
                if act == Act::Insert
                    && let Some(index) = given.next_if(is_number)
                {
                    at = Some(number(index)? as usize);
                }
            }
            ("-w" | "--wait", _) => {}
            _ => rest.push(word.clone()),
        }
    }
    let name = format!("{table}/{chain}");
    match asked {
        Some(act @ (Act::Append | Act::Insert)) => {
            let step = step(&rest, &table, line)?;
            if let Some(hook) = HOOKS.iter().position(|hook| chain.to_lowercase() == *hook)
                && chain.to_uppercase() == chain
            {
                let order = TABLES.iter().find(|(known, _)| *known == table);
                let order = order.map_or(0, |(_, order)| *order);
                firewall.hooks.entry(name.clone()).or_insert((hook, order));
            }
            let steps = firewall.chains.entry(name).or_default();
            let index = if act == Act::Append { steps.len() } else { at.unwrap_or(1) };
            let index = if act == Act::Append { index } else { index.saturating_sub(1) };
            steps.insert(index.min(steps.len()), step);
        }
        Some(Act::Delete) => {
            let mut step = step(&rest, &table, line)?;
            if let Some(steps) = firewall.chains.get_mut(&name) {
                let same = steps.iter().position(|one| {
                    step.line = one.line;
                    *one == step
                });
                if let Some(n) = same {
                    steps.remove(n);
                }
            }
        }
        Some(Act::Flush) => {
            let lead = format!("{table}/");
            for (known, steps) in &mut firewall.chains {
                if *known == name || chain.is_empty() && known.starts_with(&lead) {
                    steps.clear();
                }
            }
        }
        Some(Act::Other) | None => {}
    }
    Ok(())
}

/// Returns a rule, whose targets may be several.
pub(crate) fn step(words: &[Word], table: &str, line: Place) -> Result<Step, Fault> {
    let mut given = Words::new(words);
    let mut step = Step { line, ..Step::default() };
    while let Some(word) = given.next() {
        match word.text.as_str() {
            "!" => return Err(word.fault("a negated test (`!`) is not supported")),
            "-o" | "--out-interface" => step.device = Some(given.value(word)?.text.clone()),
            "-i" | "--in-interface" => step.input = Some(given.value(word)?.text.clone()),
            "-j" | "--jump" | "-g" | "--goto" => {
                let goal = given.value(word)?;
                if let Some((changes, verdict)) = target(goal, &mut given)? {
                    step.changes.extend(changes);
                    if verdict != Verdict::Continue {
                        step.verdict = verdict;
                    }
                } else {
                    let chain = format!("{table}/{}", goal.text);
                    let goes = matches!(word.text.as_str(), "-g" | "--goto");
                    step.verdict = if goes { Verdict::Goto(chain) } else { Verdict::Jump(chain) };
                }
            }
            _ => test(word, &mut given, table.starts_with("nft:"), &mut step.tests)?,
        }
    }
    Ok(step)
}

/// Reads the tests of an option; commas separate alternatives. `has_sets` allows them everywhere.
fn test(
    word: &Word,
    given: &mut Words<'_>,
    has_sets: bool,
    tests: &mut Vec<Vec<Match>>,
) -> Result<(), Fault> {
    let read: fn(&Word) -> Result<Match, Fault> = match word.text.as_str() {
        "--sport" | "--source-port" | "--sports" | "--source-ports" => {
            |part| ports(part, End::Source)
        }
        "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
            |part| ports(part, End::Destination)
        }
        "-p" | "--protocol" | "--proto" => protocol,
        "-s" | "--source" | "--src" => |part| network(part, 12),
        "-d" | "--destination" | "--dst" => |part| network(part, 16),
        "--length" => length,
        "--mark" => marked,
        "--dscp" | "--dscp-class" => |part| code_point(part).map(dscp),
        "--tos" => |part| tos(part).map(dscp),
        "--comment" => return given.value(word).map(|_| ()),
        "-m" | "--match" => {
            let module = given.value(word)?;
            let why = || module.fault(format!("`-m {}` is not supported", module.text));
            return among(&module.text, MODULES).then_some(()).ok_or_else(why);
        }
        text => return Err(word.fault(format!("`{text}` is not supported"))),
    };
    let value = given.value(word)?;
    if !has_sets && among(&word.text, SINGLE) && value.text.contains(',') {
        return Err(value.fault(format!("`{}` takes one value", word.text)));
    }
    if !(word.text.starts_with("-p") || word.text.starts_with("--proto"))
        || !matches!(value.text.as_str(), "all" | "0")
    {
        let parts = value.text.split(',').map(|part| read(&Word::new(part, value.place)));
        tests.push(parts.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Returns the test of the length of a packet, or of a range of lengths.
fn length(word: &Word) -> Result<Match, Fault> {
    let (first, last) = word.text.split_once(':').unwrap_or((&word.text, &word.text));
    let end = |text: &str, open: &str| {
        let number = number(&Word::new(if text.is_empty() { open } else { text }, word.place))?;
        let why = || word.fault(format!("`{}` is not a length in bytes", word.text));
        u16::try_from(number).map_err(|_| why())
    };
    Ok(Match::Length(end(first, "0")?, end(last, "65535")?))
}

/// Returns the changes and the verdict of a target; `None` for a chain.
fn target(goal: &Word, given: &mut Words<'_>) -> Result<Option<(Vec<Change>, Verdict)>, Fault> {
    let change = |change| Ok(Some((vec![change], Verdict::Continue)));
    match goal.text.as_str() {
        "ACCEPT" => Ok(Some((Vec::new(), Verdict::Accept))),
        "RETURN" => Ok(Some((Vec::new(), Verdict::Return))),
        "MARK" => {
            let key = given.value(goal)?;
            let Match::Mark { value, mask } = marked(given.value(key)?)? else {
                return Ok(None);
            };
            match key.text.as_str() {
                "--set-mark" => change(Change::Mark { value, mask: value | mask }),
                "--set-xmark" if value & !mask == 0 => change(Change::Mark { value, mask }),
                "--or-mark" => change(Change::Mark { value, mask: value }),
                "--and-mark" => change(Change::Mark { value: 0, mask: !value }),
                text => Err(key.fault(format!("`{text}` is not supported"))),
            }
        }
        "DSCP" => {
            let key = given.value(goal)?;
            change(Change::Dscp(code_point(given.value(key)?)?))
        }
        "TOS" => {
            let key = given.value(goal)?;
            if !key.is("--set-tos") {
                return Err(key.fault(format!("`{}` is not supported", key.text)));
            }
            change(Change::Dscp(tos(given.value(key)?)?))
        }
        "CLASSIFY" => {
            let key = given.value(goal)?;
            change(Change::Class(Name::of(given.value(key)?)?))
        }
        text if among(text, OTHERS) => {
            Err(goal.fault(format!("the target `{text}` is not supported")))
        }
        _ => Ok(None),
    }
}

/// Returns the test of a port or of a range of ports.
fn ports(word: &Word, end: End) -> Result<Match, Fault> {
    let (first, last) = word.text.split_once(':').unwrap_or((&word.text, &word.text));
    let part =
        |text: &str, open: &str| Word::new(if text.is_empty() { open } else { text }, word.place);
    let is_range = word.text.contains(':');
    let (low, high) = if is_range { ("0", "65535") } else { ("", "") };
    port_range(word, end, &part(first, low), &part(last, high))
}

/// Returns the test of a differentiated services code point.
fn dscp(value: u8) -> Match {
    Match::Ip { value: u32::from(value) << 18, mask: 0xfc << 16, offset: 0 }
}

/// Reads a code point (DSCP) by name or number.
fn code_point(word: &Word) -> Result<u8, Fault> {
    let name = if word.text.eq_ignore_ascii_case("be") { "cs0" } else { &word.text };
    let named = sojourn_queue::classes::filter::code_point(name);
    let number = named.map_or_else(|| number(word), |dscp| Ok(dscp.into()))?;
    u8::try_from(number)
        .ok()
        .filter(|dscp| *dscp < 64)
        .ok_or_else(|| word.fault(format!("`{}` is not a code point", word.text)))
}

/// Reads a value of the TOS field as a code point.
fn tos(word: &Word) -> Result<u8, Fault> {
    let text = word.text.split('/').next().unwrap_or("");
    let named = TOS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    let value =
        named.map_or_else(|| number(&Word::new(text, word.place)), |(_, value)| Ok(*value))?;
    u8::try_from(value >> 2).map_err(|_| word.fault(format!("`{}` is above 255", word.text)))
}
