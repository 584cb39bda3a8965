//! The reader of scripts finds the commands that a shell would run, and runs none.

use super::evaluate::{Files, Host, Run, Shell};
use super::parse::parse;
use crate::place::Place;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;

const SNIPPETS: &[(&str, &str)] = &[
    ("assignments", "A=1 B=\"two words\"; C=$A$B; tc \"$C\" $B ${D} \"${E}\" x"),
    ("defaults", "A=; tc ${A:-no} ${A-yes} ${A:+x}y ${B:=set} $B \"${C:-a b}\" ${#B}"),
    ("cutting", "F=a.b/c.d; tc ${F%.*} ${F%%.*} ${F#*/} ${F##*.} \"${F%%.*}\" \"${F#*[/x]}\""),
    ("arithmetic", "N=7; tc $((N * 95 / 100 + (N % 4) - -1)) $((N > 5 ? 1 : 0)) $((0x1f & 010))"),
    ("steps", "n=1; while [ $n -lt 5 ]; do tc $n; n=$((n + 1)); done; tc end $n"),
    ("until", "n=5; until [ $n -le 3 ]; do n=$((n - 1)); tc $n; done"),
    (
        "for",
        "for d in a \"b c\" $(echo d e); do for i in 1 2; do [ $i = 2 ] && continue 2; tc \"$d\"; done; done",
    ),
    ("break", "for i in 1 2 3; do [ $i = 3 ] && break; tc $i; done; tc $i"),
    (
        "if",
        "x=3; if [ $x -gt 5 ]; then tc a; elif [ \"$x\" = 3 ] && [ -n \"$x\" ]; then tc b; else tc c; fi",
    ),
    (
        "case",
        "for w in start stop- x; do case $w in st[ao]*-) tc 1 ;; start|go) tc 2 ;; *) tc 3 ;; esac; done",
    ),
    (
        "functions",
        "f() { local a=$1; shift; tc \"$a\" \"$@\" $#; return 3; }; a=o; f 1 \"2 3\" 4; tc $? $a",
    ),
    ("nested", "g() { echo \"$1-$2\"; }; tc $(g a $(g b c)) `g d e`"),
    ("quotes", "tc 'a $b' \"c \\\" \\$d\" e\\ f 'g'\"h\"i \"\" ''"),
    ("lists", "false && tc a; true || tc b; false || tc c; ! false && tc d; { tc e; tc f; } "),
    ("subshell", "A=1; (A=2; tc $A); tc $A; B=$(A=3; echo $A); tc $A $B"),
    ("here", "while read a b; do tc $a \"$b\"; done << END\n1 x y\n2 z\nEND\ntc done"),
    ("pipes", "printf '%s %d\\n' a 1 b 2 | while read x y; do tc $x $y; done"),
    ("continuation", "tc a \\\n  b c # comment\n# tc no\ntc d"),
    (
        "parameters",
        "set -- a \"b c\" d; tc $# \"$2\" \"$*\"; shift 2; tc $1 ${2:-none}; for p; do tc $p; done",
    ),
    ("eval", "c='tc x'; eval \"$c y\"; k=v; eval $k=5; tc $v"),
    ("printf", "tc $(printf '%x %05d %s' 255 42 a) $(printf '%o' 8)"),
    (
        "seq",
        "for i in $(seq 2 4) $(seq 1 2 5); do tc $i; done; tc $(expr 7 / 2 + 1) $(basename /a/b.c)",
    ),
    ("status", "f() { return 2; }; f; tc $?; true; tc $?; [ 1 = 2 ]; tc $?"),
    ("split", "U=\"tc add\"; $U x; V=\"  a  b \"; tc $V. \".$V.\""),
    (
        "dash",
        "[ -z \"\" -a 1 -lt 2 ] && tc a; [ ! 1 = 2 -o 1 = 1 ] && tc b; test \"x\" != \"y\" && tc c",
    ),
    ("unset", "A=1; unset A; tc [${A}] ${A:-gone}"),
    ("redirected", "tc a 2> /dev/null; tc b > /dev/null 2>&1; if tc c; then tc d; fi 2>/dev/null"),
    (
        "errors",
        "w() { echo bad >&2; }; f() { w; echo 1; }; tc $(f) $(echo x 1>&2) $(echo y >&1) >&2",
    ),
    ("cut", "A=10.8.3.4; tc $(echo $A | cut -d. -f3) ${A%.*}"),
];
/// Scripts in the syntax of bash.
const BASH: &[(&str, &str)] = &[
    (
        "separators",
        "IFS=: read a b c <<< 1:2:3:4; tc $a $b $c; l=1,2,,3; IFS=,; for x in $l; do tc \"$x\"; done; unset IFS; tc $l",
    ),
    (
        "maps",
        "declare -A m=( [cs]=1:2 [mc]=3 ); for k in cs mc; do tc $k ${m[$k]}; done; tc ${#m[@]}",
    ),
    ("sparse", "r[2]=b; r[1]=a; tc ${r[@]}; q=([3]=d [1]=c); tc ${q[@]}; r=z; tc $r ${r[@]}"),
    ("counted", "for ((i=3; i<=9; i+=3)); do tc $i; done; ((i > 5)) && tc big"),
    ("double", "A=abc; [[ $A == a* && ! $A = \"a*\" ]] && tc yes; [[ -z $B || -n $A ]] && tc also"),
    ("older", "N=7; tc $[9*$N/10] \"$[N + 1]\"; set -eo pipefail; tc $#"),
    ("append", "A=1; A+=2; tc $A ${A/1/x} ${A:1} ${A^^}; function f { tc f; }; f"),
    ("here", "while read x; do tc $x; done <<< \"one\"; tc a &> /dev/null"),
];

