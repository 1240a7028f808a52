"""Recurrent layers."""
from onnx import TensorProto as T

from operators import operator

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def register_layers():
    for name, gates in GATES.items():
        def layer(g, name=name, gates=gates):
            length, batch, width, hidden = g.int(1, 5), g.int(1, 3), g.int(1, 4), g.int(1, 4)
            direction = g.choice((None, "forward", "reverse", "bidirectional"))
            ways = 2 if direction == "bidirectional" else 1
            part = lambda *shape: g.pick(T.FLOAT, shape=shape, low=-2, high=2)
            inputs = [part(length, batch, width), part(ways, gates * hidden, width), part(ways, gates * hidden, hidden)]
            inputs.append(part(ways, 2 * gates * hidden) if g.chance(0.6) else None)
            inputs.append(g.ints([g.int(1, length) for _ in range(batch)], T.INT32) if g.chance(0.3) else None)
            if g.chance(0.5):
                inputs.append(part(ways, batch, hidden))
                if name == "LSTM":
                    inputs.append(part(ways, batch, hidden))
                    if g.chance(0.3):
                        inputs.append(part(ways, 3 * hidden))
            while inputs[-1] is None:
                inputs.pop()
            extra = {"linear_before_reset": g.choice((None, 1))} if name == "GRU" else {}
            if g.chance(0.2):
                extra["clip"] = 1.5
            g.node(name, inputs, 3 if name == "LSTM" else 2, hidden_size=hidden, direction=direction, **extra)
        operator(name, 7)(layer)


register_layers()
