//! Shell scripts, lists of commands and files for `tc -batch`.

use crate::command::{Command, Verb, object_of, run};
use crate::iptables;
use crate::nft;
use crate::place::{Fault, Place, Word, among};
use crate::reading::Reading;
use crate::shell::{self, Files, Host, Run, Shell, WHICH_IS, looks_like_tc, parse};
use crate::values::table;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of lines that are reported as no commands of a shell.
const FAULTS: usize = 100;
/// Largest number of lines of the firewall that are reported one by one.
const TOLD: usize = 20;
/// Programs whose arguments are printed and not run.
const SPEAKERS: &str = "echo printf which type logger grep egrep man alias log sed";
/// Programs whose output is known to be empty here.
const QUIET: &str = "\
    ip modprobe insmod ethtool ifconfig sleep logger tee rm mkdir sysctl brctl rmmod touch";

/// An effect of a script.
enum Event {
    Tc { words: Vec<Word>, line: Place, location: String, missing: Vec<String> },
    Firewall { name: String, words: Vec<Word>, line: Place, input: Option<Vec<(String, Place)>> },
    Length { device: String, packets: u32 },
    Problem(Place, Fault),
    Notice(Place, String),
}

/// Collects what scripts ask for.
#[derive(Default)]
pub(crate) struct Collector {
    events: Vec<Event>,
    /// Lines whose text with `tc` is only printed.
    spoken: Vec<Place>,
    /// Lines in which an unknown program precedes `tc`, by this program.
    assumed: BTreeMap<String, Vec<Place>>,
}

impl Host for Collector {
    fn program(&mut self, run: Run, files: Files<'_>) -> bool {
        let line = run.line;
        let name = run.words[0].text.rsplit('/').next().unwrap_or("").to_owned();
        let whole: Vec<&str> = run.words.iter().map(|word| word.text.as_str()).collect();
        if among(&name, SPEAKERS) {
            if looks_like_tc(&whole.join(" ")) {
                self.spoken.push(line);
            }
            return name == "logger";
        }
        if let Some(from) = of_tc(&run.words) {
            // The words before `tc`; a line of a batch file has none.
            let before = from.saturating_sub(1);
            if before > 0 && !run.words[..before].iter().all(|word| is_prompt(&word.text)) {
                self.assumed.entry(whole[..before].join(" ")).or_default().push(line);
            }
            return self.tc(run, from, files);
        }
        if iptables::PROGRAMS.contains(&name.as_str())
            || iptables::RESTORES.contains(&name.as_str())
            || matches!(name.as_str(), "nft" | "ebtables" | "ipset")
        {
            self.firewall(name, run, files);
            return true;
        }
        let program = match whole.as_slice() {
            ["table", .., "{"] => "nft",
            ["*mangle" | "*filter" | "*nat" | "*raw"] => "iptables-save",
            _ => "",
        };
        if !program.is_empty() {
            let message = format!(
                "rules of `{program}` among commands are not read: give them in a file of their own"
            );
            self.events.push(Event::Problem(line, run.words[0].fault(message)));
            return true;
        }
        if let Some(Event::Tc { words, .. }) = self.events.last_mut()
            && continues(words, &run.words[0].text)
        {
            words.extend(run.words);
            let message = "this line is read as the rest of the line before it".to_owned();
            let at = self.events.len() - 1;
            self.events.insert(at, Event::Notice(line, message));
            return true;
        }
        if let Some(word) = run.words.iter().skip(1).find(|word| looks_like_tc(&word.text)) {
            let message = format!(
                "the text with `tc` that `{name}` gets is not read: write the commands one by one, \
                 or give what they print with TC=echo"
            );
            self.events.push(Event::Problem(line, word.fault(message)));
        } else if looks_like_tc(&whole.join(" ")) {
            let message = format!("`{name}` is not known to run `tc`, so this line is not read");
            self.events.push(Event::Problem(line, run.words[0].fault(message)));
        }
        let is_called = |word: &Word| word.text.split_whitespace().next() == Some("tc");
        if name == "xargs" && run.words.iter().any(is_called) {
            let message = "the commands that `xargs` makes are not read: write them one by one";
            self.events.push(Event::Problem(line, run.words[0].fault(message)));
        }
        self.length(&name, &run);
        among(&name, QUIET)
    }