/// A function that prints the words of each command of `tc`.
const PRINTS: &str = "tc() { printf \"%s\" \"$#\" >&3; for w in \"$@\"; do printf \"|%s\" \"$w\" >&3; done; echo >&3; }\n";

#[derive(Default)]
struct Recorder {
    commands: Vec<Vec<String>>,
    programs: Vec<String>,
}

impl Host for Recorder {
    fn program(&mut self, run: Run, _files: Files<'_>) -> bool {
        let mut words = run.words.into_iter().map(|word| word.text);
        let name = words.next().unwrap_or_default();
        if name == "tc" {
            self.commands.push(words.collect());
            return true;
        }
        self.programs.push(name);
        false
    }

    fn doubt(&mut self, _line: Place, _message: String) {}

    fn printed(&mut self, _line: Place, _text: &str) {}
}

fn evaluated(script: &str, given: &[(&str, &str)]) -> Result<Vec<Vec<String>>, String> {
    let given: BTreeMap<String, String> =
        given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let mut recorder = Recorder::default();
    let list = parse(script, Place::default()).map_err(|why| why.message)?;
    Shell::new(&mut recorder, &given).run(&list, Place::default())?;
    Ok(recorder.commands)
}

/// Returns what a real shell gives to `tc`.
fn ran(shell: &str, script: &str) -> Vec<String> {
    let whole = format!("exec 3>&1\n{PRINTS}{script}\n");
    let done = Command::new(shell).args(["-c", &whole]).output().expect("a shell");
    String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn the_commands_are_those_that_a_shell_runs() {
    for (shell, snippets) in [("sh", SNIPPETS), ("bash", BASH)] {
        for (name, script) in snippets {
            let found = evaluated(script, &[]).unwrap_or_else(|why| panic!("{name}: {why}"));
            let line = |words: &Vec<String>| {
                let count = words.len().to_string();
                std::iter::once(count).chain(words.iter().cloned()).collect::<Vec<_>>().join("|")
            };
            let found: Vec<String> = found.iter().map(line).collect();
            assert!(!found.is_empty(), "{name}");
            assert_eq!(found, ran(shell, script), "{name}");
        }
    }
}

#[test]
fn values_that_the_user_gives_replace_those_of_the_script() {
    let script = "RATE=5mbit\ntc $RATE ${RATE%mbit} $1";
    let found = evaluated(script, &[("RATE", "9mbit"), ("1", "x")]).unwrap();
    assert_eq!(found, [["9mbit", "9", "x"]]);
    let script = "tc $(hostname  -i)/32 `cat /a`";
    let found = evaluated(script, &[("hostname -i", "10.0.0.1"), ("cat /a", "b")]).unwrap();
    assert_eq!(found, [["10.0.0.1/32", "b"]]);
}

#[test]
fn a_text_that_is_no_script_is_refused_at_its_line() {
    for (script, line) in [
        ("tc a\ntc 'b\n", 2),
        ("if true; then tc a", 1),
        ("tc a\n)\n", 2),
        ("tc ${a", 1),
        ("tc $(a", 1),
        ("\n\ncase x in a) tc b", 3),
        (&"(".repeat(100), 1),
        (&"tc \"${a:-".repeat(60), 1),
    ] {
        let why = parse(script, Place { line: 1, ..Place::default() }).unwrap_err();
        assert!(why.line >= line, "{script}: {}", why.message);
    }
}

#[test]
fn a_script_without_an_end_is_stopped() {
    for script in [
        "while true; do :; done",
        "f() { f; }; f",
        "A=x; while :; do A=$A$A; done",
        "for ((;;)); do :; done",
        "seq 1 100000",
        "f() { eval \"f\"; }; eval f",
        "a=$(printf '%0999d' 1); for i in $(seq 1 5000); do echo $a >> f; done",
    ] {
        assert!(evaluated(script, &[]).is_err(), "{script}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ab$(){}\\[\\]`'\"\\\\|&;<># \n=*?/%:1-]{0,40}") {
        let _ = evaluated(&text, &[]);
    }

    #[test]
    fn a_broken_script_is_read_or_refused(
        n in 0..SNIPPETS.len(),
        at in 0.0..1.0f64,
        part in "(\\$\\(|\\$\\{|'|\"|;;|\\)|`|\\$\\(\\(|<<|)",
    ) {
        let text = SNIPPETS[n].1;
        let at = (at * text.len() as f64) as usize;
        let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let rest = text[at..].chars().skip(1).collect::<String>();
        let _ = evaluated(&format!("{}{part}{rest}", &text[..at]), &[]);
    }
}
