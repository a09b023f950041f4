"""The graph as Python source: one scalar function of floats, or one function of NumPy columns."""
from __future__ import annotations

import re

SHARED = ("dt", "parameters")  # one value for all states of a batch
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def names(function):
    """Text of every node that needs none of its own: inputs as ``q0, q1, …`` and constants; filled by the emitters."""
    text = {}
    for node_id, key in enumerate(function.graph.nodes):
        if key[0] == "const":
            text[node_id] = repr(key[1])
        elif key[0] == "input":
            text[node_id] = f"{key[1]}{key[2]}"
    return text


def assigned(target, value):
    """A Python statement."""
    return f"{target} = {value}"


def body(function, sincos, indent="    ", assign=assigned):
    """(lines, result texts) of the straight line; `sincos(sine name or None, cosine name or None, angle)` gives the
    lines of a pair, `assign(name, value)` a statement."""
    text, lines, count = names(function), [], 0
    for node_id, operation, *operands in function.statements():
        if operation == "sincos":
            angle, sine_id, cosine_id = operands
            targets = []
            for target in (sine_id, cosine_id):
                targets.append(None if target is None else f"t{count}")
                if target is not None:
                    text[target] = f"t{count}"
                    count += 1
            lines += [indent + line for line in sincos(*targets, text[angle])]
            continue
        terms = [text[i] for i in operands]
        value = f"-{terms[0]}" if operation == "neg" else f"{terms[0]} {SIGNS[operation]} {terms[1]}"
        text[node_id] = f"t{count}"
        lines.append(indent + assign(f"t{count}", value))
        count += 1
    return lines, [text[i] for i in function.outputs]


def plain(text):
    """Text that can neither end a comment, a string or a line."""
    return re.sub(r"[^\x20-\x7e]", "?", text.replace("*/", "* /").replace('"', "'").replace("\\", "/"))


def banner(function, arm):
    """Two comment lines: what this is, how much it costs and which arm it is for."""
    counts = function.counts
    trig = counts.get("sin", 0) + counts.get("cos", 0)
    return (plain(f"{function.name} of '{arm.name}', {function.operations} operations and {trig} sines and cosines"),
            plain(f"arm {arm.fingerprint[:16]}, joints {', '.join(arm.joint_names)}"))


def _pair(sine, cosine, angle):
    return ([f"{sine} = sin({angle})"] if sine else []) + ([f"{cosine} = cos({angle})"] if cosine else [])


def scalar_function(function, arm, name=None):
    """``def name(q, qd, …)`` taking sequences of floats and returning a flat list of floats."""
    lines, results = body(function, _pair)
    head = [f"def {name or function.name}({', '.join(a for a, _ in function.inputs)}):"]
    head += [f"    # {line}" for line in banner(function, arm)]
    for argument, size in function.inputs:
        mine = [k for name_, k in function.used if name_ == argument]
        if len(mine) == size:
            head.append(f"    {', '.join(f'{argument}{k}' for k in mine)}{',' if size == 1 else ''} = {argument}")
        else:
            head += [f"    {argument}{k} = {argument}[{k}]" for k in mine]
    return "\n".join([*head, *lines, f"    return [{', '.join(results)}]", ""])


def scalar_source(function, arm, name=None):
    """`scalar_function` with its import; needs only `math`."""
    return "from math import cos, sin\n\n\n" + scalar_function(function, arm, name)


UFUNCS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative"}


def numpy_source(function, arm, name=None):
    """``def name(q, qd, …, out)`` on columns: arguments (size, N), result written to out (entries, N); needs `numpy`.

    Values live in as few rows of one work array as their lifetimes allow, so that a block stays in the cache. `dt` and
    `parameters` are flat sequences of numbers, and what depends on them alone stays a number."""
    nodes, last = function.graph.nodes, {}
    for position, node_id in enumerate(function.order):
        for operand in nodes[node_id][1:] if nodes[node_id][0] not in ("const", "input") else ():
            last[operand] = position
    last.update(dict.fromkeys(function.outputs, len(function.order)))
    text, scalars, free, rows, lines = names(function), set(), [], 0, []
    scalars.update(i for i, key in enumerate(nodes) if key[0] == "const" or key[0] == "input" and key[1] in SHARED)
    for position, node_id in enumerate(function.order):
        operation, *operands = nodes[node_id]
        if operation in ("const", "input"):
            continue
        terms = [text[i] for i in operands]
        if scalars.issuperset(operands):
            scalars.add(node_id)
            text[node_id] = f"s{node_id}"
            value = f"{operation}({terms[0]})" if operation in ("sin", "cos") else \
                f"-{terms[0]}" if operation == "neg" else f"{terms[0]} {SIGNS[operation]} {terms[1]}"
            lines.append(f"    s{node_id} = {value}")
            continue
        done = {text[i] for i in operands if last[i] == position and text[i][0] == "r"}
        if done:
            text[node_id] = sorted(done)[0]  # in place: NumPy's elementwise functions allow it
            free += sorted(done)[1:]
        elif free:
            text[node_id] = free.pop()
        else:
            text[node_id] = f"r{rows}"
            rows += 1
        lines.append(f"    {UFUNCS.get(operation, operation)}({', '.join([*terms, text[node_id]])})")
    arguments = ", ".join([*(a for a, _ in function.inputs), "out"])
    head = ["from numpy import add, cos, divide, empty, multiply, negative, sin, subtract", "", "",
            f"def {name or function.name}({arguments}):"]
    head += [f"    # {line}" for line in banner(function, arm)]
    head += [f"    {argument}{k} = {argument}[{k}]" for argument, k in function.used]
    if rows:
        head.append(f"    {', '.join(f'r{k}' for k in range(rows))}{',' if rows == 1 else ''} = "
                    f"empty(({rows}, out.shape[1]))")
    tail = [f"    out[{k}] = {text[i]}" for k, i in enumerate(function.outputs)]
    return "\n".join([*head, *lines, *tail, "    return out", ""])


def module(functions, arm):
    """A Python module of scalar functions of one arm, needing only `math`."""
    head = (f'"""Equations of motion of {plain(arm.name)!r}, generated by twolink_dynamics. SI units.\n\n'
            f'Joint order: {plain(", ".join(arm.joint_names))}. Arguments are sequences of floats, results flat lists\n'
            f'(matrices row by row). Arm {arm.fingerprint}.\n"""\n')
    return "\n\n".join([head + "from math import cos, sin\n", *(scalar_function(f, arm) for f in functions)])


def load(source, name):
    """The function of that name in generated source."""
    scope = {}
    exec(compile(source, f"<kernel {name}>", "exec"), scope)  # our own text of numbers and operators
    return scope[name]
