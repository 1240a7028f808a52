//! Element-wise ops: one generic, one scalar expression.
use super::{
    Held, Lowered,
    element::{Element, Kind},
    generic::{Access, Emitter, Loops, Scope},
    squeezed, wide_dims,
};
use irc_mlir::{OperationRef, Value, attr, read};

/// Lowers an element-wise op, casts and explicit broadcasts included.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
) -> Result<Held<'c, 'a>, String> {
    let name = read::op_name(&op);
    let kind = name.strip_prefix("tl.").unwrap_or(&name);
    if !KINDS.contains(&kind) {
        return Err("has no lowering to linalg".to_owned());
    }
    let nearest = read::string(&op, "rounding").as_deref() == Some("nearest_even");
    Ok(map(emitter, operands, shape, element, |scope, scalars| {
        scalar(scope, kind, scalars, operands, element, nearest)
    }))
}

const KINDS: [&str; 15] = [
    "add",
    "sub",
    "mul",
    "div",
    "max",
    "exp",
    "relu",
    "gelu",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "round_tf32",
    "cast",
    "broadcast",
    "copy",
];

/// A generic over `shape` whose body sees one scalar per operand, splats included.
pub fn map<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
    body: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
) -> Held<'c, 'a> {
    let loops = wide_dims(shape);
    let mut inputs = Vec::new();
    for operand in operands {
        if let Held::Tensor(tensor) = operand.held {
            let shift = shape.len() - operand.shape.len();
            let along = wide_dims(&operand.shape)
                .into_iter()
                .filter_map(|dim| loops.iter().position(|wide| *wide == dim + shift));
            inputs.push(Access { tensor, loops: along.collect() });
        }
    }
    let output = emitter.empty(&squeezed(shape), element);
    let access = Access { tensor: output, loops: (0..loops.len()).collect() };
    let result = emitter.generic(&inputs, access, &Loops::parallel(loops.len()), |scope, given| {
        let mut given = given.iter();
        let scalars: Vec<Value> = operands
            .iter()
            .filter_map(|operand| match operand.held {
                Held::Tensor(_) => given.next().copied(),
                Held::Splat(number) => Some(scope.constant(operand.element, number)),
            })
            .collect();
        body(scope, &scalars)
    });
    Held::Tensor(result)
}

fn scalar<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    kind: &str,
    scalars: &[Value<'c, '_>],
    operands: &[Lowered<'c, '_>],
    element: Element<'c>,
    nearest: bool,
) -> Value<'c, 'b> {
    if kind == "cast" {
        return cast(scope, scalars[0], operands[0].element, element, nearest);
    }
    if matches!(kind, "broadcast" | "copy") {
        return irc_mlir::rebind(scalars[0]);
    }
    let wide: Vec<Value> = scalars
        .iter()
        .zip(operands)
        .map(|(value, operand)| widen(scope, *value, operand.element))
        .collect();
    let compute = element.compute(scope.context);
    let done = arithmetic(scope, kind, &wide, compute);
    narrow(scope, done, element)
}

