#!/usr/bin/env python3
"""Writes the models of this folder: small ones, each for one thing ARK's files say or leave unsaid.

    make_models.py OUTDIR [--check]

Those of several ranks are `<name>_rank<r>of<n>.model.json`, in `ranks/`. No dependencies.
"""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(here.parents[2] / "examples"))
from make_models import Model, binary, boolean, matmul, real, unary, write, write_model  # noqa: E402

FLOATS = ("FP32", "FP16", "BF16")
INTEGERS = ("INT32", "UINT32", "INT8", "UINT8")


# Meaning of single ops


def matmul_padded(m):
    """Rows, columns and depth are those of the padding; what lies in it takes part."""
    for dtype in FLOATS:
        a = m.tensor([3, 5], dtype, padded=[4, 8])
        b = m.tensor([5, 6], dtype, view=[10, 12], offsets=[1, 2], padded=[8, 8])
        c = m.tensor([3, 6], dtype, padded=[4, 8])
        flags = {"TransposeInput": boolean(False), "TransposeOther": boolean(False)}
        product = m.op("Matmul", [a, b], output=c, **flags)
        # Another op sees the box alone.
        m.op("Relu", [product], [3, 6])


def matmul_forms(m):
    """Transposed, batched with broadcasting, and of one dimension."""
    for left, right in ((False, True), (True, False), (True, True)):
        flags = {"TransposeInput": boolean(left), "TransposeOther": boolean(right)}
        a = m.tensor([2, 1, 5, 3] if left else [2, 1, 3, 5])
        b = m.tensor([4, 7, 5] if right else [4, 5, 7])
        m.op("Matmul", [a, b], [2, 4, 3, 7], **flags)
    flags = {"TransposeInput": boolean(False), "TransposeOther": boolean(False)}
    m.op("Matmul", [m.tensor([6]), m.tensor([6])], [1, 1], **flags)


def broadcast_outputs(m):
    """An output may be larger than its input, which repeats."""
    for kind in ("Copy", "Exp", "Relu"):
        m.op(kind, [m.tensor([3, 1])], output=m.tensor([2, 3, 4]))
    m.op("ScalarMul", [m.tensor([4], "FP16")], output=m.tensor([3, 4], "FP16"), Factor=real(0.1))
    m.op("Cast", [m.tensor([1, 4], "BF16")], output=m.tensor([3, 4], "INT32"))
    m.op("Add", [m.tensor([2, 1, 4]), m.tensor([3, 1])], [2, 3, 4])
    m.op("Div", [m.tensor([4], "INT32"), m.tensor([3, 1], "INT32")], [3, 4])


def unary_kinds(m):
    for dtype in FLOATS:
        for kind in ("Exp", "Gelu", "Relu", "Rsqrt", "Sigmoid", "Sqrt", "Copy"):
            unary(m, kind, m.tensor([5, 7], dtype))
    for dtype in INTEGERS:
        unary(m, "Relu", m.tensor([9], dtype))


def binary_kinds(m):
    for dtype in FLOATS + INTEGERS:
        for kind in ("Add", "Sub", "Mul", "Div"):
            binary(m, kind, m.tensor([3, 5], dtype), m.tensor([5], dtype))


def scalar_kinds(m):
    """Factors are rounded to the type; integers truncate them."""
    for dtype in FLOATS + INTEGERS:
        x = m.tensor([5], dtype)
        m.op("ScalarAdd", [x], [5], Factor=real(2.7))
        m.op("ScalarMul", [x], [5], Factor=real(3.1))
        m.op("ScalarAssign", [], [5], dtype, Value=real(1.1))


def factor_ranges(m):
    """Factors that the type cannot hold saturate: below zero in an unsigned one, or too large."""
    for dtype in INTEGERS:
        x = m.tensor([9], dtype)
        for factor in (-3.0, -0.5, 300.0, 1e10):
            m.op("ScalarAdd", [x], [9], Factor=real(factor))
            m.op("ScalarMul", [x], [9], Factor=real(factor))
            m.op("ScalarAssign", [], [9], dtype, Value=real(factor))


