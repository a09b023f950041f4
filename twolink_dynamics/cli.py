"""The `twolink` command: finds the sub-command, turns every expected failure into one line."""
from __future__ import annotations

import argparse
import importlib
import math
import os
import pkgutil
import re
import sys
import warnings

from . import __version__, commands
from .errors import InputError, TwolinkError, TwolinkWarning

ORDER = ("demo", "info", "derive", "verify", "simulate", "export", "excite", "identify", "test-model",
         "learn-residual")  # as a newcomer meets them; any other command file follows


def command_names():
    """The names of all sub-commands, a module `commands/a_b.py` being `a-b`."""
    found = [module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__)
             if not module.name.startswith("_")]
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def _module(name):
    return importlib.import_module(f"{commands.__name__}.{name.replace('-', '_')}")


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like every other error here."""

    def error(self, message):
        raise InputError(f"{message} (see {self.prog} --help)")


def finite(text):
    """The number in an argument; nan and inf are none."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a finite number")
    return value


def build_parser(only=None):
    """The argument parser, with every sub-command or (faster to start) `only` one."""
    parser = Parser(
        prog="twolink", description="Lagrangian dynamics, control and simulation of robot arms described by a URDF.",
        epilog="`twolink COMMAND --help` explains a command; `twolink demo` starts an arm.")
    parser.add_argument("--version", action="version", version=f"twolink_dynamics {__version__}")
    sub = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in command_names():
        if only in (None, name):
            module = _module(name)
            child = sub.add_parser(name, help=module.HELP, description=module.HELP)
            child.register("type", float, finite)
            child._negative_number_matcher = re.compile(r"-\.?\d[\d.]*(e[+-]?\d+)?$", re.I)  # also -1e-3, before 3.14
            module.add_arguments(child)
            child.set_defaults(run=module.run, parser=child)
    return parser


def _one_line_warning(message, category, filename, lineno, file=None, line=None):
    text = message if issubclass(category, TwolinkWarning) else f"{category.__name__}: {message}"
    print(f"warning: {text}", file=sys.stderr)


def main(argv=None):
    """Run `twolink`; returns the exit status (0 good, 1 a verdict that failed, 2 bad input, 130 interrupted)."""
    argv = sys.argv[1:] if argv is None else list(argv)
    warnings.showwarning = _one_line_warning
    if not argv:
        build_parser().print_help(sys.stderr)
        return 2
    try:
        only = argv[0] if argv and argv[0] in command_names() else None
        args, unknown = build_parser(only).parse_known_args(argv)
        if unknown:
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args.run(args) or 0
    except TwolinkError as error:
        print(f"twolink: error: {error}", file=sys.stderr)
        return 2
    except SystemExit as stop:  # argparse has shown the help or the version
        return stop.code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # `twolink info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a file that cannot be read or written; no fault of the program
        where = f"'{error.filename}': " if error.filename else ""
        print(f"twolink: error: {where}{error.strerror or error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
