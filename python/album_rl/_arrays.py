"""Arrays of any type and layout as the few that the library reads: as they are where they fit, else converted once."""

import numpy as np

from ._errors import DataError

KINDS = "an array of numbers or flags"


def _plain(name, values):
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise DataError(f"{name}: {error}; expected {KINDS}") from error
    if array.dtype == object:
        try:
            array = np.asarray(array.tolist())
        except ValueError:
            pass
        if array.dtype == object:
            raise DataError(f"{name}: found dtype object, expected {KINDS} with rows of one length")
    return array


def readable(name, values):
    """An array in C order of float32, float64, int64, bool, or indices and labels for texts."""
    array = _plain(name, values)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "US":
        labels, codes = np.unique(array.ravel(), return_inverse=True)
        return codes.astype(np.uint32).reshape(array.shape), [str(label) for label in labels]
    if kind == "f" and size <= 8:
        wanted = np.float64 if size == 8 else np.float32
    elif kind == "b":
        wanted = np.bool_
    elif kind in "iu":
        if kind == "u" and size == 8 and array.size and array.max() > np.iinfo(np.int64).max:
            raise DataError(f"{name}: found {array.max()}, expected whole numbers that fit int64")
        wanted = np.int64
    else:
        raise DataError(f"{name}: found dtype {array.dtype}, expected {KINDS}")
    return np.ascontiguousarray(array, dtype=wanted).reshape(array.shape)


def as_f32(name, values):
    """An array in C order of float32."""
    array = _plain(name, values)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name}: found dtype {array.dtype}, expected numbers")
    return np.ascontiguousarray(array, dtype=np.float32).reshape(array.shape)
