"""Writes numpy.npz: one array of every dtype, order and layout that NumPy can save. Run with numpy 1.24 or so."""
import numpy as np

a = np.arange(6).reshape(2, 3)
arrays = {}
for t in ["u1", "i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8", ">i2", ">i4", ">i8", ">f2", ">f4", ">f8"]:
    arrays[t.replace("<", "").replace(">", "big_")] = a.astype(t)
arrays["bool"] = a % 2 == 0
arrays["fortran"] = np.asfortranarray(np.arange(24, dtype="f4").reshape(2, 3, 4))
arrays["scalar"] = np.array(2.5)
arrays["one"] = np.arange(3, dtype="f4")
arrays["empty"] = np.zeros((0, 3), "f4")
np.savez_compressed("numpy.npz", **arrays)
