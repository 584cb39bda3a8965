//! Programs that run another command: as another user, in a namespace, in a container, on another
//! host.

use crate::place::{Word, among};

/// Returns a location within another one.
pub(crate) fn located(outer: &str, inner: &str) -> String {
    if outer.is_empty() { inner.to_owned() } else { format!("{outer}/{inner}") }
}

/// The command that a wrapper runs.
#[derive(Debug)]
pub(crate) enum Inner {
    /// The words from this index on.
    Words(usize),
    /// `tc`, with the words from this index on: the program of a container's image.
    Tc(usize),
    /// A text for a shell.
    Text(String),
    /// The commands on standard input.
    Input,
    /// The commands in a file.
    File(Word),
}

/// Programs that run the words after their options here, and their options with a value.
const PLAIN: [(&str, &str); 16] = [
    ("sudo", "-u -g -h -p -C -U -r -t --user"),
    ("doas", "-u -C"),
    ("env", "-u --unset -C"),
    ("nice", "-n"),
    ("ionice", "-c -n -p"),
    ("nohup setsid busybox toybox unshare setpriv chrt retry eatmydata firejail", ""),
    ("time", "-f -o"),
    ("timeout", "-s -k"),
    ("stdbuf", "-i -o -e"),
    ("exec", "-a"),
    ("taskset", "-c"),
    ("flock", "-w -E"),
    ("runuser", "-u -g"),
    ("pkexec", "--user"),
    ("strace", "-e -o -s"),
    ("systemd-run", "-p -u --unit --uid"),
];
/// Programs that run a command in a container by `exec`, and their options with a value.
const CONTAINERS: &str = "\
    docker podman nerdctl kubectl oc crictl lxc incus docker-compose";
const OF_CONTAINERS: &str = "\
    -u --user -e --env -w --workdir -n --namespace -c --container --context --detach-keys \
    --env-file --index --cwd -f";
/// Options of `docker run` without a value; letters may be joined.
const RUN_FLAGS: &str = "\
    --detach --init --interactive --no-healthcheck --no-hosts --oom-kill-disable --privileged \
    --publish-all --quiet --read-only --replace --rm --tty";
const SHELLS: &str = "sh bash dash ash zsh ksh busybox-sh";
const OF_SSH: &str = "-i -l -p -o -F -J -b -c -D -E -e -I -L -m -O -Q -R -S";

/// Returns the command that the words run, and where.
pub(crate) fn unwrapped(words: &[Word], location: &str) -> (Inner, String) {
    let mut location = location.to_owned();
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let mut at = 0;
    loop {
        let name = text(at).rsplit('/').next().unwrap_or("");
        // Assignments before a command, as after `env`.
        if at > 0 && text(at).contains('=') && !name.starts_with('-') {
            at += 1;
            continue;
        }
        if let Some((_, valued)) = PLAIN.iter().find(|(known, _)| among(name, known)) {
            at += 1;
            at += options(words, at, valued);
            // The duration of `timeout`, the file of `flock`, the priority of `chrt`.
            at += usize::from(matches!(name, "timeout" | "flock" | "chrt" | "taskset"));
            continue;
        }
        if name == "ip" {
            let begin = at + 1 + options(words, at + 1, "");
            match (text(begin), text(begin + 1)) {
                ("netns" | "net" | "netn", "exec" | "e") | ("vrf", "exec") => {
                    location = located(&location, text(begin + 2));
                    at = begin + 3;
                    continue;
                }
                _ => return (Inner::Words(at), location),
            }
        }
        if let Some((place, count)) = entered(name, words, at) {
            if let Some(place) = place {
                location = located(&location, &place);
            }
            at += count;
            continue;
        }
        if matches!(name, "docker" | "podman" | "nerdctl")
            && let Some((image, entry)) = container_run(words, at + 1)
        {
            let options = &words[at..image];
            let shared = options.iter().find_map(|word| word.text.rsplit_once("container:"));
            let place = shared.map_or(text(image), |(_, container)| container);
            location = located(&location, place);
            at = image + 1;
            let object = matches!(text(at), "qdisc" | "class" | "filter" | "action");
            let of_image = text(image).contains("iproute2") || text(image).ends_with("/tc");
            if entry == "tc" || of_image && (object || text(at).starts_with('-')) {
                return (Inner::Tc(at), location);
            }
            continue;
        }
        if among(name, CONTAINERS) {
            let before = 1 + options(words, at + 1, OF_CONTAINERS);
            let exec = match (text(at + 1), text(at + 2)) {
                ("exec", _) => Some(2),
                ("compose", "exec") => Some(3),
                _ => (text(at + before) == "exec").then_some(before + 1),
            };
            if let Some(count) = exec {
                at += count;
                at += options(words, at, OF_CONTAINERS);
                location = located(&location, text(at));
                at += 1;
                // `kubectl exec POD -c CONTAINER -- COMMAND`
                at += options(words, at, OF_CONTAINERS);
                continue;
            }
        }
        if among(name, SHELLS) {
            return (of_shell(words, at), location);
        }
        if let Some((inner, place)) = of_text(name, words, at) {
            return (inner, if place.is_empty() { location } else { located(&location, place) });
        }
        return (Inner::Words(at.min(words.len().saturating_sub(1))), location);
    }
}

