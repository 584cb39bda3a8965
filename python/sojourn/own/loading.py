"""Executes the sources of policies, and describes exceptions in them.

Each run executes the sources again, so that runs do not share variables of modules. Local modules
are loaded from the sources in the plan, so changes on disk have no effect.
"""

from __future__ import annotations

import builtins
import itertools
import signal
import sys
import threading
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace

from sojourn.own import guard
from sojourn.own.declare import ATTRIBUTE, FAMILIES, Declaration, Verdict
from sojourn.own.errors import OwnError

FILE, TEXT = "__sojourn_file__", "__sojourn_text__"
"""Variables of a loaded module with the name and the text of its file."""
VERDICTS = [*Verdict]
"""Verdicts by number, for the engine."""
_numbers = itertools.count()
_lock = threading.RLock()


class Params(SimpleNamespace):
    """The parameters of a policy as attributes, in nanoseconds, bytes and bits per second."""


def params(values: Mapping[str, object]) -> Params:
    """Returns the parameters for a policy's constructor."""
    return Params(**values)


class _Local:
    """The modules of one execution of a policy's sources."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.prefix = f"_sojourn_own_{next(_numbers)}"
        self.modules: dict[str, ModuleType] = {}

    def file_of(self, name: str) -> str | None:
        """Returns the file of a local module by its dotted name; `None` if it is not local."""
        path = name.replace(".", "/")
        return next((f for f in (f"{path}.py", f"{path}/__init__.py") if f in self.files), None)

    def load(self, name: str) -> ModuleType:
        """Returns a local module, which is executed at the first call."""
        if name in self.modules:
            return self.modules[name]
        file = self.file_of(name)
        if file is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        parent, _, last = name.rpartition(".")
        package = self.load(parent) if parent else None
        module = ModuleType(f"{self.prefix}.{name}")
        module.__dict__.update(
            {
                "__builtins__": {**vars(builtins), "__import__": self.import_},
                "__package__": name if file.endswith("__init__.py") else parent,
                "__file__": file,
                FILE: file,
                TEXT: self.files[file],
            }
        )
        self.modules[name] = module
        # `dataclass` and similar decorators find the module of a class in `sys.modules`.
        sys.modules[module.__name__] = module
        exec(compile(self.files[file], file, "exec"), module.__dict__)  # noqa: S102 - the user's own
        if package is not None:
            setattr(package, last, module)
        return module

    def import_(
        self,
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Replaces `__import__` in local modules: imports a local module or any other module."""
        if level:
            package = str((globals_ or {}).get("__package__") or "")
            parts = package.split(".")[: len(package.split(".")) - (level - 1)] if package else []
            name = ".".join(part for part in [*parts, name] if part)
        elif self.file_of(name.partition(".")[0]) is None:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        leaf = self.load(name)
        for item in fromlist or ():
            if not hasattr(leaf, item) and self.file_of(f"{name}.{item}") is not None:
                self.load(f"{name}.{item}")
        return leaf if fromlist else self.load(name.partition(".")[0])

    def forget(self) -> None:
        """Removes the local modules from `sys.modules`."""
        for module in self.modules.values():
            sys.modules.pop(module.__name__, None)


def load(policy: str, source: str, files: Mapping[str, str]) -> type:
    """Executes the sources of a policy and returns its class; raises `OwnError`."""
    del source
    if guard.enter is not None:
        guard.enter()
    file, _, name = policy.partition(":")
    main = file.removesuffix(".py")
    local = _Local(files)
    with _lock, guard.loading(policy):
        try:
            module = local.load(main)
        except BaseException as error:
            if interrupted(error):
                raise
            raise OwnError(f"{file} cannot be loaded: {explain(error)}") from error
        finally:
            local.forget()
    return _declared(module, file, name)


def _declared(module: ModuleType, file: str, name: str) -> type:
    found = getattr(module, name, None)
    known = [n for n, value in vars(module).items() if ATTRIBUTE in getattr(value, "__dict__", {})]
    if isinstance(found, type) and ATTRIBUTE in vars(found):
        return found
    if isinstance(found, type):
        families = ", ".join(f"@sojourn.{family}(...)" for family in FAMILIES)
        raise OwnError(f"class {name} of {file} is not declared: add one of {families}")
    there = f"declared classes: {', '.join(known) or 'none'}"
    raise OwnError(f"{file} has no class {name}; {there}")


def declaration(cls: type) -> Declaration:
    """Returns the declaration of a loaded class."""
    found: Declaration = vars(cls)[ATTRIBUTE]
    return found


def interrupted(error: BaseException) -> bool:
    """Returns whether the user, not the policy's code, raised a `KeyboardInterrupt`."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        return True
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is None or FILE not in step.tb_frame.f_globals


def explain(error: BaseException) -> str:
    """Returns a text with an exception and the line of the user's code that raised it."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if type(error).__name__ in ("PolicyError", "OwnError", "Stuck"):
        what = str(error)
    place = None
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if FILE in frame.f_globals:
            place = (frame.f_globals[FILE], step.tb_lineno, frame.f_globals[TEXT])
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.lineno is not None:
        place, what = (error.filename, error.lineno, error.text or ""), f"SyntaxError: {error.msg}"
        return f"{place[0]}, line {place[1]}: {what}"
    if place is None:
        return what
    lines = place[2].split("\n")
    line = lines[place[1] - 1].strip() if place[1] <= len(lines) else ""
    return f"{place[0]}, line {place[1]} (`{line}`): {what}"
