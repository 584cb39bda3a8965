"""The reader of scripts finds the commands that a shell would run, and runs none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sojourn.tc.shell import syntax
from sojourn.tc.shell.arithmetic import BadArithmetic, evaluate
from sojourn.tc.shell.patterns import fits, quoted, unquoted
from sojourn.tc.shell.run import Run, Shell
from sojourn.tc.shell.syntax import ShellSyntaxError
from sojourn.tc.shell.values import TooMuch

# Each is one line of a script, as people write them.
# ruff: noqa: E501
SNIPPETS = {
    "assignments": 'A=1 B="two words"; C=$A$B; tc "$C" $B ${D} "${E}" x',
    "defaults": 'A=; tc ${A:-no} ${A-yes} ${A:+x}y ${B:=set} $B "${C:-a b}" ${#B}',
    "cutting": 'F=a.b/c.d; tc ${F%.*} ${F%%.*} ${F#*/} ${F##*.} "${F%%.*}" "${F#*[/x]}"',
    "arithmetic": "N=7; tc $((N * 95 / 100 + (N % 4) - -1)) $((N > 5 ? 1 : 0)) $((0x1f & 010))",
    "steps": "n=1; while [ $n -lt 5 ]; do tc $n; n=$((n + 1)); done; tc end $n",
    "until": "n=5; until [ $n -le 3 ]; do n=$((n - 1)); tc $n; done",
    "for": 'for d in a "b c" $(echo d e); do for i in 1 2; do [ $i = 2 ] && continue 2; tc "$d"; '
    "done; done",
    "break": "for i in 1 2 3; do [ $i = 3 ] && break; tc $i; done; tc $i",
    "if": 'x=3; if [ $x -gt 5 ]; then tc a; elif [ "$x" = 3 ] && [ -n "$x" ]; then tc b; else tc c; fi',
    "case": "for w in start stop- x; do case $w in st[ao]*-) tc 1 ;; start|go) tc 2 ;; *) tc 3 ;; esac; done",
    "functions": 'f() { local a=$1; shift; tc "$a" "$@" $#; return 3; }; a=o; f 1 "2 3" 4; tc $? $a',
    "nested": 'g() { echo "$1-$2"; }; tc $(g a $(g b c)) `g d e`',
    "quotes": "tc 'a $b' \"c \\\" \\$d\" e\\ f 'g'\"h\"i \"\" ''",
    "lists": "false && tc a; true || tc b; false || tc c; ! false && tc d; { tc e; tc f; } ",
    "subshell": "A=1; (A=2; tc $A); tc $A; B=$(A=3; echo $A); tc $A $B",
    "here": "while read a b; do tc $a \"$b\"; done << END\n1 x y\n2 z\nEND\ntc done",
    "pipes": "printf '%s %d\\n' a 1 b 2 | while read x y; do tc $x $y; done",
    "continuation": "tc a \\\n  b c # comment\n# tc no\ntc d",
    "parameters": 'set -- a "b c" d; tc $# "$2" "$*"; shift 2; tc $1 ${2:-none}; for p; do tc $p; done',
    "eval": "c='tc x'; eval \"$c y\"; k=v; eval $k=5; tc $v",
    "printf": "tc $(printf '%x %05d %s' 255 42 a) $(printf '%o' 8)",
    "seq": "for i in $(seq 2 4) $(seq 1 2 5); do tc $i; done; tc $(expr 7 / 2 + 1) $(basename /a/b.c)",
    "status": "f() { return 2; }; f; tc $?; true; tc $?; [ 1 = 2 ]; tc $?",
    "split": 'U="tc add"; $U x; V="  a  b "; tc $V. ".$V."',
    "dash": '[ -z "" -a 1 -lt 2 ] && tc a; [ ! 1 = 2 -o 1 = 1 ] && tc b; test "x" != "y" && tc c',
    "unset": "A=1; unset A; tc [${A}] ${A:-gone}",
    "redirected": "tc a 2> /dev/null; tc b > /dev/null 2>&1; if tc c; then tc d; fi 2>/dev/null",
    "errors": "w() { echo bad >&2; }; f() { w; echo 1; }; tc $(f) $(echo x 1>&2) $(echo y >&1) >&2",
    "cut": "A=10.8.3.4; tc $(echo $A | cut -d. -f3) ${A%.*}",
}  # fmt: skip
BASH = {
    "counted": "for ((i=3; i<=9; i+=3)); do tc $i; done; ((i > 5)) && tc big",
    "double": 'A=abc; [[ $A == a* && ! $A = "a*" ]] && tc yes; [[ -z $B || -n $A ]] && tc also',
    "older": 'N=7; tc $[9*$N/10] "$[N + 1]"; set -eo pipefail; tc $#',
    "append": "A=1; A+=2; tc $A ${A/1/x} ${A:1} ${A^^}; function f { tc f; }; f",
    "here": 'while read x; do tc $x; done <<< "one"; tc a &> /dev/null',
}
PRINTS = 'tc() { printf "%s" "$#" >&3; for w in "$@"; do printf "|%s" "$w" >&3; done; echo >&3; }\n'


def found(script: str, **given: str) -> list[list[str]]:
    """The commands of `tc` in a script."""
    commands: list[list[str]] = []

    def program(run: Run) -> bool:
        if run.words[0] == "tc":
            commands.append(run.words[1:])
        return run.words[0] == "tc"

    shell = Shell(given, program, lambda line, told: None)
    shell.run(syntax.parse(script))
    return commands


def ran(shell: str, script: str) -> list[str]:
    """What a real shell gives to `tc`, which is a function that prints it."""
    whole = f"exec 3>&1\n{PRINTS}{script}\n"
    done = subprocess.run(
        [shell, "-c", whole], capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", SNIPPETS)
def test_the_commands_are_those_that_a_shell_runs(name: str) -> None:
    script = SNIPPETS[name]
    told = ["|".join([str(len(words)), *words]) for words in found(script)]
    assert told
    # `tc c > /dev/null` of the real shell still writes to descriptor 3.
    assert told == ran("sh", script)


@pytest.mark.parametrize("name", BASH)
def test_what_bash_adds_is_read_too(name: str) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    told = ["|".join([str(len(words)), *words]) for words in found(BASH[name])]
    assert told == ran(bash, BASH[name])


def test_nothing_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for script in (f"touch {mark}", f"echo x > {mark}", f"A=$(touch {mark})", f"eval touch {mark}",
                   f"`touch {mark}`", f"exec touch {mark}", f"cat < {mark} | tee {mark}"):  # fmt: skip
        found(script)
    assert not mark.exists()


def test_given_values_hold() -> None:
    assert found("RATE=5mbit\ntc $RATE ${RATE%mbit} $1", RATE="9mbit", **{"1": "x"}) == [
        ["9mbit", "9", "x"]
    ]
    # A command's text gives its output.
    assert found(
        "tc $(hostname  -i)/32 `cat /a`", **{"hostname -i": "10.0.0.1", "cat /a": "b"}
    ) == [["10.0.0.1/32", "b"]]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("tc a\ntc 'b\n", 2),
        ("if true; then tc a", 1),
        ("tc a\n)\n", 2),
        ("a=(1 2)", 1),
        ("tc ${a", 1),
        ("tc $(a", 1),
        ("\n\ncase x in a) tc b", 3),
        ("cat << END\nx\n", 1),
        ("(" * 100, 1),
        ('tc "${a:-' * 60, 1),
    ],
)
def test_what_is_no_script_is_refused_at_its_line(script: str, line: int) -> None:
    with pytest.raises(ShellSyntaxError) as fault:
        syntax.parse(script)
    assert fault.value.line >= line


@pytest.mark.parametrize(
    "script",
    [
        "while true; do :; done",
        "f() { f; }; f",
        "A=x; while :; do A=$A$A; done",
        "for ((;;)); do :; done",
        "seq 1 100000",
        'f() { eval "f"; }; eval f',
        "a=$(printf '%0999d' 1); for i in $(seq 1 5000); do echo $a >> f; done",
    ],
)
def test_what_goes_on_for_ever_ends(script: str) -> None:
    with pytest.raises(TooMuch):
        found(script)


def test_arithmetic_is_of_64_bits() -> None:
    def value(text: str) -> int:
        return evaluate(text, lambda name: "", lambda name, text: None)

    assert value("9223372036854775807 + 1") == -(2**63)
    assert value("-7 / 2") == -3
    assert value("-7 % 2") == -1
    assert value("1 << 70") == 64
    assert value("0 && 1 / 0") == 0
    for wrong in ("1 / 0", "1 +", "(1", "1 2", "$", "09"):
        with pytest.raises(BadArithmetic):
            value(wrong)


def test_patterns_take_time_in_proportion() -> None:
    assert fits(unquoted("*a*a*a*a*a*a*a*a*b"), "a" * 20_000 + "b")
    assert not fits(unquoted("*a*a*a*a*a*a*a*a*b"), "a" * 20_000)
    assert fits(unquoted("[!0-9]?[[:digit:]]*"), "ab3cd")
    assert not fits(quoted("*"), "x")
    assert fits([*unquoted("a"), *quoted("*")], "a*")
