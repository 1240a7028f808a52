"""Writes ml.txt beside this file: nodes of ai.onnx.ml, and what ONNX Runtime computes for them.

A case is a line `case OPERATOR VERSION`, its attributes (`ints NAME VALUES`, `floats`, `strings`, `int`,
`float`, `string`, `tensor NAME TYPE VALUES`), its inputs (`input TYPE SHAPE VALUES`) and its outputs.
"""
import itertools
import pathlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "uint8": "u8"}
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
lines = []


def number(value):
    """The shortest text; attributes are of 32 bits."""
    return str(np.float32(value)) if isinstance(value, float) else str(value)


def numbers(values):
    return " ".join(str(value) for value in values.ravel())


def tensor(kind, array):
    shape = ",".join(str(size) for size in array.shape)
    ty = "str" if array.dtype.kind in "OU" else TYPES[str(array.dtype)]
    return f"{kind} {ty} [{shape}] {numbers(array)}".rstrip()


def attribute(name, value):
    if isinstance(value, np.ndarray):
        return tensor(f"tensor {name}", value)
    kinds = {int: "int", float: "float", str: "string"}
    if isinstance(value, list):
        return f"{kinds[type(value[0])]}s {name} {' '.join(map(number, value))}"
    return f"{kinds[type(value)]} {name} {number(value)}"


def case(operator, version, inputs, outputs=1, **attributes):
    attributes = {name: value for name, value in attributes.items() if value is not None}
    given = {f"x{index}": np.asarray(value) for index, value in enumerate(inputs)}
    names = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, list(given), names, domain="ai.onnx.ml")
    for name, value in attributes.items():
        value = numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
        node.attribute.append(helper.make_attribute(name, value))
    element = lambda value: (
        TensorProto.STRING if value.dtype.kind == "U" else helper.np_dtype_to_tensor_dtype(value.dtype)
    )
    infos = [
        helper.make_tensor_value_info(name, element(value), value.shape)
        for name, value in given.items()
    ]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(n) for n in names])
    opsets = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString())
        results = session.run(None, given)
    except Exception as error:
        print("skipped", operator, attributes.get("post_transform"), str(error)[-90:])
        return
    lines.append(f"case {operator} {version}")
    lines.extend(attribute(name, value) for name, value in attributes.items())
    lines.extend(tensor("input", value) for value in given.values())
    for result in results:
        if isinstance(result, list):
            # ONNX Runtime sorts the keys.
            keys = attributes.get("classlabels_int64s") or attributes["classlabels_strings"]
            values = np.array([[row[key] for key in keys] for row in result], np.float32)
            keys = np.array(keys)
            lines.extend([tensor("output", keys), tensor("output", values)])
        else:
            lines.append(tensor("output", result))


TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def trees(count, depth, features, modes, kind, targets, tracks=(0,), scale=1.0, sparse=False):
    """Complete trees with splits at multiples of one half."""
    node = dict(treeids=[], nodeids=[], featureids=[], values=[], modes=[], truenodeids=[], falsenodeids=[])
    if tracks != (0,):
        node["missing_value_tracks_true"] = []
    leaf = dict(treeids=[], nodeids=[], ids=[], weights=[])
    for tree in range(count):
        inner = 2**depth - 1
        for index in range(2 * inner + 1):
            is_leaf = index >= inner
            node["treeids"].append(tree)
            node["nodeids"].append(index)
            node["featureids"].append(0 if is_leaf else int(rng.integers(features)))
            node["values"].append(0.0 if is_leaf else float(rng.integers(-2, 3)) / 2)
            node["modes"].append("LEAF" if is_leaf else str(rng.choice(modes)))
            node["truenodeids"].append(0 if is_leaf else 2 * index + 1)
            node["falsenodeids"].append(0 if is_leaf else 2 * index + 2)
            if tracks != (0,):
                node["missing_value_tracks_true"].append(int(rng.choice(tracks)))
            if not is_leaf:
                continue
            chosen = [targets[tree % len(targets)]] if sparse else targets
            for target in chosen:
                leaf["treeids"].append(tree)
                leaf["nodeids"].append(index)
                leaf["ids"].append(target)
                leaf["weights"].append(float(np.float32(round(scale * rng.uniform(0.02, 1 / count), 3))))
    attributes = {f"nodes_{name}": value for name, value in node.items()}
    attributes.update({f"{kind}_{name}": value for name, value in leaf.items()})
    return attributes