def rope_broadcast(m):
    """Pairs are adjacent; the table of cosines and sines repeats over the outer dimensions."""
    for dtype in FLOATS:
        m.op("Rope", [m.tensor([2, 3, 4, 6], dtype), m.tensor([4, 6], dtype)], [2, 3, 4, 6])


def embedding_rows(m):
    """Indices wrap from the end; the result of one dimension of them has four."""
    for dtype in FLOATS:
        index, table = m.tensor([6], "INT32"), m.tensor([16, 4], dtype)
        m.op("Embedding", [index, table], [1, 1, 6, 4], dtype)
    m.op("Embedding", [m.tensor([2, 3], "INT32"), m.tensor([16, 4])], [1, 2, 3, 4], "FP32")


def transpose_cycles(m):
    """Dimension i of the result is dimension Permutation[i] of the input."""
    for permutation in ([1, 2, 0], [2, 0, 1], [2, 1, 0]):
        shape = [2, 3, 4]
        permuted = [shape[axis] for axis in permutation]
        m.op("Transpose", [m.tensor(shape)], permuted, Permutation={"DIMS": permutation})
    m.op("Transpose", [m.tensor([2, 3, 4, 5], "FP16")], [5, 2, 4, 3],
         Permutation={"DIMS": [3, 0, 2, 1]})


def cast_pairs(m):
    for source in FLOATS + INTEGERS:
        x = m.tensor([24], source)
        scaled = m.op("ScalarMul", [x], [24], Factor=real(1.5)) if source in FLOATS else x
        for target in FLOATS + INTEGERS:
            if target != source:
                m.op("Cast", [scaled], [24], target)


def reduce_axes(m):
    for dtype in FLOATS + ("INT32", "UINT32"):
        for kind in ("ReduceSum", "ReduceMax", "ReduceMean"):
            for axis in range(3):
                for keep in (True, False):
                    shape = [3, 4, 37]
                    shape[axis:axis + 1] = [1] if keep else []
                    flags = {"Axis": {"INT": axis}, "KeepDim": boolean(keep)}
                    m.op(kind, [m.tensor([3, 4, 37], dtype)], shape, **flags)


def accumulation(m):
    """Long sums of numbers of one sign, which 16-bit accumulators lose digits of."""
    for dtype in FLOATS:
        x = unary(m, "Relu", m.tensor([4, 2048], dtype))
        for axis, shape in ((1, [4, 1]), (0, [1, 2048])):
            for kind in ("ReduceSum", "ReduceMean", "ReduceMax"):
                flags = {"Axis": {"INT": axis}, "KeepDim": boolean(True)}
                m.op(kind, [x], shape, **flags)
        weight = unary(m, "Relu", m.tensor([2048, 24], dtype))
        matmul(m, x, weight)
        m.op("ReduceSum", [weight], [1, 24], Axis={"INT": 0}, KeepDim=boolean(True))
        ones = m.op("ScalarAssign", [], [8192, 3], dtype, Value=real(1.0))
        m.op("ReduceSum", [ones], [3], Axis={"INT": 0}, KeepDim=boolean(False))
        m.op("ReduceSum", [m.tensor([5, 77], dtype)], [5], Axis={"INT": 1}, KeepDim=boolean(False))


# Memory


def hazard_war(m):
    """No edge says so, but the second op overwrites what the first must have read."""
    x = m.tensor([64])
    unary(m, "Exp", x)
    m.op("ScalarAssign", [], output=x, Value=real(3.0))


def hazard_raw_alias(m):
    """The second op reads the bytes that the first wrote, through another view, without an edge."""
    buffer = m.buffer()
    x = m.tensor([8, 8], buffer=buffer)
    m.op("ScalarMul", [m.tensor([8, 8])], output=x, Factor=real(2.0))
    unary(m, "Exp", m.tensor([32], buffer=buffer, view=[64], offsets=[32]))


def hazard_waw(m):
    """Two ops write parts of one buffer that overlap: the later one wins."""
    buffer = m.buffer()
    low = m.tensor([40], buffer=buffer, view=[64])
    high = m.tensor([40], buffer=buffer, view=[64], offsets=[24])
    m.op("Exp", [m.tensor([40])], output=low)
    m.op("Relu", [m.tensor([40])], output=high)


