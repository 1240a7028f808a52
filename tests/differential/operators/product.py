"""Matrix products."""
from onnx import TensorProto as T

from operators import operator
from values import FLOATS

EQUATIONS = ("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "i,j->ij", "bhid,bhjd->bhij", "ij,j->i",
             "...ij,...jk->...ik", "ij->", "ij,kj")


@operator("MatMul", 9, weight=3)
def matmul(g):
    x = g.pick(FLOATS + (T.INT32, T.INT64, T.UINT32), range(1, 5))
    batch = x.shape[:-2] if g.chance(0.5) else ()
    batch = tuple(1 if g.chance(0.2) else size for size in batch)
    shape = (x.shape[-1],) if g.chance(0.15) else (*batch, x.shape[-1], None)
    g.node("MatMul", [x, g.pick(x.element, shape=shape)])


@operator("Gemm", 11, weight=2)
def gemm(g):
    a = g.pick(FLOATS + (T.INT32,), 2)
    left, right = g.chance(0.4), g.chance(0.4)
    depth, rows = a.shape if left else a.shape[::-1]
    b = g.pick(a.element, shape=(None, depth) if right else (depth, None))
    columns = b.shape[0 if right else 1]
    inputs = [a, b]
    if g.chance(0.7):
        inputs.append(g.pick(a.element, shape=g.choice(((), (columns,), (rows, 1), (1, columns), (rows, columns)))))
    whole = a.element == T.INT32
    factor = lambda: None if whole or g.chance(0.5) else g.choice((0.5, 2.0, -0.25))
    g.node("Gemm", inputs, alpha=factor(), beta=factor(), transA=int(left) or None, transB=int(right) or None)


@operator("Einsum", 12)
def einsum(g):
    equation = g.choice(EQUATIONS)
    sizes = {letter: g.int(1, 5) for letter in "abcdefghijkl"}
    terms = equation.split("->")[0].split(",")
    shape = lambda term: tuple(sizes[letter] for letter in term.replace("...", "b"))
    element = g.choice((T.FLOAT, T.FLOAT, T.DOUBLE, T.INT64))
    g.node("Einsum", [g.pick(element, shape=shape(term)) for term in terms], equation=equation)


@operator("MatMulInteger", 10)
def matmul_integer(g):
    # The sum of no products is not 0 in ONNX Runtime.
    a = g.pick((T.UINT8, T.INT8), range(2, 4), where=lambda value: value.array.size > 0)
    b = g.pick((T.UINT8, T.INT8), shape=(a.shape[-1], None))
    inputs = [a, b]
    if g.chance(0.7):
        inputs.append(g.pick(a.element, shape=()))
        if g.chance(0.7):
            inputs.append(g.pick(b.element, shape=g.choice(((), (b.shape[1],)))))
    g.node("MatMulInteger", inputs)


@operator("Det", 11)
def det(g):
    size = g.int(1, 4)
    g.node("Det", [g.pick(T.FLOAT, shape=(*g.new_shape(g.int(0, 2)), size, size))])


@operator("FusedMatMul", 11, weight=0.5)
def fused_matmul(g):
    x = g.pick(T.FLOAT, 2)
    left, right = g.chance(0.5), g.chance(0.5)
    depth = x.shape[0 if left else 1]
    y = g.pick(T.FLOAT, shape=(None, depth) if right else (depth, None))
    g.node("FusedMatMul", [x, y], domain="com.microsoft", alpha=0.5, transA=int(left), transB=int(right))