/// Returns the place that a program enters for a command, without one if it does not name any, and
/// the number of words before the command; `None` for another program. `at` is the index of the
/// program.
fn entered(name: &str, words: &[Word], at: usize) -> Option<(Option<String>, usize)> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let (place, count) = match name {
        "nsenter" => {
            let count = options(words, at + 1, "-t --target -S -G");
            let given: Vec<&str> =
                words[at + 1..at + 1 + count].iter().map(|w| w.text.as_str()).collect();
            (format!("nsenter {}", given.join(" ")), 1 + count)
        }
        "chroot" => return Some((None, 2)),
        "lxc-attach" => {
            let count = options(words, at + 1, "-n --name");
            let named = words[at + 1..at + 1 + count].windows(2).find(|pair| pair[0].is("-n"));
            (named.map_or("container", |pair| &pair[1].text).to_owned(), 1 + count)
        }
        "adb" if text(at + 1) == "shell" && words.len() > at + 3 => (name.to_owned(), 2),
        "machinectl" if text(at + 1) == "shell" => (text(at + 2).to_owned(), 3),
        // The prompt of Mininet, and a host.
        "mininet>" | "containernet>" => (text(at + 1).to_owned(), 2),
        _ => return None,
    };
    Some((Some(place), count))
}

/// Returns the text that a program gives to a shell, and where; `None` for another program. `at` is
/// the index of the program.
fn of_text<'w>(name: &str, words: &'w [Word], at: usize) -> Option<(Inner, &'w str)> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let rest = |from: usize| {
        let rest: Vec<&str> = words.iter().skip(from).map(|word| word.text.as_str()).collect();
        if rest.is_empty() { Inner::Input } else { Inner::Text(rest.join(" ")) }
    };
    let option = || {
        let given = words.iter().skip(at).position(|word| word.is("-c"));
        let command = given.and_then(|n| words.get(at + n + 1));
        command.map_or(Inner::Input, |word| Inner::Text(word.text.clone()))
    };
    match (name, text(at + 1)) {
        ("ssh" | "dropbear" | "dbclient", _) => {
            let begin = at + 1 + options(words, at + 1, OF_SSH);
            Some((rest(begin + 1), text(begin)))
        }
        ("su", _) => Some((option(), "")),
        ("vagrant", "ssh") => {
            Some((option(), if text(at + 2).starts_with('-') { text(at) } else { text(at + 2) }))
        }
        ("adb", "shell") => Some((rest(at + 2), text(at))),
        _ => None,
    }
}

/// Returns the command that a shell at this index runs.
fn of_shell(words: &[Word], at: usize) -> Inner {
    let count = options(words, at + 1, "-o");
    let given = &words[at + 1..at + 1 + count];
    let is_command = given.iter().any(|word| {
        !word.text.starts_with("--") && word.text.starts_with('-') && word.text.contains('c')
    });
    match words.get(at + 1 + count) {
        Some(word) if is_command => Inner::Text(word.text.clone()),
        Some(word) if !word.is("-s") => Inner::File(word.clone()),
        _ => Inner::Input,
    }
}

/// Returns the number of words that are options or their values, and of a closing `--`.
fn options(words: &[Word], from: usize, valued: &str) -> usize {
    let mut at = from;
    while let Some(word) = words.get(at) {
        if word.is("--") {
            return at + 1 - from;
        }
        if !word.text.starts_with('-') || word.text.len() < 2 {
            break;
        }
        at += if among(&word.text, valued) { 2 } else { 1 };
    }
    at.min(words.len()) - from
}

/// Returns the index of the image in `docker run OPTIONS IMAGE`, and the program of `--entrypoint`;
/// `None` for another command. `from` is the index behind the program.
fn container_run(words: &[Word], from: usize) -> Option<(usize, &str)> {
    let run = (from..words.len()).find(|&n| !words[n].text.starts_with('-'))?;
    if !words[run].is("run") {
        return None;
    }
    let (mut at, mut entry) = (run + 1, "");
    while let Some(option) = words.get(at).map(|word| word.text.as_str())
        && option.starts_with('-')
    {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let letters = name.trim_start_matches('-');
        let is_flag = among(name, RUN_FLAGS);
        let is_cluster = !name.starts_with("--") && letters.chars().all(|c| "ditqP".contains(c));
        let has_value = !(option.contains('=') || is_flag || is_cluster);
        if name == "--entrypoint" {
            entry = if has_value { words.get(at + 1)?.text.as_str() } else { value };
        }
        at += 1 + usize::from(has_value);
    }
    (at < words.len()).then(|| (at, entry.rsplit('/').next().unwrap_or("")))
}
