"""`twolink export`: the equations of an arm as source code or LaTeX."""
from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError, choices
from ._model_options import add_model_arguments, arm_from

HELP = "write an arm's equations as a C99 header, a Python module or LaTeX"
LANGUAGES = ("c", "python", "latex")


def add_arguments(parser):
    """The command's options."""
    add_model_arguments(parser)
    parser.add_argument("--lang", choices=LANGUAGES, default="c", help="c: a C99 header without dependencies "
                        "(default), python: a module needing only `math`, latex: M, C and g, up to three coordinates")
    parser.add_argument("--kernels", metavar="NAMES", help="comma-separated; default: all but the regressor")
    parser.add_argument("--prefix", help="what the C names start with (default: the arm's name)")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def run(args):
    """Write the source."""
    arm = arm_from(args)
    text = latex(arm) if args.lang == "latex" else source(arm, args.lang, args.kernels, args.prefix)
    if args.output:
        try:
            Path(args.output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write '{args.output}': {error.strerror or error}") from None
        print(f"{args.output}: {text.count(chr(10))} lines", file=sys.stderr)
    else:
        sys.stdout.write(text)
    return 0


def source(arm, language, names=None, prefix=None):
    """The text of the named kernels of an arm (comma-separated, or all), in "c" or "python"."""
    from ..kernels import c_source, python_source
    from ..kernels.catalog import KERNELS, trace
    there = [name for name, kernel in KERNELS.items() if arm.tip is not None or not kernel.frame]
    wanted = [name.strip() for name in names.split(",")] if names else [name for name in there if name != "regressor"]
    for name in wanted:
        if name not in there:
            raise InputError(f"no kernel '{name}'; there are {choices(there, 20)}")
    functions = [trace(arm, name, damping=arm.damping) for name in wanted]
    if language == "c":
        return c_source.header(functions, arm, prefix)
    return python_source.module(functions, arm)


def latex(arm):
    """M, C and g of an arm as a LaTeX environment; raises ModelError where they would fill books."""
    from ..lagrangian import derive
    text = derive(arm).latex()
    return text if text.endswith("\n") else text + "\n"