def identity_deps(m):
    """An edge that no tensor shows: `identity(x, [y])` of ARK, its virtual node removed."""
    first = m.op("Exp", [m.tensor([16])], [16])
    m.op("Relu", [m.tensor([16])], [16], after=[first])


def windows(m):
    """Outputs that are boxes of larger buffers: constants, copies, and what is computed there."""
    for dtype in FLOATS + ("UINT8",):
        boxes = (([2], [11], [0]), ([12, 16], [15, 18], [2, 2]), ([3, 1, 5, 2], [11, 3, 9, 6], [8, 1, 2, 3]))
        for shape, view, offsets in boxes:
            place = m.tensor(shape, dtype, view=view, offsets=offsets)
            m.op("ScalarAssign", [], output=place, Value=real(2.5))
            m.op("Copy", [m.tensor([1], dtype)], output=m.tensor(shape, dtype, view=view, offsets=offsets))
    place = m.tensor([4, 3], view=[6, 9], offsets=[1, 5])
    m.op("Transpose", [m.tensor([3, 4])], output=place, Permutation={"DIMS": [1, 0]})
    sums = m.tensor([4, 1], view=[6, 9], offsets=[1, 8])
    m.op("ReduceSum", [place], output=sums, Axis={"INT": 1}, KeepDim=boolean(True))


def in_place_views(m):
    """Shards of one buffer, rewritten in place, read as a whole."""
    buffer = m.buffer()
    shards = [m.tensor([4, 8], "FP16", buffer, [8, 8], [row, 0]) for row in (0, 4)]
    whole = m.tensor([8, 8], "FP16", buffer)
    for kind, shard in zip(("Exp", "Sigmoid"), shards):
        m.op(kind, [shard], output=shard)
    m.op("ReduceSum", [whole], [8, 1], Axis={"INT": 1}, KeepDim=boolean(True))


def virtual_nodes(m):
    """A file before ARK compresses it: nodes that only name memory. ARK never wrote `Reshape`."""
    whole = virtual(m, "Tensor", [], m.tensor([8, 8]))
    left, right = (virtual(m, "Tensor", [whole], m.tensor(
        [8, 4], buffer=whole["Buffer"], view=[8, 8], offsets=[0, column])) for column in (0, 4))
    place = virtual(m, "Tensor", [], m.tensor([8, 4]))
    total = m.op("Add", [left, right], output=place, after=[place])
    flat = virtual(m, "Reshape", [total], m.tensor([32], buffer=total["Buffer"]))
    unary(m, "Exp", virtual(m, "Tensor", [flat], m.again(flat)))
    m.op("Noop", [whole], output=whole)
    m.nodes[-1]["Op"].update({"WriteTensors": [], "ResultTensors": []})


def virtual(m, kind, reads, result):
    """A node that names memory and computes nothing."""
    named = m.op(kind, reads, output=result)
    op = m.nodes[-1]["Op"]
    op.update({"IsVirtual": True, "WriteTensors": []})
    return named


# Several ranks


def all_reduce(m, elements=96):
    """ARK's: a copy, then with each peer in turn Send, SendDone, Recv, Add in place."""
    rank, world, tag = m.rank, m.world_size, -2147483648
    peers = [peer for peer in range(world) if peer != rank]
    given = m.tensor([elements], "FP16")
    source = m.tensor([elements], "FP16", m.buffer(send=[(peer, tag + rank) for peer in peers]))
    scaled = m.op("ScalarMul", [given], output=source, Factor=real(rank + 1))
    total = m.op("Copy", [scaled], [elements])
    before = []
    for step in range(1, world):
        to, origin = (rank + step) % world, (rank - step) % world
        there = m.tensor([elements], "FP16", m.buffer(to, receive=[(-1, tag + rank)]))
        sent = m.op("Send", [scaled], output=there, after=before)
        send_done(m, sent)
        received = receive(m, origin, tag + origin, [elements])
        total = m.op("Add", [total, received], output=total)
        before = [received]


def send_done(m, sent):
    """SendDone writes nothing."""
    result = m.op("SendDone", [sent], output=sent)
    op = m.nodes[-1]["Op"]
    op["WriteTensors"] = []
    return result