fn arithmetic<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    kind: &str,
    x: &[Value<'c, '_>],
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let number = |value: f64| scope.constant(ty, value);
    let op = |name: &str, operands: &[Value<'c, '_>]| scope.op(name, operands, ty.storage);
    if let Some(name) = binary_name(kind, ty.kind) {
        return op(name, x);
    }
    match kind {
        "div" => divide_integers(scope, x[0], x[1], ty),
        "exp" => op("math.exp", x),
        "sqrt" => op("math.sqrt", x),
        "rsqrt" => op("arith.divf", &[number(1.0), op("math.sqrt", x)]),
        "relu" if ty.kind == Kind::Float => op("arith.maximumf", &[x[0], number(0.0)]),
        "relu" if ty.kind == Kind::Signed => op("arith.maxsi", &[x[0], number(0.0)]),
        "relu" => irc_mlir::rebind(x[0]),
        "round_tf32" => round_tf32(scope, x[0], ty),
        "sigmoid" => {
            let e = op("math.exp", &[op("arith.negf", x)]);
            op("arith.divf", &[number(1.0), op("arith.addf", &[number(1.0), e])])
        }
        "gelu" => {
            // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
            let square = op("arith.mulf", &[x[0], x[0]]);
            let cube = op("arith.mulf", &[square, x[0]]);
            let inner = op("arith.addf", &[x[0], op("arith.mulf", &[cube, number(0.044_715)])]);
            let scaled = op("arith.mulf", &[inner, number(0.797_884_560_8)]);
            let bracket = op("arith.addf", &[number(1.0), op("math.tanh", &[scaled])]);
            op("arith.mulf", &[op("arith.mulf", &[x[0], number(0.5)]), bracket])
        }
        _ => unreachable!("the kinds are checked before"),
    }
}

/// Half of the last kept bit is added to the bits, which then lose what is below; infinities and NaN
/// stay.
fn round_tf32<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let word = irc_mlir::ty::parse(scope.context, "i32");
    let number = |text: &str| -> Value<'c, '_> {
        let value = attr::parse(scope.context, &format!("{text} : i32"));
        scope.with("arith.constant", &[], word, &[("value", value)])
    };
    let int = |name: &str, a: Value<'c, '_>, b: &str| -> Value<'c, '_> {
        scope.op(name, &[a, number(b)], word)
    };
    let bits: Value = scope.op("arith.bitcast", &[x], word);
    let rounded = int("arith.andi", int("arith.addi", bits, "4096"), "-8192");
    let rounded: Value = scope.op("arith.bitcast", &[rounded], ty.storage);
    let magnitude = int("arith.andi", bits, "0x7fffffff");
    let less_than = attr::i64(scope.context, 2);
    let flag = irc_mlir::ty::parse(scope.context, "i1");
    let finite: Value = scope.with(
        "arith.cmpi",
        &[magnitude, number("0x7f800000")],
        flag,
        &[("predicate", less_than)],
    );
    scope.op("arith.select", &[finite, rounded, x], ty.storage)
}

/// Truncating division that traps nowhere: 0 for a divisor of 0, wrapping for the one quotient that
/// does not fit.
fn divide_integers<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    left: Value<'c, '_>,
    right: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let flag = irc_mlir::ty::parse(scope.context, "i1");
    let (one, zero): (Value, Value) = (scope.constant(ty, 1.0), scope.constant(ty, 0.0));
    let is = |value: Value<'c, '_>| -> Value<'c, '_> {
        let equal = attr::i64(scope.context, 0);
        scope.with("arith.cmpi", &[right, value], flag, &[("predicate", equal)])
    };
    let by_zero = is(zero);
    let mut safe: Value = scope.op("arith.select", &[by_zero, one, right], ty.storage);
    if ty.kind == Kind::Unsigned {
        let quotient: Value = scope.op("arith.divui", &[left, safe], ty.storage);
        return scope.op("arith.select", &[by_zero, zero, quotient], ty.storage);
    }
    let by_minus_one = is(scope.constant(ty, -1.0));
    safe = scope.op("arith.select", &[by_minus_one, one, safe], ty.storage);
    let quotient: Value = scope.op("arith.divsi", &[left, safe], ty.storage);
    let negated: Value = scope.op("arith.subi", &[zero, left], ty.storage);
    let quotient: Value = scope.op("arith.select", &[by_minus_one, negated, quotient], ty.storage);
    scope.op("arith.select", &[by_zero, zero, quotient], ty.storage)
}