def rows(count, features, dtype=np.float32, missing=True):
    x = rng.integers(-3, 4, (count, features)) / 2
    if missing:
        x[rng.random(x.shape) < 0.15] = np.nan
    return x.astype(dtype)


# Every mode alone and together, with and without tracked missing values; groups of rows and single rows.
for modes, tracks in itertools.product([[mode] for mode in MODES] + [MODES], [(0,), (1,), (0, 1)]):
    forest = trees(3, 2, 2, modes, "target", [0], tracks)
    case("TreeEnsembleRegressor", 3, [rows(11, 2)], n_targets=1, **forest)
for dtype in (np.float64, np.int64, np.int32):
    x = rows(9, 3, dtype, missing=dtype == np.float64)
    case("TreeEnsembleRegressor", 3, [x], n_targets=1, **trees(10, 2, 3, MODES, "target", [0], (0, 1)))
double = trees(3, 2, 3, MODES, "target", [0], (0, 1))
for name in ("nodes_values", "target_weights"):
    double[f"{name}_as_tensor"] = np.array(double.pop(name), np.float64) + 1e-12
double["base_values_as_tensor"] = np.array([0.25], np.float64)
case("TreeEnsembleRegressor", 3, [rows(9, 3, np.float64)], n_targets=1, **double)
for how, base, (targets, sparse) in itertools.product(
    ["SUM", "AVERAGE", "MIN", "MAX"], [False, True], [(1, False), (3, False), (3, True)]
):
    forest = trees(4, 1, 2, MODES[:2], "target", list(range(targets)), sparse=sparse)
    base = [0.5, -0.25, 1.0][:targets] if base else None
    case("TreeEnsembleRegressor", 3, [rows(3, 2)], n_targets=targets, aggregate_function=how,
         base_values=base, **forest)
for transform, targets in itertools.product(TRANSFORMS, [1, 2]):
    forest = trees(2, 1, 2, MODES[:2], "target", list(range(targets)))
    case("TreeEnsembleRegressor", 3, [rows(3, 2)], n_targets=targets, post_transform=transform, **forest)

for classes, transform, count, sign in itertools.product(
    [(1, [0]), (2, [0]), (2, [1]), (2, [0, 1]), (3, [0, 1, 2]), (3, [0, 2])],
    TRANSFORMS, [0, 1, 2, 3], [1.0, -1.0],
):
    (labels, ids) = classes
    # ONNX Runtime leaves a score undefined.
    undefined = transform == "PROBIT" and labels == 2 and (ids == [0] and count < 2)
    if undefined or count == 2 and labels == 1 or sign < 0 and transform not in TRANSFORMS[:2]:
        continue
    forest = trees(2, 1, 2, MODES[:1], "class", ids, scale=sign)
    case("TreeEnsembleClassifier", 3, [rows(3, 2)], 2, classlabels_int64s=list(range(10, 10 + labels)),
         post_transform=transform, base_values=[0.1, 0.2, 0.3][:count] or None, **forest)

# ONNX Runtime exchanges the numbers 1 and 2, softmax and logistic, of the specification.
for how, transform in itertools.product(range(4), [0, 3, 4]):
    case(
        "TreeEnsemble", 5, [rows(9, 2)], n_targets=2, aggregate_function=how, post_transform=transform,
        nodes_modes=np.array([0, 1, 2], np.uint8), nodes_splits=np.array([0.5, -0.5, 1.0], np.float32),
        nodes_featureids=[0, 1, 0], nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[1, 2, 1], nodes_falseleafs=[1, 1, 1], tree_roots=[0, 2],
        leaf_targetids=[0, 1, 0, 1], leaf_weights=np.array([0.1, 0.2, 0.3, 0.4], np.float32),
        nodes_missing_value_tracks_true=[0, 1, 0],
    )