def receive(m, origin, tag, shape):
    here = m.tensor(shape, "FP16", m.buffer(receive=[(origin, tag)]))
    away = m.tensor(shape, "FP16", m.buffer(origin, send=[(-1, tag)]))
    return m.op("Recv", [away], output=here)


def packet_reduce(m, elements=64):
    """Two ranks: each sends the half that the other reduces, and receives the other's sum."""
    rank, half, flag = m.rank, elements // 2, {"UINT32": 7}
    peer, data = 1 - rank, m.buffer()
    mine = m.tensor([half], "FP16", data, [elements], [rank * half])
    other = m.tensor([half], "FP16", data, [elements], [peer * half])
    packets = 2 * 2 * half
    there = [m.tensor([packets], "UINT8", m.buffer(peer, receive=[(-1, tag)])) for tag in (0, 1)]
    here = [m.tensor([packets], "UINT8", m.buffer(receive=[(peer, tag)])) for tag in (0, 1)]
    m.op("SendPacket", [other], output=there[0], Flag=flag)
    m.op("RecvReduceSendPacket", [mine, here[0]], output=mine, peers=[there[1]], Flag=flag,
         NPeers={"UINT32": 1}, Rank={"INT": rank})
    away = m.tensor([half], "FP16", m.buffer(peer))
    m.op("RecvPacket", [away, here[1]], output=other, Flag=flag)


def reduce_send(m, elements=60):
    """Every rank reduces a share: shares are sent to where they are reduced, sums to everybody."""
    rank, world = m.rank, m.world_size
    share, peers = elements // world, [peer for peer in range(world) if peer != rank]
    data = m.buffer(send=[(p, 0) for p in peers], receive=[(p, 1) for p in peers])
    part = [m.tensor([share], "FP16", data, [elements], [r * share]) for r in range(world)]
    scratch = m.tensor([share * len(peers)], "FP16", m.buffer(receive=[(p, 0) for p in peers]))
    sent = []
    for peer in peers:
        slot = (rank if rank < peer else rank - 1) * share
        there = m.tensor([share], "FP16", m.buffer(peer, receive=[(-1, 0)]),
                         [share * len(peers)], [slot])
        sent.append(m.op("Send", [part[peer]], output=there))
    counts = {"PeerNum": {"INT": len(peers)}, "Rank": {"INT": rank}}
    all_data = m.tensor([elements], "FP16", data)
    synced = m.op("DeviceSync", [all_data], output=m.again(all_data), after=sent, **counts)
    there = [m.tensor([share], "FP16", m.buffer(peer, receive=[(-1, 1)]), [elements], [rank * share])
             for peer in peers]
    m.op("RecvReduceSend", [part[rank], scratch], output=part[rank], peers=there, after=[synced],
         NPeers={"UINT32": len(peers)}, Rank={"INT": rank})
    for peer in peers:
        away = m.tensor([share], "FP16", m.buffer(peer, send=[(-1, 1)]), [elements], [peer * share])
        m.op("Recv", [away], output=part[peer], after=[synced])
    m.op("DeviceSync", [all_data], output=m.again(all_data), **counts)


MODELS = [
    matmul_padded, matmul_forms, broadcast_outputs, unary_kinds, binary_kinds, scalar_kinds,
    factor_ranges, rope_broadcast, embedding_rows, transpose_cycles, cast_pairs, reduce_axes, accumulation,
    hazard_war, hazard_raw_alias, hazard_waw, identity_deps, windows, in_place_views,
    virtual_nodes,
]
RANKED = [(all_reduce, 2), (all_reduce, 4), (packet_reduce, 2), (reduce_send, 3)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare with OUTDIR, write nothing")
    args = parser.parse_args()
    for build in MODELS:
        write(args.outdir, build.__name__, build, args.check)
    if not args.check:
        (args.outdir / "ranks").mkdir(parents=True, exist_ok=True)
    for build, world in RANKED:
        for rank in range(world):
            model = Model(rank, world)
            build(model)
            name = f"{build.__name__}_rank{rank}of{world}"
            write_model(args.outdir / "ranks", name, model, args.check)


if __name__ == "__main__":
    main()
