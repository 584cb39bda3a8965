"""`sojourn tc`, and the deployment steps that other commands print."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sojourn._core import NoKernelEquivalent
from sojourn.cli import answers, exits, options, output
from sojourn.settings import Option
from sojourn.settings import settings as group

if TYPE_CHECKING:
    from sojourn.scenario import Scenario


@group
class Own:
    """Options for the user's machine."""

    machine: Annotated[str | None, Option("NODE", flag="--machine -m")] = None
    """Node of the scenario that is your machine. By default the scenario's deploy.machine;
    otherwise the command asks at a terminal, or takes the node that sends on the bottleneck.
    """
    ingress: bool = False
    """Fail unless the queue is for your machine's incoming traffic."""


@exits.command
def tc(
    file: options.ScenarioFile,
    read: options.FromTc,
    settings: options.Settings = None,
    *,
    own: Own,
    interface: options.Interface = None,
    form: options.Form = None,
    as_json: options.AsJson = False,
    show: Annotated[
        bool, Option(help="Show the queues in FILE, which is a file of `tc`, as trees.")
    ] = False,
) -> None:
    """Print the commands that install a scenario's queue on an interface.

    If the scenario asks for the best queue, it is the winner of the last `sojourn compare` of the
    same scenario.
    The commands are printed, not run. The exit status is 1 if Linux has no such queue.
    """
    if show:
        from sojourn.tc.shown import shown

        typer.echo("\n".join(shown(read.reading([file, *(read.tc or [])]))))
        return
    if read.tc:
        scenario = read.loaded(file, settings, prints=True)
    else:
        scenario = options.load(file, settings)
        if scenario.asks_for_queue:
            scenario = chosen(scenario)
        scenario = read.applied(scenario, prints=True)
    machine = own.machine
    if machine is None and not as_json:
        machine = asked(scenario)
    if own.ingress and machine is None and scenario.model.deploy.machine is None:
        exits.fail(
            f"--ingress requires the name of your machine: give --machine NODE; {ends(scenario)}"
        )
    try:
        deployment = scenario.to_tc(interface, machine=machine, form=form)
    except NoKernelEquivalent as error:
        if as_json:
            output.print_data({"queue": scenario.queue, "no_kernel_equivalent": str(error)})
        output.note(str(error))
        raise typer.Exit(exits.FINDINGS) from None
    if own.ingress and deployment.direction != "ingress":
        exits.fail(
            f"--ingress: `{deployment.machine}` sends on `{scenario.bottleneck}`, so this queue "
            "is for outgoing traffic. Omit --ingress, or select the other direction: --set "
            f"bottleneck={other_way(scenario.bottleneck)}"
        )
    for warning in scenario.warnings():
        output.note(warning)
    if as_json:
        output.print_data(deployment.as_dict())
    else:
        typer.echo(deployment.text(output.width()))


def chosen(scenario: Scenario) -> Scenario:
    """Returns a scenario that asks for the best queue with the best queue.

    It is that of the last comparison, or else the user chooses it.
    """
    own, key = scenario.queue_name, scenario.queue_keys[0]
    if (answer := answers.kept(scenario)) is not None:
        output.note(
            f"`sojourn compare` found on {answer.when} that {answer.queue} is best by {answer.by}; "
            f'for another queue, give --set "{key}=QUEUE"'
        )
        return scenario.with_queue(answer.queue)
    if output.is_data() or not (sys.stdin.isatty() and sys.stdout.isatty()):
        file = scenario.file or "FILE"
        exits.fail(
            f"the scenario asks for the best queue, and its own `{own}` is only the present one: "
            f"`sojourn compare {file}` prints the commands for the best queue; for another, give "
            f'--set "{key}=QUEUE"'
        )
    with output.speaking():
        queue: str = typer.prompt("Which queue do you want to install?", default=own, err=True)
    return scenario.with_queue(queue)


def show(
    scenario: Scenario,
    interface: str | None = None,
    form: Literal["tc", "sqm", "networkd"] | None = None,
) -> None:
    """Prints the steps that deploy a scenario's queue, or why that is impossible."""
    from sojourn.scenario import ScenarioError

    try:
        deployment = scenario.to_tc(interface, machine=asked(scenario), form=form)
    except (NoKernelEquivalent, ScenarioError) as error:  # for example, the link follows a trace
        typer.echo(f"\n{error}")
        return
    typer.echo(f"\nTo use {scenario.queue_name}:\n\n{deployment.text(output.width())}")


def asked(scenario: Scenario) -> str | None:
    """Asks at a prompt which node is the user's machine; returns the node.

    Returns None without a prompt if `[deploy]` names the machine, if there is no terminal, or if
    several nodes send or receive at the bottleneck.
    """
    from sojourn.scenario.placement import senders_receivers

    if scenario.model.deploy.machine or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    senders, receivers = senders_receivers(scenario)
    if len(senders) != 1 or len(receivers) != 1:
        return None
    known = [*senders, *receivers]

    def read(text: str) -> str:
        if text.strip() in known:
            return text.strip()
        raise typer.BadParameter(f"answer {' or '.join(known)}")

    question = f"Which machine is yours at `{scenario.bottleneck}`, {' or '.join(known)}?"
    try:
        with output.speaking():
            answer: str = typer.prompt(question, default=known[0], value_proc=read, err=True)
    except typer.Abort:  # Ctrl-C or the end of the input
        raise KeyboardInterrupt from None
    return answer


def ends(scenario: Scenario) -> str:
    """Returns a text that names the nodes which send and receive at the bottleneck."""
    from sojourn.scenario.placement import senders_receivers

    senders, receivers = (
        ", ".join(f"`{n}`" for n in names) for names in senders_receivers(scenario)
    )
    text = f"{senders} sends on `{scenario.bottleneck}`"
    return f"{text}, {receivers} receives" if receivers else text


def other_way(link: str) -> str:
    """Returns the name of a link's other direction."""
    return link.removesuffix(".reverse") if link.endswith(".reverse") else f"{link}.reverse"