    fn doubt(&mut self, line: Place, message: String) {
        let message = format!(
            "{message}, so this command is taken as failed: if the queue depends on it, give what the \
             script prints with TC=echo"
        );
        self.events.push(Event::Notice(line, message));
    }

    fn printed(&mut self, line: Place, text: &str) {
        if looks_like_tc(text) {
            self.spoken.push(line);
        }
    }
}

/// Whether a word may precede a command in a copy of a terminal, or in a log.
fn is_prompt(word: &str) -> bool {
    let number = word.trim_end_matches(['.', ')']);
    word.ends_with(['#', '$', '%', '>', ':', ']'])
        || matches!(word, "+" | "++" | "RUN" | "-")
        || number.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a word may continue the last command, whose line was broken when it was pasted.
fn continues(words: &[Word], next: &str) -> bool {
    let known = words.iter().find_map(|word| table(&word.text));
    known.is_some_and(|table| {
        table.words.iter().any(|word| word.spellings().any(|spelling| spelling == next))
    })
}

/// Returns the index of the first word after `tc`, which may follow other words; `None` for other
/// commands.
fn of_tc(words: &[Word]) -> Option<usize> {
    for (at, word) in words.iter().enumerate() {
        // A makefile's command may begin with signs.
        let signs: &[char] = if at == 0 { &['@', '-', '+'] } else { &[] };
        if word.text.trim_start_matches(signs).rsplit('/').next() == Some("tc") {
            let rest = &words[at + 1..];
            let plain = without_options(rest);
            let texts: Vec<&str> = plain.iter().map(|word| word.text.as_str()).collect();
            if at == 0 || object_of(&texts).is_some() || batch(rest).is_some() {
                return Some(at + 1);
            }
        }
    }
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let is_batch_line = matches!(texts[0], "qdisc" | "class" | "filter") && texts.len() > 1;
    (is_batch_line && object_of(&texts).is_some()).then_some(0)
}

fn without_options(words: &[Word]) -> &[Word] {
    let mut rest = words;
    while let Some((first, others)) = rest.split_first().filter(|(w, _)| w.text.starts_with('-')) {
        let takes_value = matches!(first.text.as_str(), "-n" | "-netns" | "-net" | "-nm");
        rest = if takes_value { others.get(1..).unwrap_or(&[]) } else { others };
    }
    rest
}

/// Returns the file of `tc -batch`; empty for standard input.
fn batch(words: &[Word]) -> Option<String> {
    let is_option = |word: &Word| {
        word.text.len() > 1 && word.text.starts_with("-b") && "-batch".starts_with(&*word.text)
    };
    let at = words.iter().position(is_option)?;
    Some(words.get(at + 1).map_or(String::new(), |word| word.text.clone()))
}

impl Collector {
    fn tc(&mut self, run: Run, from: usize, files: Files<'_>) -> bool {
        let line = run.line;
        let words = run.words[from..].to_vec();
        if let Some(name) = batch(&words) {
            let text = match name.as_str() {
                "" | "-" | "/dev/stdin" => run.stdin.map(|text| (text, None)),
                name => files(name),
            };
            match text {
                // A given file is read by itself.
                Some((_, Some(_))) => {}
                Some((text, None)) => {
                    for line_of in text.lines() {
                        let words = split(line_of, Place { begin: 0, end: 0, ..line });
                        if !words.is_empty() {
                            let location = run.location.clone();
                            self.events.push(Event::Tc {
                                words,
                                line,
                                location,
                                missing: Vec::new(),
                            });
                        }
                    }
                }
                None => {
                    let why = format!("`{name}` was not given: add it by --tc");
                    self.events
                        .push(Event::Problem(line, Word::new(name, Place::default()).fault(why)));
                }
            }
            return true;
        }
        let texts: Vec<&str> = without_options(&words).iter().map(|w| w.text.as_str()).collect();
        let prints = object_of(&texts).is_some_and(|(_, verb)| verb == Verb::Print);
        if let Some(what) = run.origins.unknown.first()
            && !prints
        {
            self.events.push(Event::Problem(line, Fault::new(unknown(what))));
            return true;
        }
        let missing = run.origins.missing;
        self.events.push(Event::Tc { words, line, location: run.location, missing });
        !prints
    }

    fn firewall(&mut self, name: String, run: Run, files: Files<'_>) {
        let words = run.words[1..].to_vec();
        let line = run.line;
        if let Some(what) = run.origins.unknown.first() {
            let message = format!("this line of the firewall is ignored: {}", unknown(what));
            self.events.push(Event::Notice(line, message));
            return;
        }
        let at_line = |text: String| text.lines().map(|one| (one.to_owned(), line)).collect();
        let mut input = None;
        if iptables::RESTORES.contains(&name.as_str()) {
            input = run.stdin.map(at_line);
        } else if name == "nft"
            && let Some(at) = words.iter().position(|w| w.is("-f") || w.is("--file"))
        {
            let file = words.get(at + 1).map_or("-", |word| word.text.as_str());
            let text = if file == "-" { run.stdin } else { files(file).map(|(text, _)| text) };
            input = text.map(at_line);
            if input.is_none() {
                let message = format!("`{file}` was not given: add it by --tc if it sets marks");
                self.events.push(Event::Notice(line, message));
                return;
            }
        }
        self.events.push(Event::Firewall { name, words, line, input });
    }

    /// Notes the queue length of a device that `ip link set` or `ifconfig` gives.
    fn length(&mut self, name: &str, run: &Run) {
        let words: Vec<&str> =
            run.words.iter().skip(1).map(|w| w.text.as_str()).filter(|w| *w != "dev").collect();
        let (device, rest) = match (name, words.as_slice()) {
            ("ip", ["link" | "l", "set", device, rest @ ..])
            | ("ifconfig", [device, rest @ ..]) => (*device, rest),
            _ => return,
        };
        let device = crate::device::placed(&run.location, device);
        for pair in rest.windows(2) {
            let is_length = matches!(pair[0], "txqueuelen" | "txqlen" | "qlen");
            if is_length && let Ok(packets) = pair[1].parse() {
                self.events.push(Event::Length { device: device.clone(), packets });
            }
        }
    }
}

fn unknown(what: &str) -> String {
    let plain = |command: &str| command.trim_start_matches("$(").trim_end_matches(')').to_owned();
    let (subject, key) = if let Some((name, command)) = what.split_once(WHICH_IS) {
        let subject = format!("the output of `{}` in the variable `{name}`", plain(command));
        (subject, name.to_owned())
    } else {
        (format!("the output of `{}`", plain(what)), plain(what))
    };
    let is_name = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let option =
        if is_name { format!("--var {key}=VALUE") } else { format!("--var '{key}=VALUE'") };
    format!("{subject} is unknown: set it by {option}")
}

/// Splits a line into words, as `tc -batch` does. A `#` begins a comment.
pub(crate) fn split(line: &str, place: Place) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut quote = None;
    let mut is_open = false;
    for (column, c) in line.chars().enumerate() {
        let column = column as u32;
        match (quote, c) {
            (Some(mark), c) if mark == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                if !is_open {
                    words.push(Word::new("", Place { begin: column, end: column, ..place }));
                    is_open = true;
                }
            }
            (None, c) if c.is_whitespace() => is_open = false,
            (None, '#') if !is_open => break,
            (_, c) => {
                if !is_open {
                    words.push(Word::new("", Place { begin: column, end: column, ..place }));
                    is_open = true;
                }
                if let Some(word) = words.last_mut() {
                    word.text.push(c);
                    word.place.end = column + 1;
                }
            }
        }
    }
    words
}

