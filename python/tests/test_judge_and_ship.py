import os

import numpy as np
import pytest

import album_rl as al


def test_a_policy_in_one_file(agent, tmp_path):
    told = agent.export(tmp_path / "policy.safetensors", check=16)
    assert told["max_difference"] <= 1e-5 and told["format"] == "safetensors"
    assert told["inputs"][0] == {"name": "observation", "type": "float32", "sizes": [2]}
    told = agent.export(tmp_path / "policy.onnx")
    assert told["opset"] == 17 and (tmp_path / "policy.onnx").exists()
    for path, format in (("policy.bin", None), ("policy.onnx", "pickle")):
        with pytest.raises(al.ConfigError, match="expected"):
            agent.export(tmp_path / path, format)
    with pytest.raises(al.FileError):
        agent.export(tmp_path / "nowhere/policy.onnx")


def test_onnxruntime_agrees(agent, tmp_path, monkeypatch):
    python = os.environ.get("ALBUM_TEST_PYTHON")
    if not python:
        pytest.skip("ALBUM_TEST_PYTHON names no Python with onnxruntime; `cargo xtask test` sets it")
    monkeypatch.setenv("ALBUM_PYTHON", python)
    assert agent.export(tmp_path / "policy.onnx", check=8)["max_difference"] <= 1e-5


def test_a_policy_is_judged_by_data(agent, data):
    settings = dict(updates=50, ensemble=2, threads=1)
    found = agent.fqe(**settings)
    assert found["verdict"] in ("better", "worse", "cannot tell", "not calibrated")
    assert found["episodes"] == 10 and "verdict:" in repr(found)
    held_out = data.split(0.1, seed=3)[1]
    assert agent.fqe(held_out, **settings)["policy"] == found["policy"]


def test_what_cannot_be_judged(agent, data, choices, tmp_path):
    with pytest.raises(al.DataError, match="expected album_rl.Dataset"):
        agent.fqe(np.zeros(3))
    with pytest.raises(al.AlbumError, match="choices|actions"):
        agent.fqe(choices)
    with pytest.raises(al.DataError, match="propensities"):
        agent.fqe(data, propensities=np.ones(3))
    with pytest.raises(al.AlbumError, match="episode"):
        agent.fqe(data.split(0.02)[1])
    with pytest.raises(al.AlbumError, match="held no episodes out"):
        al.Bc(hidden=(8,)).fit(data, steps=2, holdout=0.0).fqe()
    agent.save(tmp_path / "run")
    with pytest.raises(al.AlbumError, match="arrays in memory"):
        al.load(tmp_path / "run").fqe()
