"""Plans: scenarios resolved to numbers, as types.

The engine's types are the only declaration: `python -m tests.project.plan_types` makes the classes
from them. `decoding` turns the JSON of a plan into a `Plan`.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
