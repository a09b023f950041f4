"""Buttons, sliders and the status line. Every wish goes out through Actions; a refusal is shown and taken back."""
from __future__ import annotations

import html
from typing import NamedTuple

import numpy as np

from .interaction import MODES
from .scene import PUSH, TARGET

CONTROLLERS = ("off", "gravity_compensation", "computed_torque", "pd_gravity", "impedance")


class Control(NamedTuple):
    """A slider on a parameter: `part` picks the entries of a list that it sets together (None: a single number)."""

    folder: str
    label: str
    node: str
    name: str
    part: slice | None
    low: float
    high: float
    step: float
    hint: str = ""


ALL = slice(None)
CONTROLS = (
    Control("Impedance", "stiffness K [N/m]", "dynamics", "stiffness", slice(0, 3), 0.0, 2000.0, 10.0,
            "how hard the tip is held at the target"),
    Control("Impedance", "K turning [N m/rad]", "dynamics", "stiffness", slice(3, 6), 0.0, 200.0, 1.0),
    Control("Impedance", "damping ratio", "dynamics", "damping_ratio", None, 0.0, 2.0, 0.05),
    Control("Computed torque", "kp [1/s²]", "dynamics", "kp", ALL, 0.0, 900.0, 5.0),
    Control("Computed torque", "kd [1/s]", "dynamics", "kd", ALL, 0.0, 90.0, 1.0),
    Control("The real arm", "payload [kg]", "simulator", "payload.mass", None, 0.0, 5.0, 0.05,
            "a mass at the tip that the controller does not know of"),
    Control("The real arm", "gravity z [m/s²]", "simulator", "gravity", slice(2, 3), -20.0, 20.0, 0.01),
    Control("The real arm", "friction, viscous", "simulator", "friction.viscous", ALL, 0.0, 5.0, 0.05, "[N m s/rad]"),
    Control("The real arm", "friction, dry", "simulator", "friction.coulomb", ALL, 0.0, 5.0, 0.05,
            "Coulomb friction [N m]"),
    Control("The real arm", "speed of time", "simulator", "real_time_factor", None, 0.1, 2.0, 0.05),
    Control("What the controller believes", "payload [kg]", "dynamics", "payload.mass", None, 0.0, 5.0, 0.05),
    Control("What the controller believes", "gravity z [m/s²]", "dynamics", "gravity", slice(2, 3), -20.0, 20.0, 0.01),
    Control("What the controller believes", "friction, viscous", "dynamics", "friction.viscous", ALL, 0.0, 5.0, 0.05,
            "[N m s/rad]"),
    Control("What the controller believes", "friction, dry", "dynamics", "friction.coulomb", ALL, 0.0, 5.0, 0.05,
            "Coulomb friction [N m]"),
)
SHOWN = (("torques", "joint torques", True), ("trail", "trail of the tip", True),
         ("ghost", "ghost of the reference", True), ("masses", "centres of mass, inertia", False))
WAITING = "waiting for joint_states …"
HELP = {MODES[0]: "<b>Drag the green ball</b>: the tip follows. Shift-click puts it anywhere.",
        MODES[1]: "<b>Drag the tip</b>: a spring pulls it to the mouse and lets go with it."}
VIEW = "Drag elsewhere, wheel: turn the view, zoom."


def needed_parameters():
    """{node: [names]} of all parameters that the panels show."""
    needed = {"dynamics": ["controller", "enabled"]}
    for control in CONTROLS:
        names = needed.setdefault(control.node, [])
        if control.name not in names:
            names.append(control.name)
    return needed


