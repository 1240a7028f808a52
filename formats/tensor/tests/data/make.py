"""Writes numpy.npz beside this file: the forms of array that numpy saves (numpy 2.4.6)."""
import pathlib

import numpy as np

grid = np.arange(6, dtype=np.float32).reshape(2, 3)
np.savez_compressed(
    pathlib.Path(__file__).with_name("numpy.npz"),
    c_order=grid,
    fortran_order=np.asfortranarray(grid),
    half=np.float16([0.1, 65504]),
    scalar=np.int64(-5),
    flags=np.array([True, False]),
    empty=np.zeros((0, 3), np.uint8),
)
