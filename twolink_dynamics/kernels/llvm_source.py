"""The graph as LLVM IR text: one state, rows (N, n), structure of arrays (n, N), and Runge–Kutta rollouts.

No flag promises the absence of NaN or infinity: what goes in bad comes out bad. `contract` lets the machine fuse
a·b + c where it can; where it cannot, multiplications and additions are written, never a call to a software fma.
"""
from __future__ import annotations

import struct

from . import sincos
from .catalog import PARAMETERS

SHARED = ("dt", PARAMETERS)  # inputs that all states of a batch have in common
FLAGS = "nsz contract"


def number(value):
    """A double as LLVM reads it without rounding."""
    return "0x" + struct.pack(">d", value).hex().upper()


class Writer:
    """Writes instructions on doubles (width 1) or vectors of doubles."""

    def __init__(self, width, fma):
        self.width, self.fma_unit, self.lines, self.count = width, fma, [], 0
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.integers = "i64" if width == 1 else f"<{width} x i64>"
        self.suffix = "f64" if width == 1 else f"v{width}f64"

    def let(self, instruction):
        """A new value by an instruction."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def do(self, instruction):
        """An instruction without a value."""
        self.lines.append(f"  {instruction}")

    def const(self, value):
        """A constant in every lane."""
        return number(value) if self.width == 1 else self.splat(f"double {number(value)}")

    def integer(self, value):
        """An integer constant in every lane."""
        return str(value) if self.width == 1 else self.splat(f"i64 {value}")

    def splat(self, element):
        """<element, element, …>."""
        return f"<{', '.join([element] * self.width)}>"

    def op(self, operation, a, b, flags=FLAGS):
        """fadd, fsub, fmul or fdiv."""
        return self.let(f"{operation} {flags} {self.type} {a}, {b}")

    def fma(self, a, b, c):
        """a·b + c, fused where the machine can."""
        if self.fma_unit:
            t = self.type
            return self.let(f"call {t} @llvm.fma.{self.suffix}({t} {a}, {t} {b}, {t} {c})")
        return self.op("fadd", self.op("fmul", a, b), c)

    def address(self, base, index):
        """base + index doubles."""
        return base if index in (0, "0") else self.let(f"getelementptr double, ptr {base}, i64 {index}")

    def load(self, base, index):
        """One value, or `width` neighbours."""
        return self.let(f"load {self.type}, ptr {self.address(base, index)}, align 8")

    def broadcast(self, base, index):
        """One value in every lane."""
        value = self.let(f"load double, ptr {self.address(base, index)}, align 8")
        if self.width == 1:
            return value
        first = self.let(f"insertelement {self.type} poison, double {value}, i64 0")
        return self.let(f"shufflevector {self.type} {first}, {self.type} poison, <{self.width} x i32> zeroinitializer")

    def gather(self, base, stride, offset=0):
        """base[offset + lane·stride] with a constant stride, or an i64 value's name for it."""
        if self.width == 1:
            return self.load(base, offset)
        vector = "poison"
        for lane in range(self.width):
            index = offset + lane * stride if isinstance(stride, int) else \
                (offset if lane == 0 else self.let(f"add i64 {self.let(f'mul i64 {stride}, {lane}')}, {offset}"))
            value = self.let(f"load double, ptr {self.address(base, index)}, align 8")
            vector = self.let(f"insertelement {self.type} {vector}, double {value}, i64 {lane}")
        return vector

    def sincos(self, x):
        """(sin x, cos x) without a branch; see `sincos`."""
        c, t, ints = self.const, self.type, self.integers
        magnitude = self.let(f"call {t} @llvm.fabs.{self.suffix}({t} {x})")
        mask = "i1" if self.width == 1 else f"<{self.width} x i1>"
        inside = self.let(f"fcmp ole {t} {magnitude}, {c(sincos.LIMIT)}")
        shifted = self.fma(x, c(sincos.TWO_OVER_PI), c(sincos.ROUNDER))
        quadrant = self.let(f"bitcast {t} {shifted} to {ints}")
        k = self.op("fsub", shifted, c(sincos.ROUNDER), "")
        r = self.let(f"select {mask} {inside}, {t} {x}, {t} {c(float('nan'))}")
        for part in sincos.HALF_PI_53 if self.fma_unit else sincos.HALF_PI_27:
            r = self.fma(k, c(-part), r)
        z = self.op("fmul", r, r)
        sine, cosine = c(sincos.SINE[0]), c(sincos.COSINE[0])
        for coefficient in sincos.SINE[1:]:
            sine = self.fma(sine, z, c(coefficient))
        for coefficient in (*sincos.COSINE[1:], -0.5, 1.0):
            cosine = self.fma(cosine, z, c(coefficient))
        sine = self.fma(self.op("fmul", r, z), sine, r)
        swap = self.let(f"shl {ints} {quadrant}, {self.integer(63)}")  # bit 0 of the quadrant as a sign: sin ↔ cos
        turn = self.let(f"shl {ints} {quadrant}, {self.integer(62)}")  # bit 1: the sign of the sine
        odd = self.let(f"icmp slt {ints} {swap}, {self.integer(0)}")
        results = []
        for a, b, turned in ((sine, cosine, turn), (cosine, sine, self.let(f"xor {ints} {turn}, {swap}"))):
            chosen = self.let(f"select {mask} {odd}, {t} {b}, {t} {a}")
            sign = self.let(f"and {ints} {turned}, {self.integer(-2**63)}")
            bits = self.let(f"xor {ints} {self.let(f'bitcast {t} {chosen} to {ints}')}, {sign}")
            results.append(self.let(f"bitcast {ints} {bits} to {t}"))
        return results

    def line(self, function, values):
        """The straight line of a Function; `values` maps (input, index) to values; returns the results."""
        nodes = function.graph.nodes
        text = {}
        for node_id, key in enumerate(nodes):
            if key[0] == "const":
                text[node_id] = self.const(key[1])
            elif key[0] == "input" and key[1:] in values:
                text[node_id] = values[key[1:]]
        operations = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
        for node_id, operation, *operands in function.statements():
            if operation == "sincos":
                sine, cosine = self.sincos(text[operands[0]])
                text[operands[1]], text[operands[2]] = sine, cosine
            elif operation == "neg":
                text[node_id] = self.let(f"fneg {FLAGS} {self.type} {text[operands[0]]}")
            else:
                text[node_id] = self.op(operations[operation], text[operands[0]], text[operands[1]])
        return [text[i] for i in function.outputs]


