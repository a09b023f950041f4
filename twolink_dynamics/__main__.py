"""`python -m twolink_dynamics` is `twolink`."""
import sys

from .cli import main

sys.exit(main())