fn binary_name(kind: &str, ty: Kind) -> Option<&'static str> {
    Some(match (kind, ty) {
        ("add", Kind::Float) => "arith.addf",
        ("sub", Kind::Float) => "arith.subf",
        ("mul", Kind::Float) => "arith.mulf",
        ("div", Kind::Float) => "arith.divf",
        ("max", Kind::Float) => "arith.maximumf",
        ("add", _) => "arith.addi",
        ("sub", _) => "arith.subi",
        ("mul", _) => "arith.muli",
        ("max", Kind::Signed) => "arith.maxsi",
        ("max", Kind::Unsigned) => "arith.maxui",
        _ => return None,
    })
}

/// To the type arithmetic is done in.
pub fn widen<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
) -> Value<'c, 'b> {
    if from.is_half() {
        scope.op("arith.extf", &[value], Element::f32(scope.context).storage)
    } else {
        irc_mlir::rebind(value)
    }
}

/// Back from the type arithmetic was done in, with one rounding.
pub fn narrow<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    if to.is_half() {
        scope.op("arith.truncf", &[value], to.storage)
    } else {
        irc_mlir::rebind(value)
    }
}

fn cast<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
    nearest: bool,
) -> Value<'c, 'b> {
    match (from.kind, to.kind) {
        (Kind::Float, Kind::Float) => float_to_float(scope, value, from, to),
        (Kind::Float, _) => float_to_integer(scope, value, from, to, nearest),
        (_, Kind::Float) => integer_to_float(scope, value, from, to),
        _ if from.bits == to.bits => irc_mlir::rebind(value),
        _ if from.bits > to.bits => scope.op("arith.trunci", &[value], to.storage),
        (Kind::Signed, _) => scope.op("arith.extsi", &[value], to.storage),
        _ => scope.op("arith.extui", &[value], to.storage),
    }
}

fn float_to_float<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    if from.storage == to.storage {
        return irc_mlir::rebind(value);
    }
    if from.bits == to.bits {
        let wide: Value = widen(scope, value, from);
        return narrow(scope, wide, to);
    }
    let name = if from.bits < to.bits { "arith.extf" } else { "arith.truncf" };
    scope.op(name, &[value], to.storage)
}

fn integer_to_float<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    let name = if from.kind == Kind::Signed { "arith.sitofp" } else { "arith.uitofp" };
    let compute = to.compute(scope.context);
    let wide: Value = scope.op(name, &[value], compute.storage);
    narrow(scope, wide, to)
}

/// Saturates out-of-range values and maps NaN to 0.
fn float_to_integer<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
    nearest: bool,
) -> Value<'c, 'b> {
    let compute = from.compute(scope.context);
    let mut wide: Value = widen(scope, value, from);
    if nearest {
        wide = scope.op("math.roundeven", &[wide], compute.storage);
    }
    let signed = to.kind == Kind::Signed;
    let magnitude = if signed { to.bits - 1 } else { to.bits };
    let above = 2f64.powi(magnitude as i32);
    let (low, high) = (if signed { -above } else { 0.0 }, above);
    let name = if signed { "arith.fptosi" } else { "arith.fptoui" };
    let inside: Value = scope.op(name, &[wide], to.storage);

    let flag = irc_mlir::ty::parse(scope.context, "i1");
    let compare = |predicate: i64, bound: f64| -> Value<'c, '_> {
        let bound: Value = scope.constant(compute, bound);
        scope.with(
            "arith.cmpf",
            &[wide, bound],
            flag,
            &[("predicate", attr::i64(scope.context, predicate))],
        )
    };
    // Constants saturate as well.
    let (lowest, highest): (Value, Value) = (scope.constant(to, low), scope.constant(to, high));
    let (greater_equal, less, unordered) = (3, 4, 14);
    let clipped: Value =
        scope.op("arith.select", &[compare(greater_equal, high), highest, inside], to.storage);
    let clipped: Value =
        scope.op("arith.select", &[compare(less, low), lowest, clipped], to.storage);
    scope.op(
        "arith.select",
        &[compare(unordered, 0.0), scope.constant(to, 0.0), clipped],
        to.storage,
    )
}
