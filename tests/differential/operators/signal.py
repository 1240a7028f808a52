"""Windows and Fourier transforms."""
import numpy as np
from onnx import TensorProto as T

from operators import operator


def register_windows():
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        def window(g, name=name):
            size = g.ints(g.int(1, 16), g.choice((T.INT64, T.INT32)))
            g.node(name, [size], periodic=g.choice((None, 0, 1)), output_datatype=g.choice((None, T.FLOAT, T.DOUBLE)))
        operator(name, 17, weight=0.5)(window)


register_windows()


def finite(value):
    """Whether no product with 0 is NaN."""
    return bool(np.isfinite(value.array).all())


@operator("MelWeightMatrix", 17, weight=0.5)
def mel_weight_matrix(g):
    number = lambda value: g.constant(np.float32(value))
    g.node("MelWeightMatrix", [g.ints(g.int(2, 6)), g.ints(g.choice((16, 32))), g.ints(8000), number(0), number(4000)])


@operator("DFT", 17)
def dft(g):
    inverse = g.chance(0.3)
    parts = 2 if inverse or g.chance(0.5) else 1
    x = g.pick((T.FLOAT, T.DOUBLE), shape=(g.int(1, 2), g.int(1, 9), parts), where=finite)
    onesided = 1 if x.shape[2] == 1 and g.chance(0.4) else None
    if g.opset >= 20:
        g.node("DFT", [x, None, g.ints(1)], inverse=int(inverse) or None, onesided=onesided)
    else:
        g.node("DFT", [x], axis=1, inverse=int(inverse) or None, onesided=onesided)


@operator("STFT", 17)
def stft(g):
    length = g.int(2, 6)
    signal = g.pick(T.FLOAT, shape=(g.int(1, 2), length + g.int(0, 12), 1), where=finite)
    window = g.pick(T.FLOAT, shape=(length,), where=finite)
    g.node("STFT", [signal, g.ints(g.int(1, 3)), window, g.ints(length)], onesided=g.choice((None, 0, 1)))
