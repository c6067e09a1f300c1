"""Latency of one decision of an exported policy: album-policy beside onnxruntime, one thread each, in turns.

    cargo build --release -p album-policy --example latency
    python benches/policy_latency.py target/release/examples/latency policy.safetensors policy.onnx [rounds]

The two files are exports of the same checkpoint. Each round asks for the median of 200 decisions of either; printed are the
medians over all rounds and their ratio. onnxruntime is called through its IO binding, so that Python copies nothing. With
`--cpu` processor time is compared instead (Linux): on a busy machine a decision of milliseconds is interrupted more often than not.
Needs numpy and onnxruntime.
"""

import statistics
import subprocess
import sys
import time

import numpy as np
import onnxruntime as ort

arguments = [argument for argument in sys.argv[1:] if argument != "--cpu"]
of_processor = "--cpu" in sys.argv
program, safetensors, onnx = arguments[:3]
rounds = int(arguments[3]) if len(arguments) > 3 else 40
COUNT = 50 if of_processor else 200


def processor_time(process) -> int:
    """Nanoseconds that the first thread of a process has run for."""
    with open(f"/proc/{process}/schedstat") as file:
        return int(file.read().split()[0])


options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
inputs = {i.name: np.full((1, i.shape[1]), 0.1, np.float32) for i in session.get_inputs()}
binding = session.io_binding()
for name, value in inputs.items():
    binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
binding.bind_output("action")


def onnxruntime() -> float:
    times, before = [], processor_time("self")
    for _ in range(COUNT):
        start = time.perf_counter_ns()
        session.run_with_iobinding(binding)
        times.append(time.perf_counter_ns() - start)
    return (processor_time("self") - before) / COUNT if of_processor else statistics.median(times)


with subprocess.Popen([program, safetensors], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:

    def album_policy() -> float:
        before = processor_time(child.pid)
        child.stdin.write(f"{COUNT}\n")
        median = float(child.stdout.readline())
        return (processor_time(child.pid) - before) / COUNT if of_processor else median

    both = [(album_policy(), onnxruntime()) for _ in range(rounds)][2:]
    child.stdin.close()

ours, theirs = (statistics.median(column) / 1000 for column in zip(*both))
ratio = statistics.median(a / b for a, b in both)
print(f"album-policy {ours:.1f} us, onnxruntime {ort.__version__} {theirs:.1f} us, ratio {ratio:.2f}")
