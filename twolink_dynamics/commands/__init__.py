"""One file per `twolink` command, found by name: `HELP`, `add_arguments(parser)` and `run(args) -> exit status`."""