def declarations(*widths):
    """The intrinsics of the given vector widths."""
    lines = ["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"]
    for width in sorted(set(widths)):
        t, suffix = ("double", "f64") if width == 1 else (f"<{width} x double>", f"v{width}f64")
        lines += [f"declare {t} @llvm.fma.{suffix}({t}, {t}, {t})", f"declare {t} @llvm.fabs.{suffix}({t})"]
    return "\n".join(lines) + "\n"


def parameters(function, *integers):
    """The parameter list: one pointer per input, the output, then i64 values."""
    pointers = [f"ptr noundef nonnull %{name}" for name, _ in function.inputs]
    return ", ".join([*pointers, "ptr noundef nonnull %out", *(f"i64 %{name}" for name in integers)])


def separate(function):
    """Inputs of each state, and shared ones, as two lists of (name, size)."""
    own = [(name, size) for name, size in function.inputs if name not in SHARED]
    return own, [(name, size) for name, size in function.inputs if name in SHARED]


def one_state(function, name, fma):
    """``void name(const double *q, …, double *out)``: every input is read before the first result is written."""
    w = Writer(1, fma)
    needed = set(function.used)
    values = {(a, k): w.load(f"%{a}", k) for a, size in function.inputs for k in range(size) if (a, k) in needed}
    for k, result in enumerate(w.line(function, values)):
        w.do(f"store double {result}, ptr {w.address('%out', k)}, align 8")
    body = "\n".join(w.lines)
    return f"define void @{name}({parameters(function)}) nounwind {{\n{body}\n  ret void\n}}\n"