case(
    "TreeEnsemble", 5, [np.array([[1.2, 3.4, -0.12, 1.66, 4.14, 1.77, 3.0, 0.5, np.nan]]).T],
    n_targets=1, nodes_modes=np.array([6, 6, 4], np.uint8),
    nodes_splits=np.array([0, 0, 3.0]), nodes_featureids=[0, 0, 0],
    nodes_truenodeids=[0, 1, 3], nodes_trueleafs=[1, 1, 1], nodes_falsenodeids=[1, 2, 2],
    nodes_falseleafs=[0, 0, 1], tree_roots=[0], leaf_targetids=[0, 0, 0, 0],
    leaf_weights=np.array([1.0, 10, 100, 1000]),
    membership_values=np.array([1.2, 3.7, 8, 9, np.nan, 12, 7, 0.5, np.nan]),
)

for transform, (labels, classes) in itertools.product(TRANSFORMS, [(1, 1), (2, 1), (2, 2), (3, 3)]):
    if transform == "PROBIT" and (labels, classes) == (2, 1):
        continue
    weights = rng.uniform(0, 0.2, classes * 2).astype(np.float32).tolist()
    case("LinearClassifier", 1, [rng.uniform(0, 1, (4, 2)).astype(np.float32)], 2, coefficients=weights,
         intercepts=[0.25, 0.125, 0.3][:classes], classlabels_ints=[5, 7, 9][:labels], post_transform=transform)
for transform, targets in itertools.product(TRANSFORMS, [1, 2]):
    weights = rng.uniform(0, 0.2, targets * 2).astype(np.float32).tolist()
    case("LinearRegressor", 1, [rng.uniform(0, 1, (4, 2)).astype(np.float32)], targets=targets,
         coefficients=weights, intercepts=[0.25, 0.125][:targets], post_transform=transform)

KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
for kernel, degree, one_class in itertools.product(KERNELS, [2.0, 3.0], [0, 1]):
    vectors = rng.uniform(0, 1, 6).astype(np.float32).tolist()
    case("SVMRegressor", 1, [rng.uniform(0, 1, (4, 2)).astype(np.float32)], kernel_type=kernel,
         kernel_params=[0.5, 0.25, degree], support_vectors=vectors, n_supports=3, rho=[-0.25],
         coefficients=[0.5, -0.75, 1.0], one_class=one_class)
case("SVMRegressor", 1, [rng.uniform(0, 1, (4, 2)).astype(np.float32)], kernel_type="LINEAR",
     kernel_params=[0.5, 0.25, 3.0], n_supports=0, rho=[-0.25], coefficients=[0.5, -0.75])
for kernel, transform, classes, probabilities in itertools.product(
    KERNELS, TRANSFORMS, [2, 3, 4], [False, True]
):
    if transform == "PROBIT" and not probabilities or (kernel != "RBF" and transform != "NONE"):
        continue
    count, pairs = 2 * classes, classes * (classes - 1) // 2
    draw = lambda size, low=-1.0: rng.uniform(low, 1, size).astype(np.float32).tolist()
    case("SVMClassifier", 1, [rng.uniform(-1, 1, (4, 2)).astype(np.float32)], 2, kernel_type=kernel,
         kernel_params=[0.5, 0.25, 3.0], support_vectors=draw(2 * count), vectors_per_class=[2] * classes,
         coefficients=draw((classes - 1) * count), rho=draw(pairs), post_transform=transform,
         prob_a=draw(pairs, 0.5) if probabilities else None,
         prob_b=draw(pairs, -0.5) if probabilities else None, classlabels_ints=list(range(3, 3 + classes)))
for classes, positive in itertools.product([2, 3], [0.0, -1.0]):
    weights = rng.uniform(positive, 1, 2 * classes).astype(np.float32).tolist()
    case("SVMClassifier", 1, [rng.uniform(-1, 1, (4, 2)).astype(np.float32)], 2, kernel_type="LINEAR",
         kernel_params=[0.5, 0.25, 3.0], coefficients=weights, rho=[0.125],
         classlabels_ints=list(range(3, 3 + classes)))