/// Returns the commands in a unit of systemd (`ExecStart=`) or in `/etc/network/interfaces` (`up`),
/// each in its line; other texts are returned as they are.
fn commands_of(text: &str) -> String {
    let is_unit = text.lines().any(|line| line.trim() == "[Service]");
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("iface "));
    if !is_unit && names.count() == 0 {
        return without_prose(&without_prompts(text));
    }
    let (mut device, mut goes_on) = (String::new(), false);
    let mut found = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("iface ") {
            rest.split_whitespace().next().unwrap_or("").clone_into(&mut device);
        }
        let lead = if is_unit {
            let (key, _) = trimmed.split_once('=').unwrap_or((trimmed, ""));
            matches!(key, "ExecStart" | "ExecStartPre" | "ExecStartPost").then(|| key.len() + 1)
        } else {
            let key = trimmed.split_whitespace().next().unwrap_or("");
            matches!(key, "up" | "post-up" | "pre-up").then_some(key.len())
        };
        if let Some(lead) = lead.or(goes_on.then_some(0)) {
            // A unit's command may begin with signs, such as `-` if it may fail.
            let at = line.len() - trimmed.len() + lead;
            let signs =
                line[at..].len() - line[at..].trim_start_matches(['-', '@', '+', '!']).len();
            let signs = if is_unit && !goes_on { signs } else { 0 };
            found.push_str(&" ".repeat(line[..at + signs].chars().count()));
            let command = &line[at + signs..];
            found.push_str(&command.replace("${IFACE}", &device).replace("$IFACE", &device));
            goes_on = line.ends_with('\\');
        }
        found.push('\n');
    }
    found
}

