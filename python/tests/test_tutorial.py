import runpy
from pathlib import Path

import pytest

import album_rl as al

TUTORIAL = Path(__file__).parents[2] / "docs/python_tutorial.py"


@pytest.mark.filterwarnings("ignore")
def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(TUTORIAL))
    said = capsys.readouterr().out
    assert "verdict:" in said and (tmp_path / "heater.onnx").stat().st_size > 10_000
    agent = names["agent"]
    assert agent.predict([10.0, 8.0])[0] > agent.predict([26.0, 8.0])[0]
    assert al.load(tmp_path / "heater").weights_sha256 == agent.weights_sha256
    assert sum(1 for line in TUTORIAL.read_text().splitlines() if line.strip()) <= 32
