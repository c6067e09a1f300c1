"""Runs an ONNX model on observations: sizes, the model and the numbers on standard input, actions on standard output."""

import struct
import sys

try:
    import numpy as np
    import onnxruntime as ort
except ImportError:
    sys.exit(42)

data = sys.stdin.buffer.read()
length, n, s, z = struct.unpack_from("<4Q", data)
model = data[32 : 32 + length]
numbers = np.frombuffer(data[32 + length :], np.float32)
feeds = {"observation": numbers[: n * s].reshape(n, s)}
if z:
    feeds["noise"] = numbers[n * s :].reshape(n, z)
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
(actions,) = session.run(["action"], feeds)
sys.stdout.buffer.write(ort.__version__.encode() + b"\n" + actions.astype("<f4").tobytes())
