"""Exports the logs of a run to Weights & Biases. The argument is a JSON object; see wandb.rs."""

import csv
import hashlib
import json
import os
import sys

about = json.loads(sys.argv[1])
os.environ.setdefault("WANDB_SILENT", "true")
sys.path = [folder for folder in sys.path if folder]  # a folder called wandb must not replace the package
try:
    import wandb
except ImportError:
    sys.exit(42)

folder = about["run"]


def rows(name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            numbers = {key: float(value) for key, value in row.items() if value not in ("", None)}
            yield step, {key: value for key, value in numbers.items() if value == value}


logged = {}
for name in ("train.csv", "timing.csv", "eval.csv"):
    for step, numbers in rows(name):
        logged.setdefault(step, {}).update(numbers)

run = wandb.init(
    project=about["project"],
    name=about["name"],
    id=hashlib.sha256(folder.encode()).hexdigest()[:16],
    resume="allow" if about["mode"] == "online" else None,
    config=about["config"],
    dir=folder,
    mode=about["mode"],
)
for step in sorted(logged):
    run.log(logged[step], step=step)
result = os.path.join(folder, "result.json")
if os.path.exists(result):
    with open(result) as file:
        run.summary.update({f"result/{key}": value for key, value in json.load(file).items() if not isinstance(value, (dict, list))})
place = run.dir
run.finish()
print(json.dumps({"rows": len(logged), "folder": os.path.dirname(place)}))