def rows(function, name, fma, width):
    """``void name(const double *q, …, double *out, int64 count)`` on row-major (count, n) arrays."""
    own, shared = separate(function)
    results = len(function.outputs)
    needed = set(function.used)
    w = Writer(width, fma)
    values = {(a, k): w.broadcast(f"%{a}", k) for a, size in shared for k in range(size) if (a, k) in needed}
    head, w.lines = w.lines, []
    for a, size in own:
        base = w.address(f"%{a}", w.let(f"mul i64 %i, {size}"))
        values.update({(a, k): column for k, column in enumerate(_unwoven(w, base, size, a, needed)) if column})
    outputs = w.line(function, values)
    base = w.address("%out", w.let(f"mul i64 %i, {results}"))
    _woven(w, outputs, base)
    loop = "\n".join(w.lines)
    start = "\n".join(head)
    names = ", ".join([*(f"ptr %{a}" for a, _ in function.inputs), "ptr %out"])
    text = (f"define internal void @{name}_blocks({names}, i64 %count) noinline nounwind {{\nentry:\n{start}\n"
            f"  br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n{loop}\n"
            f"  %next = add nuw nsw i64 %i, {width}\n  %more = icmp slt i64 %next, %count\n"
            f"  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}}\n")
    return text + _with_tail(function, name, width, results)


