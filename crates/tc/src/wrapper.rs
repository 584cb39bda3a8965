//! Programs that run another command: as another user, in a namespace, in a container, on another
//! host.

use crate::place::Word;

/// Returns a location within another one.
pub(crate) fn located(outer: &str, inner: &str) -> String {
    if outer.is_empty() { inner.to_owned() } else { format!("{outer}/{inner}") }
}

/// The command that a wrapper runs.
#[derive(Debug)]
pub(crate) enum Inner {
    /// The words from this index on.
    Words(usize),
    /// A text for a shell.
    Text(String),
    /// The commands on standard input.
    Input,
    /// The commands in a file.
    File(Word),
}

/// Programs that run the words after their options here, and their options with a value.
const PLAIN: [(&str, &[&str]); 20] = [
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-U", "-r", "-t", "--user"]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "--unset", "-C"]),
    ("nice", &["-n"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("time", &["-f", "-o"]),
    ("timeout", &["-s", "-k"]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("busybox", &[]),
    ("toybox", &[]),
    ("exec", &["-a"]),
    ("unshare", &[]),
    ("setpriv", &[]),
    ("chrt", &[]),
    ("taskset", &["-c"]),
    ("flock", &["-w", "-E"]),
    ("retry", &[]),
    ("eatmydata", &[]),
];
/// Programs that run a command in a container: the first word after the program, and options with
/// a value.
const CONTAINERS: [(&str, &str); 9] = [
    ("docker", "exec"),
    ("podman", "exec"),
    ("nerdctl", "exec"),
    ("kubectl", "exec"),
    ("oc", "exec"),
    ("crictl", "exec"),
    ("lxc", "exec"),
    ("incus", "exec"),
    ("docker-compose", "exec"),
];
const OF_CONTAINERS: [&str; 16] = [
    "-u",
    "--user",
    "-e",
    "--env",
    "-w",
    "--workdir",
    "-n",
    "--namespace",
    "-c",
    "--container",
    "--context",
    "--detach-keys",
    "--env-file",
    "--index",
    "--cwd",
    "-f",
];
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "busybox-sh"];
const OF_SSH: [&str; 18] = [
    "-i", "-l", "-p", "-o", "-F", "-J", "-b", "-c", "-D", "-E", "-e", "-I", "-L", "-m", "-O", "-Q",
    "-R", "-S",
];

/// Returns the command that the words run, and where.
pub(crate) fn unwrapped(words: &[Word], location: &str) -> (Inner, String) {
    let mut location = location.to_owned();
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let mut at = 0;
    loop {
        let name = text(at).rsplit('/').next().unwrap_or("");
        // Assignments before a command, as after `env`.
        if at > 0 && name.contains('=') && !name.starts_with('-') {
            at += 1;
            continue;
        }
        if let Some((_, valued)) = PLAIN.iter().find(|(known, _)| *known == name) {
            at += 1;
            at += options(words, at, valued);
            // The duration of `timeout`, the file of `flock`, the priority of `chrt`.
            at += usize::from(matches!(name, "timeout" | "flock" | "chrt" | "taskset"));
            continue;
        }
        match name {
            "ip" => {
                let begin = at + 1 + options(words, at + 1, &[]);
                match (text(begin), text(begin + 1)) {
                    ("netns" | "net" | "netn", "exec" | "e") | ("vrf", "exec") => {
                        location = located(&location, text(begin + 2));
                        at = begin + 3;
                        continue;
                    }
                    _ => return (Inner::Words(at), location),
                }
            }
            "nsenter" => {
                let count = options(words, at + 1, &["-t", "--target", "-S", "-G"]);
                let given: Vec<&str> =
                    words[at + 1..at + 1 + count].iter().map(|w| w.text.as_str()).collect();
                location = located(&location, &format!("nsenter {}", given.join(" ")));
                at += 1 + count;
                continue;
            }
            "chroot" => {
                at += 2;
                continue;
            }
            "lxc-attach" => {
                let count = options(words, at + 1, &["-n", "--name"]);
                let named = words[at + 1..at + 1 + count].windows(2).find(|pair| pair[0].is("-n"));
                location = located(&location, named.map_or("container", |pair| &pair[1].text));
                at += 1 + count;
                continue;
            }
            "ssh" | "dropbear" | "dbclient" => {
                let begin = at + 1 + options(words, at + 1, &OF_SSH);
                location = located(&location, text(begin));
                let rest: Vec<&str> =
                    words.iter().skip(begin + 1).map(|w| w.text.as_str()).collect();
                let inner =
                    if rest.is_empty() { Inner::Input } else { Inner::Text(rest.join(" ")) };
                return (inner, location);
            }
            "su" => {
                let given = words.iter().skip(at).position(|word| word.is("-c"));
                let command = given.and_then(|n| words.get(at + n + 1));
                let inner = command.map_or(Inner::Input, |word| Inner::Text(word.text.clone()));
                return (inner, location);
            }
            _ => {}
        }
        if let Some((_, verb)) = CONTAINERS.iter().find(|(known, _)| *known == name) {
            let is_exec = text(at + 1) == *verb;
            let of_compose = text(at + 1) == "compose" && text(at + 2) == "exec";
            let before = 1 + options(words, at + 1, &OF_CONTAINERS);
            if is_exec || of_compose || text(at + before) == *verb {
                at += if is_exec {
                    2
                } else if of_compose {
                    3
                } else {
                    before + 1
                };
                at += options(words, at, &OF_CONTAINERS);
                location = located(&location, text(at));
                at += 1;
                // `kubectl exec POD -c CONTAINER -- COMMAND`
                at += options(words, at, &OF_CONTAINERS);
                continue;
            }
        }
        if SHELLS.contains(&name) {
            let count = options(words, at + 1, &["-o"]);
            let given = &words[at + 1..at + 1 + count];
            let is_command = given.iter().any(|word| {
                !word.text.starts_with("--")
                    && word.text.starts_with('-')
                    && word.text.contains('c')
            });
            let inner = match words.get(at + 1 + count) {
                Some(word) if is_command => Inner::Text(word.text.clone()),
                Some(word) if !word.is("-s") => Inner::File(word.clone()),
                _ => Inner::Input,
            };
            return (inner, location);
        }
        return (Inner::Words(at.min(words.len().saturating_sub(1))), location);
    }
}

/// Returns the number of words that are options or their values, and of a closing `--`.
fn options(words: &[Word], from: usize, valued: &[&str]) -> usize {
    let mut at = from;
    while let Some(word) = words.get(at) {
        if word.is("--") {
            return at + 1 - from;
        }
        if !word.text.starts_with('-') || word.text.len() < 2 {
            break;
        }
        at += if valued.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    at.min(words.len()) - from
}