/// Returns the text without lines of prose between commands, which are no comments: those that
/// begin with a capital letter and have at least four words, no sign of a shell, and no name of a
/// function.
fn without_prose(text: &str) -> String {
    let is_function = |name: &str| {
        let ways = [format!("{name}()"), format!("{name} ()"), format!("function {name}")];
        ways.iter().any(|way| text.contains(way.as_str()))
    };
    let is_prose = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let begins = |c: char| c.is_ascii_uppercase();
        words.len() > 3
            && words[0].starts_with(begins)
            && words[0].chars().skip(1).all(|c| c.is_ascii_lowercase() || matches!(c, '\'' | ','))
            && !line.contains(['=', '$', ';', '|', '&', '{', '}', '<', '>', '\\'])
            && !looks_like_tc(line)
            && !is_function(words[0])
    };
    let kept = |line: &str| if is_prose(line) { String::new() } else { line.to_owned() };
    text.lines().map(kept).collect::<Vec<_>>().join("\n")
}

/// Returns the lines of a text without a terminal's prompts, if it is a copy of a session: then all
/// commands follow a prompt, and lines with `#` are prompts and no comments.
fn without_prompts(text: &str) -> String {
    let is_command = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "sudo");
        let first = words.next().unwrap_or("");
        let name = first.rsplit('/').next().unwrap_or("");
        let name = name.trim_start_matches(['$', '{']).trim_end_matches('}');
        name.eq_ignore_ascii_case("tc")
            || matches!(first, "qdisc" | "class" | "filter")
                && words
                    .next()
                    .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let behind_prompt = |line: &str| -> Option<usize> {
        let trimmed = line.trim_start();
        let begin = line.len() - trimmed.len();
        let (first, rest) = match trimmed.split_once(char::is_whitespace) {
            Some((first, rest)) => (first, rest),
            None => (trimmed, ""),
        };
        let is_sign = first.ends_with(['#', '$', '%', '>']) || first == "+" || first == "++";
        if is_sign && (is_command(rest) || rest.starts_with('$') || is_assignment(rest)) {
            return Some(begin + first.len());
        }
        // A prompt with a blank, such as `[root@host ~]# tc ...`.
        if let Some(at) = trimmed.find("# ").or_else(|| trimmed.find("$ ")) {
            let words = trimmed[..at].split_whitespace().count();
            if words <= 2 && trimmed.starts_with('[') && is_command(&trimmed[at + 2..]) {
                return Some(begin + at + 1);
            }
        }
        // A prompt without a blank, such as `#tc ...`.
        trimmed
            .strip_prefix(['#', '$', '%', '>'])
            .filter(|rest| is_command(rest))
            .map(|_| begin + 1)
    };
    let lines: Vec<&str> = text.lines().collect();
    let has_plain = lines.iter().any(|line| is_command(line));
    if has_plain || !lines.iter().any(|line| behind_prompt(line).is_some()) {
        return text.to_owned();
    }
    let clean = |line: &&str| match behind_prompt(line) {
        Some(at) => format!("{}{}", " ".repeat(line[..at].chars().count()), &line[at..]),
        None => (*line).to_owned(),
    };
    lines.iter().map(clean).collect::<Vec<_>>().join("\n")
}

