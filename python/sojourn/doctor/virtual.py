"""Findings on kernels for virtual time, and on the tools to build them."""

from __future__ import annotations

from sojourn.doctor import programs
from sojourn.doctor.finding import Finding
from sojourn.lab.errors import LabError
from sojourn.linux import guest, needs
from sojourn.linux import kernels as there


def kernels() -> list[Finding]:
    """Reports the existing kernels, and whether the first process of guests is installed."""
    found = []
    for folder in there.folders():
        name = f"kernel {folder.name}"
        try:
            kernel = there.read(folder)
        except LabError as error:
            text, _, remedy = str(error).rpartition("; ")
            found.append(Finding(name, "no", text, remedy, needed=False))
            continue
        if kernel is not None:
            repeats = "runs repeat" if kernel.repeats else "runs do NOT repeat"
            text = f"Linux {kernel.release}, HZ {kernel.hz}: {repeats}"
            found.append(Finding(name, "yes", text))
    if not any(finding.state == "yes" for finding in found):
        text = "not built yet; the wheel sojourn-linux (`make linux-wheel`) has one too"
        found.append(Finding("kernel", "no", text, there.REMEDY))
    try:
        guest.init()
    except LabError as error:
        found.append(Finding("guests", "no", str(error).partition("; ")[0], "make setup"))
    return found


def build() -> Finding:
    """Examines whether this machine has the tools to build a kernel."""
    missing = needs.lacking()
    if not missing:
        return Finding("build tools", "yes", "kernels can be built here", needed=False)
    text = f"not installed: {', '.join(missing)}"
    return Finding("build tools", "no", text, programs.install(missing), needed=False)
