"""Straight-line expressions: a hash-consed graph of +, −, ·, /, sin and cos that folds while it grows.

Equal expressions are one node, so common subexpressions are found by construction; zeros, ones and constants are
folded away, and signs are pulled outwards so that a − b and b − a share their work. What a trace leaves behind in a
`Function` is the shortest straight line these rules find, the same text every time.
"""
from __future__ import annotations

import math
from collections import Counter
from functools import cached_property

ARITHMETIC = ("add", "sub", "mul", "div")


class Graph:
    """Nodes are tuples (operation, operand ids…); constants and inputs are nodes as well, named by their value."""

    def __init__(self):
        self.nodes = []
        self._ids = {}

    def node(self, *key):
        """The one Expr of this operation and operands."""
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self.nodes)
            self.nodes.append(key)
        return Expr(self, found)

    def known(self, *key):
        """Whether this very operation exists already."""
        return key in self._ids

    def constant(self, value):
        """The Expr of a number."""
        return self.node("const", float(value) + 0.0)

    def input(self, name, index):
        """The Expr of element `index` of the input vector `name`."""
        return self.node("input", name, index)


class Expr:
    """A handle on one node; the operators build new nodes, numbers mix in."""

    __slots__ = ("graph", "id")

    def __init__(self, graph, node_id):
        self.graph, self.id = graph, node_id

    def __neg__(self):
        return negative(self)

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)

    def __truediv__(self, other):
        return divide(self, other)

    def __rtruediv__(self, other):
        return divide(other, self)

    @property
    def key(self):
        """The node itself."""
        return self.graph.nodes[self.id]


def is_number(x):
    """Whether x is a plain number and not an Expr."""
    return not isinstance(x, Expr)


def _operation(x):
    return None if is_number(x) else x.key[0]


def _operand(x, position=1):
    return Expr(x.graph, x.key[position])


def _scaled(x):
    """x as (factor, Expr) with factor·Expr = x."""
    key = x.key
    if key[0] == "neg":
        factor, inner = _scaled(_operand(x))
        return -factor, inner
    if key[0] == "mul" and x.graph.nodes[key[1]][0] == "const":
        return x.graph.nodes[key[1]][1], _operand(x, 2)
    return 1.0, x


def negative(x):
    """−x."""
    if is_number(x):
        return -x
    operation = _operation(x)
    if operation == "neg":
        return _operand(x)
    if operation == "sub":
        return x.graph.node("sub", x.key[2], x.key[1])
    return x.graph.node("neg", x.id)


def add(a, b):
    """a + b."""
    if is_number(a):
        if is_number(b):
            return a + b
        a, b = b, a
    if is_number(b):
        if b == 0.0:
            return a
        if _operation(a) == "neg":
            return subtract(b, _operand(a))
        if b < 0.0:
            return a.graph.node("sub", a.id, a.graph.constant(-b).id)
        return a.graph.node("add", a.id, a.graph.constant(b).id)
    merged = _merged(a, b, 1.0)
    if merged is not None:
        return merged
    minus_a, minus_b = _operation(a) == "neg", _operation(b) == "neg"
    if minus_a and minus_b:
        return negative(add(_operand(a), _operand(b)))
    if minus_b:
        return subtract(a, _operand(b))
    if minus_a:
        return subtract(b, _operand(a))
    return a.graph.node("add", *sorted((a.id, b.id)))


def subtract(a, b):
    """a − b."""
    if is_number(b):
        return add(a, -b)
    if is_number(a):
        if a == 0.0:
            return negative(b)
        if _operation(b) == "neg":
            return add(a, _operand(b))
        return b.graph.node("sub", b.graph.constant(a).id, b.id)
    merged = _merged(a, b, -1.0)
    if merged is not None:
        return merged
    if _operation(b) == "neg":
        return add(a, _operand(b))
    if _operation(a) == "neg":
        return negative(add(_operand(a), b))
    if a.graph.known("sub", b.id, a.id) and not a.graph.known("sub", a.id, b.id):
        return a.graph.node("neg", a.graph.node("sub", b.id, a.id).id)
    return a.graph.node("sub", a.id, b.id)