fn is_assignment(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or("");
    text.contains('=')
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A script: the name and the text of its file, and the place of its first line.
pub(crate) struct Script<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub start: Place,
}

/// Reads scripts, one after another, into the devices of a reading.
pub(crate) fn read(
    reading: &mut Reading,
    scripts: &[Script<'_>],
    given: &BTreeMap<String, String>,
) {
    let mut collector = Collector::default();
    let mut shell = Shell::new(&mut collector, given);
    let short = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    for script in scripts {
        let source = (script.text.to_owned(), script.start);
        shell.sources.insert(short(script.name), source);
    }
    let mut parsed = Vec::new();
    let mut problems = Vec::new();
    for script in scripts {
        let commands = parsed_script(&commands_of(script.text), script.start, &mut problems);
        if !shell.read.contains(&short(script.name))
            && let Err(message) = shell.run(&commands, script.start)
        {
            let line = Place { line: shell.line, ..script.start };
            problems.push((line, Fault::new(message)));
        }
        parsed.push((script.start, commands));
    }
    let idle = not_run(&parsed, &shell);
    reading.asked.extend(shell.asked().iter().cloned());
    reading.absent.extend(std::mem::take(&mut shell.absent));
    drop(shell);
    for (place, fault) in problems {
        reading.problem(place, fault);
    }
    told(reading, idle, "in branches or functions that do not run");
    for (program, lines) in std::mem::take(&mut collector.assumed) {
        told(reading, lines, &format!("assumed to be run by `{program}` here"));
    }
    let mut spoken = std::mem::take(&mut collector.spoken);
    // A wrapper may print a command before it runs it.
    let ran = |event: &Event| match event {
        Event::Tc { line, .. } => Some((line.file, line.line)),
        _ => None,
    };
    let ran: BTreeSet<_> = collector.events.iter().filter_map(ran).collect();
    spoken.retain(|place| !ran.contains(&(place.file, place.line)));
    told(reading, spoken, "only printed");
    apply(reading, collector.events);
    let absent = reading.absent.clone();
    for (name, place) in absent {
        let message =
            format!("the script reads `{name}`, which was not given: add it by --tc if it matters");
        reading.note(place, message);
    }
}

/// Adds a notice on lines with `tc` that are not read because they are not run.
fn told(reading: &mut Reading, mut lines: Vec<Place>, what: &str) {
    lines.sort();
    lines.dedup_by_key(|place| (place.file, place.line));
    let Some(first) = lines.first().copied() else { return };
    let numbers: Vec<String> = lines.iter().take(8).map(|place| place.line.to_string()).collect();
    let more =
        if lines.len() > 8 { format!(" and {} more", lines.len() - 8) } else { String::new() };
    let (lead, verb) = if lines.len() == 1 { ("line", "is") } else { ("lines", "are") };
    let numbers = numbers.join(", ");
    reading.note(first.whole(), format!("{lead} {numbers}{more} with `tc` {verb} {what}"));
}

/// Returns the parsed script; a line that is no command of a shell is reported and skipped.
fn parsed_script(text: &str, start: Place, problems: &mut Vec<(Place, Fault)>) -> shell::Script {
    let mut lines: Vec<&str> = text.lines().collect();
    for _ in 0..FAULTS {
        let text = lines.join("\n");
        let why = match parse(&text, start) {
            Ok(script) => return script,
            Err(why) => why,
        };
        let mut number =
            (why.line.saturating_sub(start.line) as usize).min(lines.len().saturating_sub(1));
        while number > 0 && lines[number].trim().is_empty() {
            number -= 1;
        }
        if lines.is_empty() {
            break;
        }
        let place = Place { line: start.line + number as u32, ..start };
        let message = format!("this is not a shell command: {}", why.message);
        problems.push((place.whole(), Fault::new(message)));
        if lines[number].trim().is_empty() {
            break;
        }
        lines[number] = "";
    }
    shell::Script::default()
}

/// Returns the lines with commands of `tc` that change queues and that were not run.
fn not_run<H: Host>(parsed: &[(Place, shell::Script)], shell: &Shell<'_, H>) -> Vec<Place> {
    let mut found = Vec::new();
    for (start, script) in parsed {
        let ran = |line: u32| shell.ran.contains(&(start.file, line));
        let idle = script.simple.iter().filter(|(line, text)| !ran(*line) && looks_like_tc(text));
        found.extend(idle.map(|(line, _)| Place { line: *line, ..start.whole() }));
    }
    found
}

/// Applies what scripts asked for.
fn apply(reading: &mut Reading, events: Vec<Event>) {
    let mut unread: Vec<(Place, Fault, String)> = Vec::new();
    for event in events {
        match event {
            Event::Problem(line, fault) => reading.problem(line, fault),
            Event::Notice(line, message) => reading.note(line, message),
            Event::Length { device, packets } => reading.device(&device).length = Some(packets),
            Event::Tc { words, line, location, missing } => {
                let before = reading.problems.len();
                run(reading, Command { words: &words, line, location });
                if !missing.is_empty() {
                    if reading.problems.len() == before {
                        let names: Vec<_> = missing.iter().map(|n| format!("`{n}`")).collect();
                        let message =
                            format!("no value for {}: read as an empty text", names.join(", "));
                        reading.note(line, message);
                    }
                    reading.missing.insert((line.file, line.line), missing);
                }
            }
            Event::Firewall { name, words, line, input } => {
                let firewall = &mut reading.firewall;
                let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                let result = match (name.as_str(), input) {
                    ("iptables-restore", Some(lines)) => {
                        unread.extend(restore(firewall, lines));
                        Ok(())
                    }
                    ("nft", Some(lines)) => {
                        unread.extend(nft::file(firewall, lines.into_iter()));
                        Ok(())
                    }
                    ("nft", None) => nft::command(firewall, &words, line),
                    // Packets here are IPv4.
                    (
                        "ip6tables" | "ip6tables-restore" | "iptables-restore" | "ebtables"
                        | "ipset",
                        _,
                    ) => Ok(()),
                    _ => iptables::command(firewall, &words, line, "filter"),
                };
                if let Err(fault) = result {
                    unread.push((line, fault, text.join(" ")));
                }
            }
        }
    }
    tell_unread(reading, unread);
}

/// Applies the input of `iptables-restore`; returns the lines that are not supported.
pub(crate) fn restore(
    firewall: &mut crate::firewall::Firewall,
    lines: Vec<(String, Place)>,
) -> Vec<(Place, Fault, String)> {
    let (mut table, mut unread) = ("filter".to_owned(), Vec::new());
    for (line, place) in lines {
        if let Some(name) = line.strip_prefix('*') {
            name.trim().clone_into(&mut table);
        } else if line.starts_with('-') {
            let words = split(&line, place);
            if let Err(fault) = iptables::command(firewall, &words, place, &table) {
                unread.push((place, fault, line));
            }
        }
    }
    unread
}

/// Options that set a mark, a class or a code point.
const SETTERS: &str = "\
    --set-mark --set-xmark --or-mark --set-class --set-dscp --set-dscp-class";

/// Adds notices on lines of the firewall that are not supported.
pub(crate) fn tell_unread(reading: &mut Reading, unread: Vec<(Place, Fault, String)>) {
    let count = unread.len();
    for (n, (place, fault, text)) in unread.into_iter().enumerate() {
        if n == TOLD {
            let message = format!("{} more lines of the firewall are ignored", count - TOLD);
            return reading.note(place, message);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut marks: Vec<&str> = words
            .windows(2)
            .filter(|pair| among(pair[0], SETTERS) || pair[0] == "set" && !pair[1].is_empty())
            .map(|pair| pair[1])
            .collect();
        marks.dedup();
        let sets = if marks.is_empty() {
            String::new()
        } else {
            format!("; give the flows this value ({}) by `mark` or `dscp`", marks.join(", "))
        };
        let message = format!("this line of the firewall is ignored: {}{sets}", fault.message);
        reading.note(place, message);
    }
}
