"""The sandbox imports pyroute2 without its `__init__`; others still find all of it."""

from __future__ import annotations

import subprocess
import sys


def test_others_find_names_of_the_package_after_the_sandbox() -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import sys\n"
                "from sojourn.lab.sandbox.inside import network\n"
                "light = network.iproute()\n"
                "print('pyroute2.ndb.main' in sys.modules)\n"
                "from pyroute2 import netlink, GenericNetlinkSocket, IPRoute\n"
                "import pyroute2\n"
                "print('pyroute2.ndb.main' in sys.modules, network.iproute() is light)\n"
                "print(pyroute2.IPRoute is IPRoute, hasattr(pyroute2, 'nothing'))\n"
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["False", "True", "True", "True", "False"], said.stderr
