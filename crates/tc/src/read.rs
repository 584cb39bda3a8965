//! All texts as one reading.

use crate::place::{Fault, Place, Word};
use crate::reading::Reading;
use crate::script::{self, Script};
use crate::shown::{self, Printed};
use crate::{json, neighbours, nft, nft_json};
use std::collections::BTreeMap;

/// Returns the contents of texts as one reading. `texts` are names and contents, `given` values of
/// script variables by name, and outputs of commands by the text of the command. `chosen` names
/// devices to which classes belong whose device `tc` does not print.
pub fn read(
    texts: &[(String, Vec<u8>)],
    given: &BTreeMap<String, String>,
    chosen: &[String],
) -> Reading {
    let mut reading = Reading::default();
    let mut printed = Printed::new(chosen);
    let mut scripts = Vec::new();
    let contents: Vec<Option<String>> = texts.iter().map(|(_, bytes)| decoded(bytes)).collect();
    for (n, ((name, bytes), whole)) in texts.iter().zip(&contents).enumerate() {
        let start = Place { file: n as u32, line: 1, ..Place::default() };
        let text = whole.as_deref().unwrap_or_default();
        reading.names.push(name.clone());
        reading.lines.push(text.lines().map(str::to_owned).collect());
        if let Some(message) = neighbours::instead(name, bytes, text)
            .or_else(|| whole.is_none().then(|| "this file is not a text".to_owned()))
        {
            reading.problem(start, Fault::new(message));
            continue;
        }
        let is_dump = text.lines().any(shown::is_entry);
        let has_commands = text.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let changes =
                |word: &str| matches!(word, "add" | "replace" | "change" | "del" | "delete");
            words
                .windows(2)
                .any(|pair| matches!(pair[0], "qdisc" | "class" | "filter") && changes(pair[1]))
        });
        let numbered = || {
            let place = |n| Place { line: n as u32 + 1, ..start };
            text.lines().enumerate().map(move |(n, line)| (line.to_owned(), place(n)))
        };
        if nft_json::is_nft(text) {
            let unread = nft::file(&mut reading.firewall, numbered());
            script::tell_unread(&mut reading, unread);
        } else if json::is_json(text) {
            json::read(&mut reading, &mut printed, name, text, start);
        } else if is_dump && !has_commands {
            let words = numbered().map(|(line, place)| (place, words_of(&line, place)));
            let lines: Vec<_> = words.filter(|(_, words)| !words.is_empty()).collect();
            shown::read(&mut reading, &mut printed, name, &lines);
        } else if text.lines().any(|line| line.starts_with('*'))
            && text.contains("\nCOMMIT")
            && !has_commands
        {
            // A file of `iptables-save`.
            let unread = script::restore(&mut reading.firewall, numbered().collect());
            script::tell_unread(&mut reading, unread);
        } else if text.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words.as_slice(), ["table", .., "{"])
        }) && !has_commands
        {
            let unread = nft::file(&mut reading.firewall, numbered());
            script::tell_unread(&mut reading, unread);
        } else {
            if is_dump {
                let message = "the commands in this file are read, and the printed output of `tc` \
                               is ignored";
                reading.note(start, message);
            }
            scripts.push(Script { name, text, start });
        }
    }
    printed.end(&mut reading);
    script::read(&mut reading, &scripts, given);
    reading.tell_strays();
    let mut problems = std::mem::take(&mut reading.problems);
    reading.name_missing(&mut problems);
    reading.problems = problems;
    reading
}

fn words_of(line: &str, place: Place) -> Vec<Word> {
    let mut words = Vec::new();
    let mut column = 0;
    for part in line.split_inclusive(char::is_whitespace) {
        let text = part.trim_end();
        let length = part.chars().count() as u32;
        if !text.is_empty() {
            let end = column + text.chars().count() as u32;
            words.push(Word::new(text, Place { begin: column, end, ..place }));
        }
        column += length;
    }
    words
}

/// Returns the text of a file: UTF-8, UTF-16 with a byte order mark, or Latin-1. Line ends become
/// `\n`, and fixed spaces of web pages become spaces. `None` if it is not a text.
fn decoded(bytes: &[u8]) -> Option<String> {
    let wide = |order: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect()
    };
    let text: String = match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        },
    };
    let is_wide = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    if text.contains('\0') || is_wide && bytes.len() % 2 == 1 {
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Some(text.replace("\r\n", "\n").replace('\r', "\n").replace('\u{a0}', " "))
}
