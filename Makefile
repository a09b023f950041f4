# make demo   an arm, held and moved by two real ROS 2 nodes     make demo ARGS="--headless --duration 5"   SCENARIO=push
# make test   the whole suite                                     make test ARGS="-k urdf"
# make bench  the figures quoted in the README
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
SCENARIO ?=
RUN = $(VENV)/bin/python

.PHONY: demo test bench lint clean
demo: $(VENV)/demo.stamp
	$(RUN) -m twolink_dynamics demo $(if $(SCENARIO),--scenario $(SCENARIO)) $(ARGS)

test: $(VENV)/test.stamp
	$(RUN) -m pytest $(ARGS)

bench: $(VENV)/test.stamp
	$(RUN) -m benchmarks $(ARGS)

lint: $(VENV)/test.stamp
	$(RUN) -m ruff check .

# The .pth puts the sources themselves on the path: a folder that happens to be named twolink_dynamics (such as this
# clone, seen from beside it) would otherwise hide them.
$(VENV)/%.stamp: setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "twolink_dynamics needs Python 3.10 or newer, '$(PYTHON)' is not; try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import platform, sys; sys.exit((sys.platform, platform.machine()) != ("linux", "x86_64"))' || \
	  { echo "rclpy comes as wheels for x86-64 Linux only; elsewhere use the colcon door (README.md)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --prefer-binary -e '.[$*]' || \
	  { echo "pip could not install the dependencies: is a package index reachable?" >&2; exit 1; }
	@$(RUN) -c 'import site; open(site.getsitepackages()[0] + "/twolink_dynamics.pth", "w").write("$(CURDIR)\n")'
	@touch $@

clean:
	rm -rf $(VENV) build install log *.egg-info