def _states(width):
    """Which state of a block stands in which lane: 0, w/2, 1, w/2 + 1, …. Pairs of columns then come apart, and go back
    together, by unpacking within 128-bit lanes, the cheapest shuffle there is."""
    return [lane // 2 + (lane % 2) * (width // 2) for lane in range(width)]


def _unwoven(w, base, size, name, needed):
    """The columns of a block of rows, in `_states` order; None for those not needed."""
    columns = [None] * size
    half = w.width // 2
    for k in range(0, size - 1, 2):
        wanted = [j for j in (k, k + 1) if (name, j) in needed]
        if not wanted:
            continue
        parts = [_pairs(w, base, size, k, first) for first in (0, half)]
        for j in wanted:
            lanes = ", ".join(f"i32 {lane - lane % 2 + (j - k) + (lane % 2) * w.width}" for lane in range(w.width))
            columns[j] = w.let(f"shufflevector {w.type} {parts[0]}, {w.type} {parts[1]}, <{w.width} x i32> <{lanes}>")
    if size % 2 and (name, size - 1) in needed:
        vector = "poison"
        for lane, state in enumerate(_states(w.width)):
            value = w.let(f"load double, ptr {w.address(base, state * size + size - 1)}, align 8")
            vector = w.let(f"insertelement {w.type} {vector}, double {value}, i64 {lane}")
        columns[-1] = vector
    return columns


def _pairs(w, base, size, k, first):
    """Entries k, k + 1 of the states first … first + w/2 − 1, as one vector."""
    if size == 2:
        return w.let(f"load {w.type}, ptr {w.address(base, 2 * first)}, align 8")
    parts = [w.let(f"load <2 x double>, ptr {w.address(base, (first + i) * size + k)}, align 8")
             for i in range(w.width // 2)]
    lanes = 2
    while len(parts) > 1:
        order = ", ".join(f"i32 {i}" for i in range(2 * lanes))
        parts = [w.let(f"shufflevector <{lanes} x double> {a}, <{lanes} x double> {b}, <{2 * lanes} x i32> <{order}>")
                 for a, b in zip(parts[::2], parts[1::2])]
        lanes *= 2
    return parts[0]


def _woven(w, outputs, base):
    """Stores the results of a block of rows that stands in `_states` order."""
    count, width = len(outputs), w.width
    half = width // 2
    for k in range(0, count - 1, 2):
        for part in range(2):
            lanes = ", ".join(f"i32 {lane - lane % 2 + part + (lane % 2) * width}" for lane in range(width))
            both = w.let(f"shufflevector {w.type} {outputs[k]}, {w.type} {outputs[k + 1]}, <{width} x i32> <{lanes}>")
            if count == 2:
                w.do(f"store {w.type} {both}, ptr {w.address(base, part * width)}, align 8")
                continue
            for i in range(half):
                mask = f"<2 x i32> <i32 {2 * i}, i32 {2 * i + 1}>"
                pair = w.let(f"shufflevector {w.type} {both}, {w.type} poison, {mask}")
                w.do(f"store <2 x double> {pair}, ptr {w.address(base, (part * half + i) * count + k)}, align 8")
    if count % 2:
        for lane, state in enumerate(_states(width)):
            value = w.let(f"extractelement {w.type} {outputs[-1]}, i64 {lane}")
            w.do(f"store double {value}, ptr {w.address(base, state * count + count - 1)}, align 8")


def _with_tail(function, name, width, results):
    """Whole blocks in place; the rest through padded copies on the stack."""
    own, _ = separate(function)
    sizes = dict(own)
    w = Writer(1, False)
    w.do(f"%rest = urem i64 %count, {width}")
    w.do("%whole = sub i64 %count, %rest")
    for a, size in own:
        w.do(f"%{a}_tail = alloca [{size * width} x double], align 64")
    w.do(f"%out_tail = alloca [{results * width} x double], align 64")
    w.do("%any = icmp sgt i64 %whole, 0")
    w.do("br i1 %any, label %main, label %after")
    w.lines.append("main:")
    names = ", ".join([*(f"ptr %{a}" for a, _ in function.inputs), "ptr %out"])
    w.do(f"call void @{name}_blocks({names}, i64 %whole)")
    w.do("br label %after")
    w.lines.append("after:")
    w.do("%left = icmp sgt i64 %rest, 0")
    w.do("br i1 %left, label %tail, label %done")
    w.lines.append("tail:")
    for a, size in own:
        w.do(f"store [{size * width} x double] zeroinitializer, ptr %{a}_tail, align 8")
        source = w.address(f"%{a}", w.let(f"mul i64 %whole, {size}"))
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %{a}_tail, ptr {source}, i64 "
             f"{w.let(f'mul i64 %rest, {8 * size}')}, i1 false)")
    names = ", ".join([*(f"ptr %{a}{'_tail' if a in sizes else ''}" for a, _ in function.inputs), "ptr %out_tail"])
    w.do(f"call void @{name}_blocks({names}, i64 {width})")
    target = w.address("%out", w.let(f"mul i64 %whole, {results}"))
    w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr %out_tail, i64 "
         f"{w.let(f'mul i64 %rest, {8 * results}')}, i1 false)")
    w.do("br label %done")
    w.lines.append("done:")
    body = "\n".join(w.lines)
    return f"define void @{name}({parameters(function, 'count')}) nounwind {{\n{body}\n  ret void\n}}\n"


def columns(function, name, fma, width):
    """``void name(const double *q, …, double *out, int64 count, int64 stride)`` on (n, stride) arrays of which the
    first `count` columns are used. The last block may overlap the one before; fewer than a block go one by one."""
    own, shared = separate(function)
    needed = set(function.used)
    parts = []
    for lanes, suffix in ((width, "blocks"), (1, "single")):
        w = Writer(lanes, fma)
        values = {(a, k): w.broadcast(f"%{a}", k) for a, size in shared for k in range(size) if (a, k) in needed}
        for a, size in own:
            values.update({(a, k): w.load(f"%{a}", w.let(f"add i64 {w.let(f'mul i64 %stride, {k}')}, %i"))
                           for k in range(size) if (a, k) in needed})
        for k, result in enumerate(w.line(function, values)):
            place = w.address("%out", w.let(f"add i64 {w.let(f'mul i64 %stride, {k}')}, %i"))
            w.do(f"store {w.type} {result}, ptr {place}, align 8")
        loop = "\n".join(w.lines)
        parts.append(
            f"define internal void @{name}_{suffix}({parameters(function, 'from', 'to', 'stride')}) nounwind {{\n"
            f"entry:\n  %some = icmp slt i64 %from, %to\n  br i1 %some, label %loop, label %done\n"
            f"loop:\n  %i = phi i64 [ %from, %entry ], [ %next, %loop ]\n{loop}\n"
            f"  %next = add nsw i64 %i, {lanes}\n  %more = icmp slt i64 %next, %to\n"
            f"  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}}\n")
    names = ", ".join([*(f"ptr %{a}" for a, _ in function.inputs), "ptr %out"])
    parts.append(
        f"define void @{name}({parameters(function, 'count', 'stride')}) nounwind {{\n"
        f"  %rest = urem i64 %count, {width}\n  %whole = sub i64 %count, %rest\n"
        f"  call void @{name}_blocks({names}, i64 0, i64 %whole, i64 %stride)\n"
        f"  call void @{name}_single({names}, i64 %whole, i64 %count, i64 %stride)\n  ret void\n}}\n")
    return "".join(parts)


def rollout(function, name, fma, width):
    """``void name(q, qd, tau, dt, …, out, count, steps, every, tau_row, tau_step)``: `steps` steps of `count`
    trajectories from q, qd (count, n); every `every`-th state goes to out (count, steps / every, 2 n). The torque of
    row r in step s stands at tau + r tau_row + s tau_step (in doubles): 0 strides hold or share it."""
    parts = [_rollout_block(function, f"{name}_{lanes}", fma, lanes) for lanes in (width, 1)]
    names = ", ".join([*(f"ptr %{a}" for a, _ in function.inputs), "ptr %out"])
    numbers = "i64 %steps, i64 %every, i64 %tau_row, i64 %tau_step"
    parts.append(
        f"define void @{name}({parameters(function, 'count', 'steps', 'every', 'tau_row', 'tau_step')}) nounwind {{\n"
        f"  %rest = urem i64 %count, {width}\n  %whole = sub i64 %count, %rest\n"
        f"  call void @{name}_{width}({names}, i64 0, i64 %whole, {numbers})\n"
        f"  call void @{name}_1({names}, i64 %whole, i64 %count, {numbers})\n  ret void\n}}\n")
    return "".join(parts)


def _rollout_block(function, name, fma, width):
    n = dict(function.inputs)["q"]
    needed = set(function.used)
    w = Writer(width, fma)
    _, shared = separate(function)
    shared_values = {(a, k): w.broadcast(f"%{a}", k) for a, size in shared for k in range(size) if (a, k) in needed}
    head, w.lines = "\n".join(w.lines), []
    row = w.let(f"mul i64 %r, {n}")
    first = {(a, k): w.gather(w.address(f"%{a}", row), n, k) for a in ("q", "qd") for k in range(n)}
    samples = w.let("sdiv i64 %steps, %every")
    place = w.let(f"mul i64 %r, {w.let(f'mul i64 {samples}, {2 * n}')}")
    out = w.address("%out", place)
    out_stride = w.let(f"mul i64 {samples}, {2 * n}")
    tau = w.address("%tau", w.let("mul i64 %r, %tau_row"))
    setup, w.lines = "\n".join(w.lines), []
    state = {key: f"%{key[0]}_{key[1]}" for key in first}
    now = w.address(tau, w.let("mul i64 %s, %tau_step"))
    torque = {("tau", k): w.gather(now, "%tau_row", k) for k in range(n) if ("tau", k) in needed}
    results = w.line(function, {**shared_values, **state, **torque})
    step, w.lines = "\n".join(w.lines), []
    where = w.address(out, w.let(f"mul i64 {w.let('sub i64 %kept, 1')}, {2 * n}"))
    for lane in range(width):
        lane_base = w.address(where, 0 if lane == 0 else w.let(f"mul i64 {out_stride}, {lane}"))
        for k, result in enumerate(results):
            value = result if width == 1 else w.let(f"extractelement {w.type} {result}, i64 {lane}")
            w.do(f"store double {value}, ptr {w.address(lane_base, k)}, align 8")
    store = "\n".join(w.lines)
    phis = "\n".join(f"  {state[key]} = phi {w.type} [ {value}, %row ], [ {result}, %continue ]"
                     for (key, value), result in zip(first.items(), results))
    arguments = parameters(function, "from", "to", "steps", "every", "tau_row", "tau_step")
    return (f"define internal void @{name}({arguments}) nounwind {{\nentry:\n{head}\n"
            f"  %some = icmp slt i64 %from, %to\n  br i1 %some, label %row, label %done\n"
            f"row:\n  %r = phi i64 [ %from, %entry ], [ %r_next, %row_end ]\n{setup}\n  br label %step\n"
            f"step:\n  %s = phi i64 [ 0, %row ], [ %s_next, %continue ]\n"
            f"  %until = phi i64 [ %every, %row ], [ %until_next, %continue ]\n"
            f"  %kept_before = phi i64 [ 0, %row ], [ %kept_next, %continue ]\n{phis}\n{step}\n"
            f"  %until_less = sub i64 %until, 1\n  %keep = icmp eq i64 %until_less, 0\n"
            f"  %kept = add i64 %kept_before, 1\n  br i1 %keep, label %store, label %continue\n"
            f"store:\n{store}\n  br label %continue\n"
            f"continue:\n  %until_next = phi i64 [ %until_less, %step ], [ %every, %store ]\n"
            f"  %kept_next = phi i64 [ %kept_before, %step ], [ %kept, %store ]\n"
            f"  %s_next = add i64 %s, 1\n  %more = icmp slt i64 %s_next, %steps\n"
            f"  br i1 %more, label %step, label %row_end\n"
            f"row_end:\n  %r_next = add i64 %r, {width}\n  %rows_left = icmp slt i64 %r_next, %to\n"
            f"  br i1 %rows_left, label %row, label %done\ndone:\n  ret void\n}}\n")
