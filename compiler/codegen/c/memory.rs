//! Memory: addresses, loads and stores, masked loads and stores, the stack, and copies.
use super::{
    super::{
        inst::{Atomic, ElementPointer},
        layout::{self, Element, Shape},
    },
    arithmetic::{lane_of, to_lane},
    function::{Body, Op, Parts, Result, no_translation, unsupported},
    types::{self, Lane, declared, padded},
    unit::Unit,
};
use irc_mlir::{OperationLike, llvm::Type};
use std::fmt::Write;

/// Maximum stack size of one `alloca` in bytes.
const MAX_STACK: u64 = u32::MAX as u64;

impl Body<'_> {
    /// Translates a load.
    pub fn load_value(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let ty = self.result_type(op)?;
        let address = self.scalar(op, 0)?;
        let leaves = layout::leaves(&ty).ok_or_else(|| unsupported(op, "this type"))?;
        let mut parts = Parts::new();
        for (shape, offset) in leaves {
            let value = self.load(op, shape, &at(&address, offset))?;
            parts.push(self.name(shape, &value));
        }
        self.define_parts(op, parts)
    }

    /// Translates a store.
    pub fn store_value(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let (ty, value) = (self.operand_type(op, 0)?, self.parts(op, 0)?);
        let address = self.scalar(op, 1)?;
        let leaves = layout::leaves(&ty).ok_or_else(|| unsupported(op, "this type"))?;
        for ((shape, offset), part) in leaves.into_iter().zip(value) {
            self.store(op, shape, &at(&address, offset), &part)?;
        }
        Ok(())
    }

    fn load(&mut self, op: &Op<'_, '_>, shape: Shape, address: &str) -> Result<String> {
        match (shape.element, shape.lanes) {
            (Element::Int(1), Some(lanes)) => {
                let name = self.unit.load_of_bits(packed(op, lanes)?);
                Ok(self.mask_of_bits(lanes, &format!("{name}({address})")))
            }
            (Element::Int(1), None) => {
                let name = self.unit.load_of(Shape::scalar(Element::Int(8)));
                Ok(format!("({name}({address}) & 1) != 0"))
            }
            _ => Ok(format!("{}({address})", self.unit.load_of(shape))),
        }
    }

    fn store(&mut self, op: &Op<'_, '_>, shape: Shape, address: &str, value: &str) -> Result<()> {
        let pointer = Shape::scalar(Element::Pointer);
        let call = match (shape.element, shape.lanes) {
            (Element::Int(1), Some(lanes)) => {
                let name = self.unit.store_of_bits(packed(op, lanes)?);
                let bits = self.bits_of_mask(lanes, value);
                format!("{name}({address}, {bits})")
            }
            (Element::Int(1), None) => {
                let name = self.unit.store_of(Shape::scalar(Element::Int(8)));
                format!("{name}({address}, {value})")
            }
            _ => {
                let name = self.unit.store_of(shape);
                self.invoke(&name, &[(pointer, address), (shape, value)])
            }
        };
        self.line(&format!("{call};"));
        Ok(())
    }

    /// Translates the computation of an address.
    pub fn element_pointer(&mut self, op: Op<'_, '_>, steps: &ElementPointer) -> Result<()> {
        let (base_shape, base) = self.operand(&op, 0)?;
        let to = self.result_shape(&op)?;
        let mut terms = Vec::new();
        for (operand, stride) in steps.strides.iter().enumerate() {
            terms.push(self.distance(&op, to, operand + 1, *stride)?);
        }
        if steps.offset != 0 || terms.is_empty() {
            terms.push(if steps.offset < 0 {
                format!("0x{:x}ull", steps.offset)
            } else {
                steps.offset.to_string()
            });
        }
        let offset = terms.join(" + ");
        if to.lanes.is_some() {
            let base = match base_shape.lanes {
                Some(_) => base,
                None => self.splat(to, &base),
            };
            return self.define(&op, &format!("{base} + ({offset})"));
        }
        if offset == "0" {
            return self.define_parts(&op, vec![base]);
        }
        let address = match (steps.inbounds, terms.as_slice()) {
            (true, [one]) if steps.offset > 0 && steps.strides.is_empty() => {
                format!("(char *){base} + {one}")
            }
            (true, _) => format!("(char *){base} + (int64_t)({offset})"),
            // May leave the object, which C's pointer arithmetic does not allow.
            (false, _) => format!("(void *)((uint64_t){base} + {offset})"),
        };
        self.define(&op, &address)
    }

    /// The product of a stride and an index that is a value.
    fn distance(
        &mut self,
        op: &Op<'_, '_>,
        to: Shape,
        operand: usize,
        stride: u64,
    ) -> Result<String> {
        let (shape, index) = self.operand(op, operand)?;
        let wide = shape.of(Element::Int(64));
        let index = self.integer(shape, wide, &index, true);
        let mut index = index.ok_or_else(|| unsupported(op, "this index"))?;
        if shape.lanes.is_none() && to.lanes.is_some() {
            index = self.splat(to.of(Element::Int(64)), &index);
        }
        Ok(if stride == 1 { index } else { format!("{index} * {stride}u") })
    }

    /// A variable that is live for the whole call: all executions of an `alloca` in a loop share one.
    pub fn alloca(&mut self, op: Op<'_, '_>, ty: &Type, align: u64) -> Result<()> {
        let count = self.known(&op, 0);
        let count = count.ok_or_else(|| unsupported(&op, "a number that is no constant"))?;
        let bytes = layout::size(ty).and_then(|size| size.checked_mul(count));
        let bytes = bytes.filter(|bytes| *bytes <= MAX_STACK);
        let bytes = bytes.ok_or_else(|| unsupported(&op, "this size"))?.max(1);
        let name = self.fresh("s");
        let _ = writeln!(self.variables, "  _Alignas({align}) char {name}[{bytes}];");
        self.define_parts(&op, vec![format!("(void *){name}")])
    }

    /// A masked load, from one address on or from an address per lane. Masked-off lanes are not accessed.
    pub fn masked_load(&mut self, op: &Op<'_, '_>) -> Result<String> {
        let shape = self.result_shape(op)?;
        let Some(lanes) = shape.lanes else { return Err(no_translation(op)) };
        if shape.element == Element::Int(1) {
            return Err(unsupported(op, "lanes of one bit"));
        }
        let (from, address) = self.operand(op, 0)?;
        let (mask_shape, mask) = self.operand(op, 1)?;
        let other = match op.operand_count() {
            0..3 => self.name(shape, "{0}"),
            _ => self.operand(op, 2)?.1,
        };
        let name = masked_name("load", from, types::short(shape));
        self.unit.helper(&name, |unit| {
            let one = unit.load_of(Shape::scalar(shape.element));
            let parameters = [(from, "p"), (mask_shape, "mask"), (shape, "other")];
            let ty = unit.ty(shape);
            let mut text = unit.head(&ty, &name, &parameters) + &format!("  {ty} x = other;\n");
            for lane in 0..lanes {
                let value = format!("{one}({})", lane_address(from, shape.element, lane));
                let value = to_lane(shape.element, &value);
                let _ = writeln!(text, "  if (mask[{lane}]) x[{lane}] = {value};");
            }
            text + "  return x;\n}\n"
        });
        Ok(self.invoke(&name, &[(from, &address), (mask_shape, &mask), (shape, &other)]))
    }

    /// A masked store, see [`Body::masked_load`].
    pub fn masked_store(&mut self, op: Op<'_, '_>) -> Result<()> {
        let (shape, value) = self.operand(&op, 0)?;
        let Some(lanes) = shape.lanes else { return Err(no_translation(&op)) };
        if shape.element == Element::Int(1) {
            return Err(unsupported(&op, "lanes of one bit"));
        }
        let (to, address) = self.operand(&op, 1)?;
        let (mask_shape, mask) = self.operand(&op, 2)?;
        let name = masked_name("store", to, types::short(shape));
        self.unit.helper(&name, |unit| {
            let one = unit.store_of(Shape::scalar(shape.element));
            let parameters = [(to, "p"), (mask_shape, "mask"), (shape, "x")];
            let mut text = unit.head("void", &name, &parameters);
            for lane in 0..lanes {
                let (address, value) =
                    (lane_address(to, shape.element, lane), lane_of(shape.element, "x", lane));
                let _ = writeln!(text, "  if (mask[{lane}]) {one}({address}, {value});");
            }
            text + "}\n"
        });
        let call = self.invoke(&name, &[(to, &address), (mask_shape, &mask), (shape, &value)]);
        self.line(&format!("{call};"));
        Ok(())
    }

    /// `memcpy`, `memmove` and `memset` of the C library.
    pub fn copy_memory(&mut self, op: Op<'_, '_>, name: &str, length: Option<i64>) -> Result<()> {
        let (to, from) = (self.scalar(&op, 0)?, self.scalar(&op, 1)?);
        let count = match length {
            Some(bytes) => format!("{bytes}u"),
            None => self.scalar(&op, 2)?,
        };
        if length.or(self.known(&op, 2).map(u64::cast_signed)) == Some(0) {
            // C compilers warn about copies of zero bytes.
            return Ok(());
        }
        self.unit.header("string.h");
        self.line(&format!("{name}({to}, {from}, {count});"));
        Ok(())
    }

    /// Translates an atomic read-modify-write of an integer.
    pub fn atomic(&mut self, op: &Op<'_, '_>, change: Atomic) -> Result<String> {
        let kind = match change {
            Atomic::Exchange => "exchange_n",
            Atomic::Add => "fetch_add",
            Atomic::Sub => "fetch_sub",
            Atomic::And => "fetch_and",
            Atomic::Nand => "fetch_nand",
            Atomic::Or => "fetch_or",
            Atomic::Xor => "fetch_xor",
            Atomic::Smax => "smax",
            Atomic::Smin => "smin",
            Atomic::Umax => "umax",
            Atomic::Umin => "umin",
        };
        let (shape, value) = self.operand(op, 1)?;
        if !matches!(shape, Shape { element: Element::Int(8 | 16 | 32 | 64), lanes: None }) {
            return Err(unsupported(op, "an atomic change of this type"));
        }
        let address = self.scalar(op, 0)?;
        let lane = Lane::of(shape.element);
        let any = format!("c_any_{}", lane.short());
        let ty = lane.c();
        self.unit.helper(&any, |_| format!("typedef {ty} {any} __attribute__((may_alias));\n"));
        if !kind.contains("max") && !kind.contains("min") {
            return Ok(format!("__atomic_{kind}(({any} *){address}, {value}, __ATOMIC_SEQ_CST)"));
        }
        let helper = format!("c_atomic_{kind}_{}", lane.short());
        let extreme = self.unit.extreme(shape.element, kind);
        self.unit.helper(&helper, |unit| {
            let head = unit.head(&ty, &helper, &[(Shape::scalar(Element::Pointer), "p"), (shape, "x")]);
            format!(
                "{head}  {ty} old = __atomic_load_n(({any} *)p, __ATOMIC_SEQ_CST);\n  \
                 while (!__atomic_compare_exchange_n(({any} *)p, &old, {extreme}(old, x), false,\n    \
                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {{}}\n  return old;\n}}\n"
            )
        });
        Ok(format!("{helper}({address}, {value})"))
    }
}

