"""The laboratory: a network of real programs on this machine, which leaves nothing behind.

`Sandbox` starts a small process of ours, *init*, in namespaces of its own. Hosts, links and
programs live inside of it; when init dies, or this process does, the kernel removes all of them.
`Host` is a network namespace without a name, `Process` a program in it. `Settings` changes what
exists only once in the machine, with a journal, and puts it back.

What stands in `sandbox.inside` runs there and imports nothing but the standard library until a
network is configured (pyroute2, the extra `sojourn[lab]`).
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
