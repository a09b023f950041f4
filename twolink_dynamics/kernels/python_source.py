"""The graph as Python source: one scalar function of floats, or one function of NumPy columns."""
from __future__ import annotations


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


def used_inputs(function):
    """The input elements that the results depend on, in order, as (name, index)."""
    nodes = function.graph.nodes
    needed = {operand for i in function.order for operand in nodes[i][1:]} | set(function.outputs)
    found = {nodes[i][1:] for i in needed if nodes[i][0] == "input"}
    return [(name, k) for name, size in function.inputs for k in range(size) if (name, k) in found]


def body(function, sincos, indent="    "):
    """(lines, result texts) of the straight line; `sincos(sine name or None, cosine name or None, angle)` gives the
    lines of a pair."""
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
        lines.append(f"{indent}t{count} = {value}")
        count += 1
    return lines, [text[i] for i in function.outputs]


def banner(function, arm):
    """Two comment lines: what this is, how much it costs and which arm it is for."""
    counts = function.counts
    trig = counts.get("sin", 0) + counts.get("cos", 0)
    return (f"{function.name} of '{arm.name}', {function.operations} operations and {trig} sines and cosines",
            f"arm {arm.fingerprint[:16]}, joints {', '.join(arm.joint_names)}")


def scalar_source(function, arm, name=None):
    """``def name(q, qd, …)`` taking sequences of floats and returning a flat list of floats; needs only `math`."""
    def sincos(sine, cosine, angle):
        return ([f"{sine} = sin({angle})"] if sine else []) + ([f"{cosine} = cos({angle})"] if cosine else [])

    lines, results = body(function, sincos)
    head = [f"# {line}" for line in banner(function, arm)]
    head += ["from math import cos, sin", "", "", f"def {name or function.name}({', '.join(a for a, _ in function.inputs)}):"]
    used = used_inputs(function)
    for argument, size in function.inputs:
        mine = [k for name_, k in used if name_ == argument]
        if len(mine) == size:
            head.append(f"    {', '.join(f'{argument}{k}' for k in mine)}{',' if size == 1 else ''} = {argument}")
        else:
            head += [f"    {argument}{k} = {argument}[{k}]" for k in mine]
    return "\n".join([*head, *lines, f"    return [{', '.join(results)}]", ""])


def numpy_source(function, arm, name=None):
    """``def name(q, qd, …, out)`` on columns: arguments (size, N), result written to out (entries, N); needs `numpy`.

    `parameters`, where present, is a flat sequence of numbers."""
    def sincos(sine, cosine, angle):
        return ([f"{sine} = sin({angle})"] if sine else []) + ([f"{cosine} = cos({angle})"] if cosine else [])

    lines, results = body(function, sincos)
    head = [f"# {line}" for line in banner(function, arm)]
    arguments = ", ".join([*(a for a, _ in function.inputs), "out"])
    head += ["from numpy import cos, sin", "", "", f"def {name or function.name}({arguments}):"]
    head += [f"    {argument}{k} = {argument}[{k}]" for argument, k in used_inputs(function)]
    tail = [f"    out[{k}] = {result}" for k, result in enumerate(results)]
    return "\n".join([*head, *lines, *tail, "    return out", ""])


def load(source, name):
    """The function of that name in generated source."""
    scope = {}
    exec(compile(source, f"<kernel {name}>", "exec"), scope)  # our own text of numbers and operators
    return scope[name]


