"""Progressive widening with asymmetric branching: how many children a node may have by now."""

from __future__ import annotations

import math

from kernelpro.schema.presets import MctsConstants
from kernelpro.search.tree import Node


def width(node: Node, constants: MctsConstants) -> int:
    """``max(1, floor(C * visits ** 0.5))``; C is larger below a success than below a failure.

    The root may have ``root_first`` children at once.
    """
    least = 1
    if node.parent is None:
        factor, least = constants.root_width, max(1, constants.root_first)
    else:
        factor = constants.success_width if node.ok else constants.failed_width
    visits = node.visits + node.pending
    return max(least, math.floor(factor * math.pow(visits, constants.width_exponent)))


def gate_open(node: Node, constants: MctsConstants) -> bool:
    """True if one more child may be asked for; children in flight count as children."""
    return node.children + node.pending_here < width(node, constants)
