//! Reads CBQ, which Linux no longer has, as its replacement HTB.

use crate::device::{Class, Device, Discipline};
use crate::place::{Notice, Word, among};

/// Words of CBQ that take a value.
const VALUES: &str = "\
    bandwidth rate allot prio weight maxburst minburst avpkt cell mpu est ewma split defmap \
    maxidle minidle linklayer overhead";
/// Words of CBQ without a value.
const FLAGS: &str = "bounded isolated borrow sharing";

/// Replaces the CBQ disciplines and classes of a device by HTB, and adds a notice.
pub(crate) fn replaced(device: &mut Device, notices: &mut Vec<Notice>) {
    let old: Vec<Discipline> =
        device.seats.values().filter(|one| one.kind.is("cbq")).cloned().collect();
    for one in old {
        let line = given(&one.words).0.into_iter().find(|(key, _)| key.is("bandwidth"));
        let idle = given(&one.words).0;
        let mut ignored: Vec<_> =
            idle.iter().filter(|(key, _)| !key.is("bandwidth")).map(text).collect();
        let major = one.handle.unwrap_or(1);
        let mut is_used = false;
        for class in device.classes.values_mut() {
            if class.kind.is("cbq") && class.name.major == major {
                is_used |= !class.words.iter().any(|word| word.is("bounded"));
                ignored.extend(read(class, line.as_ref().map(|(_, value)| value)));
            }
        }
        ignored.extend(line.as_ref().filter(|_| !is_used).map(text));
        let also =
            if ignored.is_empty() { String::new() } else { format!(" ({})", ignored.join(", ")) };
        let message = format!(
            "`cbq`, which Linux no longer has, is read as `htb`: rates, borrowing and priorities \
             are the same; the estimate of idle time is ignored{also}"
        );
        notices.push(Notice { place: Some(one.line), message });
        let kind = Word { text: "htb".to_owned(), ..one.kind };
        device.put(Discipline { kind, words: Vec::new(), ..one });
    }
}

fn text((key, value): &(Word, Word)) -> String {
    format!("`{} {}`", key.text, value.text)
}

/// Returns the words with values, and the others.
fn given(words: &[Word]) -> (Vec<(Word, Word)>, Vec<Word>) {
    let (mut pairs, mut flags) = (Vec::new(), Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let takes_value = among(&word.text, VALUES);
        match if takes_value { rest.next() } else { None } {
            Some(value) => pairs.push((word.clone(), value.clone())),
            None => flags.push(word.clone()),
        }
    }
    (pairs, flags)
}

/// Words that a class of HTB has too.
const USED: &str = "rate bandwidth prio mpu overhead";

/// Makes a class of CBQ a class of HTB; returns the words that have no effect.
fn read(class: &mut Class, line: Option<&Word>) -> Vec<String> {
    let (pairs, flags) = given(&class.words);
    let find = |key: &str| pairs.iter().find(|(word, _)| word.is(key));
    let mut words = Vec::new();
    let mut push = |key: &str, value: &Word, text: String| {
        words.extend([Word::new(key, value.place), Word { text, ..*value }]);
    };
    if let Some((_, rate)) = find("rate") {
        push("rate", rate, rate.text.clone());
    }
    let is_bounded = flags.iter().any(|word| word.is("bounded"));
    if let Some(ceil) = find("bandwidth").map(|(_, value)| value).or(line).filter(|_| !is_bounded) {
        push("ceil", ceil, ceil.text.clone());
    }
    if let Some((_, rank)) = find("prio")
        && let Ok(number) = rank.text.parse::<u32>()
    {
        // Priorities of CBQ begin at 1, those of HTB at 0.
        push("prio", rank, number.saturating_sub(1).to_string());
    }
    for key in ["mpu", "overhead"] {
        if let Some((_, value)) = find(key) {
            push(key, value, value.text.clone());
        }
    }
    words.extend(flags.into_iter().filter(|word| !among(&word.text, FLAGS)));
    class.words = words;
    "htb".clone_into(&mut class.kind.text);
    pairs.iter().filter(|(key, _)| !among(&key.text, USED)).map(text).collect()
}