x = np.array([[3, -4, 0], [0, 0, 0], [-1, -2, -5]], np.float32)
for norm in ("MAX", "L1", "L2"):
    case("Normalizer", 1, [x], norm=norm)
case("Scaler", 1, [x], offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, 1.0])
case("Scaler", 1, [x.astype(np.int64)], offset=[1.0], scale=[0.5])
case("Imputer", 1, [x], imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=0.0)
case("Imputer", 1, [np.where(x == 0, np.nan, x).astype(np.float32)], imputed_value_floats=[7.0],
     replaced_value_float=float("nan"))
case("Imputer", 1, [x.astype(np.int64)], imputed_value_int64s=[7], replaced_value_int64=-4)
case("Binarizer", 1, [x], threshold=-1.5)
for values in (np.array([[1, 5], [2, 9]]), np.array([1, 7, 2], np.int32), np.array([[1.0, 2.0]], np.float32)):
    case("OneHotEncoder", 1, [values], cats_int64s=[2, 1, 7], zeros=1)
case("OneHotEncoder", 1, [np.array([2, 1])], cats_int64s=[2, 1], zeros=0)
case("FeatureVectorizer", 1, [x, x[:, :2]], inputdimensions=[3, 2])
case("FeatureVectorizer", 1, [x.astype(np.int64), x[:, :1].astype(np.int64)], inputdimensions=[2, 3])
case("ArrayFeatureExtractor", 1, [x, np.array([2, 0])])
case("LabelEncoder", 2, [np.array([1, 3, 5])], keys_int64s=[1, 3], values_floats=[0.5, 1.5], default_float=9.0)
case("LabelEncoder", 2, [x], keys_floats=[0.0, 3.0], values_int64s=[4, 5], default_int64=-7)
case("LabelEncoder", 2, [np.array([1, 3, 5])], keys_int64s=[1, 3], values_int64s=[3, 1])
case("ZipMap", 1, [x], classlabels_int64s=[4, 2, 9])

letters = np.array(["b", "a", "x"])
case("LabelEncoder", 1, [letters], classes_strings=["a", "b"])
case("LabelEncoder", 1, [np.array([0, 1, 2])], classes_strings=["a", "b"], default_string="none")
case("LabelEncoder", 2, [letters], keys_strings=["a", "b"], values_int64s=[4, 5])
case("LabelEncoder", 2, [letters], keys_strings=["a", "b"], values_strings=["c", "d"])
case("LabelEncoder", 2, [np.array([1, 3, 5])], keys_int64s=[1, 3], values_strings=["c", "d"], default_string="e")
case("LabelEncoder", 2, [letters], keys_strings=["a", "b"], values_floats=[0.5, 2.5], default_float=1.0)
case("CategoryMapper", 1, [letters], cats_strings=["a", "b"], cats_int64s=[7, 8])
case("CategoryMapper", 1, [np.array([8, 7, 1])], cats_strings=["a", "b"], cats_int64s=[7, 8])
case("OneHotEncoder", 1, [letters], cats_strings=["a", "b"])
case("ZipMap", 1, [x], classlabels_strings=["u", "w", "v"])
case("TreeEnsembleClassifier", 3, [rows(4, 2)], 2, classlabels_strings=["no", "yes"],
     **trees(2, 1, 2, MODES[:1], "class", [0]))
case("LinearClassifier", 1, [x], 2, classlabels_strings=["u", "w", "v"], intercepts=[0.5, 0.25, 0.0],
     coefficients=[0.5, 0.25, 0.125, 0.0, 1.0, -1.0, 0.25, -0.5, 0.75])

path = pathlib.Path(__file__).with_name("ml.txt")
path.write_text("\n".join(lines) + "\n")
print(sum(line.startswith("case") for line in lines), "cases,", path.stat().st_size, "bytes")
