"""The same tree is read from every form of output, and through everything that runs commands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from sojourn.scenario import ScenarioError
from sojourn.tc import apply, read
from tests.tc.texts import HOME_SCENARIO
from tests.tc.trees import VERSIONS, Tree, data, printed, trees


def plan(text: str) -> str:
    """The plan of a text, or why it cannot be read."""
    try:
        return apply(HOME_SCENARIO, read([("f", text)], {})).scenario.plan_json
    except ScenarioError as error:
        return f"{error}\n{text}"


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=40)
@given(trees())
def test_outputs_of_all_versions_are_read_as_the_commands(version: str, tree: Tree) -> None:
    plain, detailed = (
        plan("".join(f"tc {one}\n" for one in tree.commands(quanta=quanta)))
        for quanta in (False, True)
    )
    assert plan(printed(tree, version)) == plain
    assert plan(printed(tree, version, "-s")) == plain
    assert plan(printed(tree, version, "-d")) == detailed


@given(trees())
def test_output_as_data_is_read_as_the_commands(tree: Tree) -> None:
    assert plan(data(tree)) == plan("".join(f"tc {one}\n" for one in tree.commands()))


def each(form: str) -> Callable[[list[str]], str]:
    """A text with one line for each command; in the form, `{}` is the command after `tc`."""
    return lambda commands: "".join(form.replace("{}", one) + "\n" for one in commands)


def around(
    begin: str, end: str, joint: str = "\n", lead: str = "tc "
) -> Callable[[list[str]], str]:
    """A text with all commands."""
    return lambda commands: begin + joint.join(lead + one for one in commands) + end


WRAPPERS: dict[str, Callable[[list[str]], str]] = {
    # As another user, or with other settings of the process
    "sudo": each("sudo tc {}"),
    "sudo with options": each("sudo -E -u root /sbin/tc {}"),
    "doas": each("doas tc {}"),
    "env": each("env -i PATH=/sbin tc {}"),
    "assignment": each("LC_ALL=C tc {}"),
    "timeout": each("nice -n 5 timeout 5s tc {}"),
    "runuser": each("runuser -u root -- tc {}"),
    "pkexec": each("pkexec tc {}"),
    "systemd-run": each("systemd-run --scope tc {}"),
    "strace": each("strace -f tc {}"),
    "chroot": each("chroot /mnt tc {}"),
    "busybox": each("busybox tc {}"),
    "su": around("su -c '", "'\n", "; "),
    # Elsewhere
    "netns": each("ip netns exec r1 tc {}"),
    "sudo netns": each("sudo ip netns exec r1 tc {}"),
    "tc -n": each("tc -n r1 {}"),
    "tc -netns": each("tc -netns r1 {}"),
    "nsenter": each("nsenter -t 4711 -n tc {}"),
    "nsenter --": each("nsenter --target 4711 --net -- tc {}"),
    "nsenter of a container": each("nsenter -t $(docker inspect -f X web) -n tc {}"),
    "vrf": each("ip vrf exec red tc {}"),
    "docker": each("docker exec web tc {}"),
    "docker with a shell": around("docker exec web sh -c '", "'\n", "; "),
    "kubectl": each("kubectl exec -n prod web -c app -- tc {}"),
    "lxc": each("lxc exec web -- tc {}"),
    "lxc-attach": each("lxc-attach -n web -- tc {}"),
    "machinectl": each("machinectl shell web /sbin/tc {}"),
    "ssh": each("ssh gw tc {}"),
    "ssh with quotes": each("ssh -o X=y root@gw 'tc {}'"),
    "vagrant": each('vagrant ssh gw -c "tc {}"'),
    "adb": each("adb shell su -c 'tc {}'"),
    "mininet": each("mininet> h1 tc {}"),
    # A shell
    "sh -c": each("sh -c 'tc {}'"),
    "bash -c": each('sudo bash -c "tc {}"'),
    "bash -c of all": around("bash -xec '\n", "\n'\n"),
    "netns with a shell": around('ip netns exec r1 bash -c "', '"\n', " && "),
    "eval": each('eval "tc {}"'),
    "evaluated variable": each('CMD="tc {}"; eval $CMD'),
    "command in a variable": each('CMD="tc {}"\n$CMD'),
    # Variables, functions, loops
    "variable": lambda commands: (
        "TC=/sbin/tc\nDEV=eth0\n" + each("$TC {}")(commands).replace("eth0", "${DEV}")
    ),
    "prefix": lambda commands: (
        'Q="tc qdisc add dev eth0"\nC="tc class add dev eth0"\n'
        'F="tc filter add dev eth0"\n'
        + "".join(f"${one[0].upper()} {one.split(maxsplit=4)[4]}\n" for one in commands)
    ),
    "function": lambda commands: (
        'run() { echo "+ $@"; "$@" || exit 1; }\n' + each("run tc {}")(commands)
    ),
    "function of arguments": lambda commands: (
        "add() { local what=$1; shift; "
        "tc $what add dev eth0 $*; }\n"
        + "".join(f"add {one.split()[0]} {one.split(maxsplit=4)[4]}\n" for one in commands)
    ),
    "start": around("start() {\n", '\n}\ncase "$1" in start|"") start;; *) exit 1;; esac\n'),
    "loop over lines": lambda commands: (
        "while read -r line; do tc $line; done << END\n"
        + "".join(f"{one}\n" for one in commands)
        + "END\n"
    ),
    "loop over an array": lambda commands: (
        "all=(\n"
        + "".join(f"'{one}'\n" for one in commands)
        + ')\nfor one in "${all[@]}"; do tc $one; done\n'
    ),
    "loop over words": lambda commands: (
        "for one in " + " ".join(f"'{one}'" for one in commands) + "; do tc $one; done\n"
    ),
    # Here-documents and batches
    "here-document": around("sh << END\n", "\nEND\n"),
    "here-document over ssh": around("ssh root@gw 'bash -s' << 'END'\n", "\nEND\n"),
    "pipe": around("cat << END | sudo sh\n", "\nEND\n"),
    "tc -batch": around("tc -batch - << END\n", "\nEND\n", lead=""),
    "here-string": around('tc -b - <<< "', '"\n', lead=""),
    "piped batch": around("cat << 'END' | sudo tc -force -b -\n", "\nEND\n", lead=""),
    "printed batch": lambda commands: (
        "printf '%s\\n' " + " ".join(f"'{one}'" for one in commands) + " | tc -b -\n"
    ),
    "written batch": lambda commands: each('echo "{}" >> /tmp/b')(commands) + "tc -b /tmp/b\n",
    "lines of a batch": each("{}"),
    # Joints
    "and": around("", "\n", " && \\\n"),
    "or": each("tc {} || true"),
    "or a group": each("tc {} || { echo failed; exit 1; }"),
    "condition": each("if ! tc {}; then exit 1; fi"),
    "one line": around("", "\n", "; "),
    "subshell": around("(\n", "\n)\n"),
    "redirection": each("tc {} > /dev/null 2>&1"),
    "strict": around("#!/bin/bash\nset -euo pipefail\n", "\n"),
    # Copies
    "prompt": each("root@gw:~# tc {}"),
    "prompt in brackets": each("[root@gw ~]# tc {}"),
    "trace": each("+ tc {}"),
    "numbers": lambda commands: "".join(f"{n}. tc {one}\n" for n, one in enumerate(commands, 1)),
    "prose": around(
        "First we make the root (see man tc):\n\n", "\n", "\n\nDon't forget this one:\n\n"
    ),
    "carriage returns": lambda commands: each("tc {}")(commands).replace("\n", "\r\n"),
    "comments": each("tc {}   # don't change"),
    # Files of other programs
    "unit": lambda commands: "[Service]\nType=oneshot\n" + each("ExecStart=/sbin/tc {}")(commands),
    "interfaces": lambda commands: (
        "iface eth0 inet dhcp\n"
        + each("  post-up tc {} || true")(commands).replace("dev eth0", "dev $IFACE")
    ),
    "makefile": lambda commands: "shape:\n" + each("\t@tc {}")(commands),
    "dockerfile": around("FROM x\nRUN ", "\n", " && \\\n    "),
    "list of YAML": lambda commands: "script:\n" + each("  - tc {}")(commands),
}
"""Ways in which commands are run, written or copied."""


@pytest.mark.parametrize("name", WRAPPERS)
@settings(max_examples=8)
@given(trees())
def test_commands_are_the_same_however_they_are_run(name: str, tree: Tree) -> None:
    commands = tree.commands()
    assert plan(WRAPPERS[name](commands)) == plan("".join(f"tc {one}\n" for one in commands))
