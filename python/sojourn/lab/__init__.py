"""The laboratory: a network of real programs on this machine that leaves nothing behind.

`Sandbox` starts a small process, *init*, in new namespaces. Hosts, links and programs exist inside
the sandbox. When init or this process ends, the kernel removes all of them. `Host` is a network
namespace without a name, `Process` is a program in it. `LinkedHosts` are two hosts that an emulated
link joins. `Settings` changes settings that exist only
once per machine, records the changes in a journal, and restores them.

The modules in `sandbox.inside` run inside the sandbox. They need only the standard library, and
pyroute2 (the extra `sojourn[lab]`) to configure networks.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