impl Unit {
    /// The helper that loads a scalar, or a vector without its padding lanes.
    pub fn load_of(&mut self, shape: Shape) -> String {
        let name = format!("c_load_{}", types::short(shape));
        self.helper(&name, |unit| {
            let ty = unit.ty(shape);
            let head = format!("C_INLINE {}(const void *p)\n{{\n", declared(&ty, &name));
            match shape.lanes {
                Some(lanes) if padded(lanes) == lanes => {
                    let memory = unit.vector_in_memory(Lane::of(shape.element), lanes);
                    format!("{head}  return *(const {memory} *)p;\n}}\n")
                }
                lanes => {
                    unit.header("string.h");
                    let start = if lanes.is_some() { " = {0}" } else { "" };
                    let bytes = layout::vector_bytes(shape);
                    format!(
                        "{head}  {}{start};\n  memcpy(&x, p, {bytes});\n  return x;\n}}\n",
                        declared(&ty, "x")
                    )
                }
            }
        });
        name
    }

    /// The helper that stores a scalar, or a vector without its padding lanes.
    pub fn store_of(&mut self, shape: Shape) -> String {
        let name = format!("c_store_{}", types::short(shape));
        self.helper(&name, |unit| {
            let head =
                unit.head("void", &name, &[(Shape::scalar(Element::Pointer), "p"), (shape, "x")]);
            match shape.lanes {
                Some(lanes) if padded(lanes) == lanes => {
                    let memory = unit.vector_in_memory(Lane::of(shape.element), lanes);
                    format!("{head}  *({memory} *)p = x;\n}}\n")
                }
                _ => {
                    unit.header("string.h");
                    let bytes = layout::vector_bytes(shape);
                    format!("{head}  memcpy(p, &x, {bytes});\n}}\n")
                }
            }
        });
        name
    }