def _merged(a, b, sign):
    """c₁x ± c₂x = (c₁ ± c₂) x, or None where the two have no factor in common."""
    factor_a, inner_a = _scaled(a)
    factor_b, inner_b = _scaled(b)
    if inner_a.id != inner_b.id:
        return None
    return multiply(factor_a + sign * factor_b, inner_a)


def multiply(a, b):
    """a · b."""
    if is_number(b):
        if is_number(a):
            return a * b
        a, b = b, a
    if is_number(a):
        if a == 0.0:
            return 0.0
        factor, inner = _scaled(b)
        factor *= a
        if factor == 1.0:
            return inner
        if factor < 0.0:
            return negative(multiply(-factor, inner))
        return inner.graph.node("mul", inner.graph.constant(factor).id, inner.id)
    minus_a, minus_b = _operation(a) == "neg", _operation(b) == "neg"
    if minus_a:
        a = _operand(a)
    if minus_b:
        b = _operand(b)
    if minus_a or minus_b:
        product = multiply(a, b)
        return product if minus_a and minus_b else negative(product)
    return a.graph.node("mul", *sorted((a.id, b.id)))


def divide(a, b):
    """a / b; a division by a number is a multiplication."""
    if is_number(b):
        return multiply(1.0 / b, a) if not is_number(a) else a / b
    if is_number(a):
        a = b.graph.constant(a)
    return b.graph.node("div", a.id, b.id)


def sine(x):
    """sin x, with sin(−x) = −sin x."""
    if is_number(x):
        return math.sin(x)
    if _operation(x) == "neg":
        return negative(sine(_operand(x)))
    return x.graph.node("sin", x.id)


def cosine(x):
    """cos x, with cos(−x) = cos x."""
    if is_number(x):
        return math.cos(x)
    if _operation(x) == "neg":
        return cosine(_operand(x))
    return x.graph.node("cos", x.id)


class Function:
    """A finished trace: `inputs` name the argument vectors as (name, size), `outputs` are the results in order.

    order    ids of the nodes needed, operands first
    shape    shape of one result (row-major over `outputs`)
    """

    def __init__(self, graph, name, inputs, outputs, shape):
        self.graph, self.name, self.inputs, self.shape = graph, name, tuple(inputs), tuple(shape)
        self.outputs = tuple((graph.constant(x) if is_number(x) else x).id for x in outputs)
        self.order = self._sorted()

    def _sorted(self):
        nodes, order, done = self.graph.nodes, [], set()
        for output in self.outputs:
            stack = [(output, False)]
            while stack:
                node_id, ready = stack.pop()
                if ready:
                    order.append(node_id)
                elif node_id not in done:
                    done.add(node_id)
                    key = nodes[node_id]
                    if key[0] in ("const", "input"):
                        continue
                    stack.append((node_id, True))
                    stack.extend((operand, False) for operand in reversed(key[1:]))
        return tuple(order)

    @cached_property
    def used(self):
        """The input elements the results depend on, in order, as (name, index)."""
        nodes = self.graph.nodes
        needed = {operand for i in self.order for operand in nodes[i][1:]} | set(self.outputs)
        found = {nodes[i][1:] for i in needed if nodes[i][0] == "input"}
        return tuple((name, k) for name, size in self.inputs for k in range(size) if (name, k) in found)

    @property
    def counts(self):
        """How many of each operation, e.g. ``{'mul': 19, 'add': 8, …}``."""
        return dict(Counter(self.graph.nodes[i][0] for i in self.order))

    @property
    def operations(self):
        """Number of additions, subtractions, multiplications and divisions (a sign is free in one of them)."""
        return sum(count for operation, count in self.counts.items() if operation in ARITHMETIC)

    def statements(self):
        """Yields (id, operation, operands…): what an emitter has to write, sin and cos of one angle as one
        ``(None, 'sincos', angle, sine id or None, cosine id or None)``."""
        pairs = {}
        for node_id in self.order:
            key = self.graph.nodes[node_id]
            if key[0] in ("sin", "cos"):
                pairs.setdefault(key[1], {})[key[0]] = node_id
        for node_id in self.order:
            key = self.graph.nodes[node_id]
            if key[0] not in ("sin", "cos"):
                yield node_id, *key
            elif key[1] in pairs:
                pair = pairs.pop(key[1])
                yield None, "sincos", key[1], pair.get("sin"), pair.get("cos")