class Panels:
    """The control panel at the right edge. `update()` follows what happened elsewhere."""

    def __init__(self, server, feed, actions, scene, interaction, scenarios=(), exports=None):
        self.server, self.feed, self.actions = server, feed, actions
        self.scene, self.interaction = scene, interaction
        self._sliders = {}  # number of the Control -> (handle, last value shown)
        self._folders = {}
        self._busy = {}  # (node, name) -> value still to be sent after the one on its way, or None
        self._text = None
        self.message = ""
        gui = server.gui
        gui.set_panel_label("twolink dynamics")
        gui.configure_theme(control_width="medium", show_logo=False, show_share_button=False,
                            brand_color=(32, 105, 180))
        gui.main_panel.dock_right()
        gui.main_panel.set_width(300)
        self.status = gui.add_html("")
        self.mode = gui.add_button("", hint="space switches; shift-click puts the target anywhere")
        self.help = gui.add_html("")
        self.push_stiffness = gui.add_slider("spring [N/m]", 10.0, 1000.0, 5.0,
                                             float(np.clip(interaction.stiffness, 10.0, 1000.0)), visible=False,
                                             hint="the spring between the tip and the cursor")
        if scenarios:
            self._scenarios(scenarios)
        self._buttons()
        self._controller()
        for folder in dict.fromkeys(control.folder for control in CONTROLS):  # sliders come with their parameters
            self._folders[folder] = gui.add_folder(folder, expand_by_default=False, visible=False)
        self._view()
        if exports:
            with gui.add_folder("Save the last minute", expand_by_default=False):
                for label, save in exports.items():
                    gui.add_button(label).on_click(self._saver(label, save))
        self._connect()
        self._keys()
        self.update()

    # -- building -----------------------------------------------------------------------------------------------------
    def _buttons(self):
        gui = self.server.gui
        with gui.add_folder("Simulation"):
            self.pause = gui.add_button("Pause", icon="player-pause", hint="key P")
            self.step = gui.add_button("Step", icon="player-skip-forward", color="gray",
                                       hint="one step while paused, key S")
            self.reset = gui.add_button("Reset", icon="refresh", color="gray", hint="key R")

        @self.pause.on_click
        async def _(event):
            self.press("resume" if self.feed.paused else "pause")

        @self.step.on_click
        async def _(event):
            self.press("step")

        @self.reset.on_click
        async def _(event):
            self.press("reset")

    def _scenarios(self, scenarios):
        gui = self.server.gui
        texts = dict(scenarios)
        with gui.add_folder("Scenarios"):
            self.scenario = gui.add_dropdown("scenario", list(texts))
            about = gui.add_html("")
            run = gui.add_button("Run", icon="rocket")

        def describe():
            about.content = _small(html.escape(texts[self.scenario.value]))

        @self.scenario.on_update
        async def _(event):
            describe()

        @run.on_click
        async def _(event):
            name = self.scenario.value
            self.say(f"scenario {name} …")
            self.actions.scenario(name, lambda text: self.say(text and f"scenario {name}: {text}", bool(text)))
        describe()

    def _controller(self):
        gui = self.server.gui
        with gui.add_folder("Controller"):
            self.controller = gui.add_dropdown("law", CONTROLLERS, initial_value="computed_torque")
            self.enabled = gui.add_checkbox("enabled", True)
            self.hold = gui.add_button("Hold", icon="hand-stop", color="gray", hint="stay where you are, key H")

        @self.controller.on_update
        async def _(event):
            if event.client is not None:
                self.send("dynamics", "controller", self.controller.value)

        @self.enabled.on_update
        async def _(event):
            if event.client is not None:
                self.press("enable" if self.enabled.value else "disable")

        @self.hold.on_click
        async def _(event):
            self.press("hold")

    def _view(self):
        gui = self.server.gui
        with gui.add_folder("Show", expand_by_default=False):
            for what, label, on in SHOWN:
                box = gui.add_checkbox(label, on)

                async def changed(event, what=what, box=box):
                    self.scene.show(what, box.value)
                box.on_update(changed)

    def _saver(self, label, save):
        def clicked(event):  # not a coroutine: writing a minute takes a while
            try:
                name, content = save()
            except Exception as error:  # a full disk, a missing library: told on the page
                self.say(f"{label}: {error}", True)
                return
            if event.client is not None:
                event.client.send_file_download(name, content, save_immediately=True)
                self.say(f"saved {name}")
        return clicked

    def _connect(self):
        @self.mode.on_click
        async def _(event):
            self.interaction.switch()

        @self.push_stiffness.on_update
        async def _(event):
            self.interaction.stiffness = float(self.push_stiffness.value)

        def mode_changed():
            self.mode.label = f"drag to {self.interaction.mode} (space)"
            pulling = self.interaction.mode == MODES[1]
            self.mode.color = PUSH if pulling else TARGET
            self.help.content = _small(f"{HELP[self.interaction.mode]} {VIEW}")
            self.push_stiffness.visible = pulling
            self.mode.icon = "target-arrow" if self.interaction.mode == MODES[0] else "hand-finger"
        self.interaction.on_mode = mode_changed
        mode_changed()

        def target_moved():  # only impedance follows a target
            key = ("dynamics", "controller")
            if self.feed.parameters.get(key, "impedance") != "impedance" and key not in self._busy:
                self.send(*key, "impedance", lambda: self.actions.target(np.array(self.scene.target.position)))
        self.interaction.on_move = target_moved

    def _keys(self):
        toggle = self.interaction.switch
        for label, key, act in (("Switch between moving the target and pushing the tip", "space", toggle),
                                ("Pause or go on", "P", lambda: self.press("resume" if self.feed.paused else "pause")),
                                ("Step", "S", lambda: self.press("step")), ("Hold", "H", lambda: self.press("hold")),
                                ("Reset", "R", lambda: self.press("reset"))):
            command = self.server.gui.add_command(label, hotkey=key)

            async def triggered(event, act=act):
                act()
            command.on_trigger(triggered)

    # -- wishes -------------------------------------------------------------------------------------------------------
    def say(self, text, wrong=False):
        """Shows one line below the status; a refusal in red."""
        self.message = _small(html.escape(text), "#c0392b" if wrong else "#5f6b7a") if text else ""

    def press(self, name):
        """Calls a service; its refusal is shown."""
        self.actions.press(name, lambda text: self.say(text and f"{name}: {text}", bool(text)))

    def send(self, node, name, value, then=lambda: None):
        """Sets a parameter, and does `then` when it was taken. While one value is on its way only the newest next one
        is kept."""
        key = (node, name)
        if key in self._busy:
            self._busy[key] = value
            return
        self._busy[key] = None

        def done(text):
            waiting = self._busy.pop(key, None)
            if text:
                self.say(f"{name}: {text}", True)
                self._take_back(key)
            else:
                self.feed.parameters[key] = value
                self.say("")
                then()
            if waiting is not None:
                self.send(node, name, waiting)
        self.actions.set(node, name, value, done)

    def _take_back(self, key):
        if key == ("dynamics", "controller"):
            self.controller.value = self.feed.parameters.get(key, self.controller.value)
        for i, (handle, _) in list(self._sliders.items()):
            if (CONTROLS[i].node, CONTROLS[i].name) == key:
                shown = self._shown(CONTROLS[i], self.feed.parameters[key])
                self._sliders[i] = (handle, shown)
                handle.value = shown

    def _shown(self, control, value):
        if control.part is not None:
            if not len(value):  # as the URDF has it
                value = {"friction.viscous": self.feed.arm.damping, "friction.coulomb": self.feed.arm.coulomb}.get(
                    control.name, [0.0])
            value = np.ravel(np.asarray(value, float))[control.part][0]
        return float(np.clip(value, control.low, control.high))

    # -- following ----------------------------------------------------------------------------------------------------
    def update(self):
        """Status line, and sliders for parameters that became known or changed elsewhere. Call a few times a second."""
        feed = self.feed
        self._show_status()
        paused = "Go on" if feed.paused else "Pause"
        if self.pause.label != paused:
            self.pause.label = paused
            self.pause.icon = "player-play" if feed.paused else "player-pause"
        for handle, key in ((self.controller, "controller"), (self.enabled, "enabled")):
            value = feed.parameters.get(("dynamics", key))
            if value is not None and value != handle.value and ("dynamics", key) not in self._busy \
                    and (key != "controller" or value in CONTROLLERS):
                handle.value = value
        for i, control in enumerate(CONTROLS):
            key = (control.node, control.name)
            value = feed.parameters.get(key)
            if value is None or key in self._busy or (control.part == slice(3, 6) and self.scene.plane is not None):
                continue
            shown = self._shown(control, value)
            if i not in self._sliders:
                self._add_slider(i, shown)
            elif abs(shown - self._sliders[i][1]) > 1e-9:
                self._sliders[i] = (self._sliders[i][0], shown)
                self._sliders[i][0].value = shown

    def _add_slider(self, i, value):
        gui, control = self.server.gui, CONTROLS[i]
        self._folders[control.folder].visible = True
        with self._folders[control.folder]:
            handle = gui.add_slider(control.label, control.low, control.high, control.step, value,
                                    hint=control.hint or f"{control.node}: {control.name}")
        self._sliders[i] = (handle, value)

        @handle.on_update
        async def _(event):
            if event.client is None:
                return
            value = float(handle.value)
            self._sliders[i] = (handle, value)
            known = self.feed.parameters[(control.node, control.name)]
            if control.part is not None:
                values = list(known) or [0.0]
                for k in range(len(values))[control.part]:
                    values[k] = value
                value = values
            self.send(control.node, control.name, value)

    def _show_status(self):
        feed = self.feed
        if feed.q is None:
            text = f"<b style='color:#c0392b'>●</b> {WAITING}"
        elif "simulator" in feed.missing:
            text = "<b style='color:#c0392b'>●</b> <b>no more joint_states</b>: is the simulator running?"
        else:
            colour, word = ("#e67e22", "paused") if feed.paused else ("#27ae60", "live")
            text = f"<b style='color:{colour}'>●</b> <b>{word}</b> &nbsp; t = {feed.stamp - feed.origin:.1f} s"
            problems = "; ".join(f"{node}: {problem}" for node, problem in feed.problems.items() if problem
                                 and not (feed.paused and problem == "paused"))
            if "dynamics" in feed.missing:
                problems = "no dynamics node: nothing controls the arm"
            if problems:
                text += f"<br><span style='color:#c0392b'>{html.escape(problems)}</span>"
        text = f"<div style='font:13px sans-serif;padding:6px 10px'>{text}</div>{self.message}"
        if text != self._text:
            self._text = text
            self.status.content = text


def _small(text, colour="#5f6b7a"):
    return f"<div style='font:12px sans-serif;padding:2px 10px;color:{colour}'>{text}</div>"