    fn load_of_bits(&mut self, bytes: u32) -> String {
        let name = format!("c_load_{bytes}bytes");
        self.header("string.h");
        self.helper(&name, |_| {
            format!(
                "C_INLINE uint64_t {name}(const void *p)\n{{\n  uint64_t x = 0;\n  \
                 memcpy(&x, p, {bytes});\n  return x;\n}}\n"
            )
        });
        name
    }

    fn store_of_bits(&mut self, bytes: u32) -> String {
        let name = format!("c_store_{bytes}bytes");
        self.header("string.h");
        self.helper(&name, |_| {
            format!(
                "C_INLINE void {name}(void *p, uint64_t x)\n{{\n  memcpy(p, &x, {bytes});\n}}\n"
            )
        });
        name
    }
}

fn at(address: &str, offset: u64) -> String {
    if offset == 0 { address.to_owned() } else { format!("(char *){address} + {offset}") }
}

fn lane_address(shape: Shape, element: Element, lane: u32) -> String {
    match shape.lanes {
        Some(_) => lane_of(Element::Pointer, "p", lane),
        None => at("p", u64::from(lane) * u64::from(element.bytes())),
    }
}

fn masked_name(what: &str, addresses: Shape, short: String) -> String {
    match (addresses.lanes, what) {
        (None, _) => format!("c_masked_{what}_{short}"),
        (_, "load") => format!("c_gather_{short}"),
        _ => format!("c_scatter_{short}"),
    }
}

/// Number of bytes of packed bits.
fn packed(op: &Op<'_, '_>, lanes: u32) -> Result<u32> {
    if lanes <= 64 {
        Ok(lanes.div_ceil(8))
    } else {
        Err(unsupported(op, "this number of packed bits"))
    }
}
