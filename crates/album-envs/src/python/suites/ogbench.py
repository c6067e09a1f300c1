"""Environments of the package ogbench: make(ENVIRONMENT_ID)."""

import ctypes
import os
import sys
import traceback
from importlib.metadata import version
from __main__ import Hopeless


def choose_gl():
    """Names the first way of rendering without a screen that the system has a library for."""
    if "MUJOCO_GL" in os.environ or not sys.platform.startswith("linux"):
        return
    for name, libraries in ("egl", ["libEGL.so.1"]), ("osmesa", ["libOSMesa.so.8", "libOSMesa.so.6"]):
        for library in libraries:
            try:
                ctypes.CDLL(library)
            except OSError:
                continue
            os.environ["MUJOCO_GL"] = name
            return
    os.environ["MUJOCO_GL"] = "disable"


choose_gl()  # MuJoCo reads it when it is loaded

import ogbench  # first, so that it is the module reported as missing
import gymnasium

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy")

if tuple(int(part) for part in version("ogbench").split(".")[:2]) < (1, 2):
    raise Hopeless(
        f"found ogbench {version('ogbench')}, expected 1.2.0 or newer, because rewards and success were timed "
        "differently before; run `album setup ogbench`, or point ALBUM_PYTHON at another interpreter"
    )
gymnasium.logger.min_level = 50


class Environment:
    def __init__(self, name):
        made = gymnasium.make(name, disable_env_checker=True)
        # gymnasium's wrappers count steps and check their order; the worker and album do both in less time.
        self.env, self.horizon = made.unwrapped, made.spec.max_episode_steps
        self.observation_dim = self.env.observation_space.shape[0]
        self.action_dim = self.env.action_space.shape[0]
        if hasattr(self.env, "get_step_info"):
            # The arm's environments collect positions and contacts a second time for a report that nobody reads here.
            self.env.get_step_info = dict

    def reset(self, seed):
        self.env.action_space.seed(seed)
        return self.env.reset(seed=seed)[0]

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, info["success"]

    def render(self):
        if os.environ.get("MUJOCO_GL") == "disable":
            raise Hopeless(
                "no GL to draw frames with: found neither libEGL.so.1 nor libOSMesa.so.8; "
                "install one of them (Debian, Ubuntu: apt install libegl1 or libosmesa6)"
            )
        try:
            return self.env.render()
        except Exception as error:
            traceback.print_exc()
            raise Hopeless(
                f"drawing a frame with MUJOCO_GL={os.environ.get('MUJOCO_GL')} failed ({error!r}); "
                "set MUJOCO_GL to egl or osmesa after installing it "
                "(Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri, or libosmesa6)"
            ) from error


make = Environment
