//! One compiled kernel serves every size of its symbols.

use irc::attributes::KERNEL;
use irc::attributes::{KernelInfo, LOOPS};
use irc::codegen::{Output, Target, compile, link_library};
use irc::pipeline::{HOST_CPU, Settings};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, Location, Module, OpSpec, OperationLike, Type as MlirType, Value, ValueLike,
    function, read, walk_collect,
};
use irc_tensor::{DType, Tensor, Tolerance, compare};
use irc_tl::{Algorithm, Combine, Compute, Conv, Dim, Op, Reduction, Scalar, Type, Unary};
use std::collections::BTreeMap;
use std::ffi::c_void;

type Entry = unsafe extern "C" fn(*const *mut c_void, *mut c_void) -> i32;

/// What the kernel computes.
pub enum Work {
    Op(Op),
    Algorithm(Algorithm),
}

/// A kernel on memory whose size its symbols say.
pub struct Kernel {
    work: Work,
    operands: Vec<Type>,
    results: Vec<Type>,
    symbols: Vec<String>,
    workspace: usize,
    is_in_blocks: bool,
    library: libloading::Library,
}

impl Kernel {
    pub fn compile(work: Work, operands: Vec<Type>) -> Self {
        Self::compile_as(LOOPS, work, operands)
    }

    fn compile_as(kind: &str, work: Work, operands: Vec<Type>) -> Self {
        irc::passes::register_all();
        let context = irc_dialects::new_context();
        let location = Location::unknown(&context);
        let mut module = Module::new(location);
        let types: Vec<MlirType> =
            operands.iter().map(|ty| tl::type_to_mlir(&context, ty)).collect();
        let arguments: Vec<_> = types.iter().map(|ty| (*ty, location)).collect();
        let block = Block::new(&arguments);
        let values: Vec<Value> =
            (0..types.len()).map(|at| block.argument(at).unwrap().into()).collect();
        let built = match &work {
            Work::Op(op) => tl::build(&context, op, &values, location).unwrap(),
            Work::Algorithm(work) => {
                tl::build_algorithm(&context, work, &values, location).unwrap()
            }
        };
        let built = block.append_operation(built);
        let returned: Vec<Value> = built.results().map(Value::from).collect();
        let mlir: Vec<MlirType> = returned.iter().map(ValueLike::r#type).collect();
        let results = mlir.iter().map(|ty| tl::type_of(*ty).unwrap()).collect();
        OpSpec::new(&context, func::RETURN, location).operands(&returned).append(&block);
        let (kind, entry) = (kind.to_owned(), Some("irc_task_kernel".to_owned()));
        let info = KernelInfo { kind, entry, ..KernelInfo::default() };
        let kernel =
            function(&context, "kernel", &types, &mlir, block, location).with(KERNEL, &info);
        module.body().append_operation(kernel.build());

        let target = Target::host();
        let capture = irc_mlir::Capture::new(&context);
        let lower = |module: &mut Module<'_>, first, last| {
            let passes = HOST_CPU.text(&Settings::of(&target), Some(first), Some(last)).unwrap();
            let lowered = irc_mlir::run_pipeline(&context, module, &passes);
            assert!(lowered.is_ok(), "{:?}", capture.take());
        };
        lower(&mut module, "kernels", "vector");
        let named = |name| {
            let is_named = move |op| read::string(&op, "sym_name").as_deref() == Some(name);
            walk_collect(module.as_operation(), is_named)
        };
        let (kernel, is_in_blocks) = (named("kernel")[0], !named("kernel_rows").is_empty());
        let info = KernelInfo::read(&kernel).unwrap();
        let (workspace, symbols) = (usize::try_from(info.scratch()).unwrap(), info.symbols);
        lower(&mut module, "memory", "llvm");
        let object = compile(&module, &target, Output::Object).unwrap();
        let bytes = link_library([("kernel".to_owned(), &object[..])]).unwrap().bytes;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel.so");
        std::fs::write(&path, bytes).unwrap();
        // Safety: the library runs no code when it is loaded.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        Self { work, operands, results, symbols, workspace, is_in_blocks, library }
    }

    /// Runs on random operands and compares with the meaning.
    pub fn check(&self, sizes: &[(&str, i64)]) {
        let bound: BTreeMap<_, _> = sizes.iter().copied().collect();
        let value = |name: &str| bound.get(name).copied();
        let operands: Vec<Tensor> = self
            .operands
            .iter()
            .enumerate()
            .map(|(at, ty)| Tensor::random(ty.eval(&value).unwrap(), at as u64 + 5).unwrap())
            .collect();
        let mut results: Vec<Tensor> = self
            .results
            .iter()
            .map(|ty| Tensor::zeros(ty.eval(&value).unwrap()).unwrap())
            .collect();
        self.run(&operands, &mut results, &value);
        let borrowed: Vec<_> = operands.iter().collect();
        let known = |name: &str| value(name).map(Dim::Known);
        let expected = match &self.work {
            Work::Op(Op::Compute(compute)) => {
                vec![compute.substitute(&known).eval(&borrowed).unwrap()]
            }
            Work::Op(op) => vec![op.eval(&borrowed).unwrap()],
            Work::Algorithm(work) => work.substitute(&known).eval(&borrowed).unwrap(),
        };
        for (expected, found) in expected.iter().zip(&results) {
            let result = compare(expected, found, Tolerance::of(expected.dtype())).unwrap();
            assert!(result.is_match(), "{sizes:?}: {result}");
        }
    }

    fn run(
        &self,
        operands: &[Tensor],
        results: &mut [Tensor],
        value: &dyn Fn(&str) -> Option<i64>,
    ) {
        let pointer = |tensor: &mut Tensor| tensor.bytes_mut().as_mut_ptr().cast::<c_void>();
        let operands: Vec<Guarded> =
            operands.iter().map(|tensor| Guarded::new(tensor.bytes())).collect();
        let mut slots: Vec<*mut c_void> = operands.iter().map(|guarded| guarded.start).collect();
        // A size takes the place of a pointer.
        slots.extend(self.symbols.iter().map(|name| value(name).unwrap() as usize as *mut c_void));
        slots.extend(results.iter_mut().map(pointer));
        let mut workspace = vec![0u8; self.workspace + 64];
        let aligned = workspace.as_ptr().align_offset(64);
        let workspace = workspace[aligned..].as_mut_ptr().cast();
        // Safety: the slots and the workspace are what the kernel was compiled for.
        unsafe {
            let entry = self.library.get::<Entry>(b"irc_task_kernel").unwrap();
            assert_eq!(entry(slots.as_ptr(), workspace), 0);
        }
    }
}

/// A copy of bytes, before and after which no memory can be accessed.
struct Guarded {
    base: *mut c_void,
    length: usize,
    start: *mut c_void,
}

impl Guarded {
    fn new(bytes: &[u8]) -> Self {
        const PAGE: usize = 1 << 16;
        let length = bytes.len().next_multiple_of(PAGE) + 2 * PAGE;
        // Safety: new memory, the middle of which is made accessible, and holds the bytes at its end.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let middle = base.byte_add(PAGE);
            let usable = length - 2 * PAGE;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert!(usable == 0 || libc::mprotect(middle, usable, access) == 0);
            let start = base.byte_add(length - PAGE - bytes.len());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len());
            Self { base, length, start }
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Safety: the memory is this value's own.
        unsafe { libc::munmap(self.base, self.length) };
    }
}

pub fn n() -> Dim {
    Dim::symbol("N")
}

pub fn m() -> Dim {
    Dim::symbol("M")
}

pub fn ty(dtype: DType, dims: impl Into<Vec<Dim>>) -> Type {
    Type::new(dtype, dims)
}

/// Checks a kernel at several sizes of two symbols.
fn check(work: Work, operands: Vec<Type>) {
    check_kernel(&Kernel::compile(work, operands));
}

fn check_kernel(kernel: &Kernel) {
    for (n, m) in [(1, 1), (3, 5), (17, 2), (64, 33), (2, 300), (0, 4), (5, 0)] {
        kernel.check(&[("N", n), ("M", m)]);
    }
}

#[test]
fn elements() {
    check(Work::Op(Op::Unary(Unary::Sigmoid)), vec![ty(DType::F32, [n(), 4.into(), m()])]);
    check(
        Work::Op(Op::Select),
        vec![ty(DType::Bool, [n(), 1.into()]), ty(DType::I16, [n(), m()]), ty(DType::I16, [m()])],
    );
}

#[test]
fn products_and_reductions() {
    let product = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
    check(Work::Op(product), vec![ty(DType::F32, [n(), m()]), ty(DType::F32, [7.into(), m()])]);
    let sum = Op::Reduce { kind: Reduction::Sum, axes: vec![0], keep_dims: true };
    check(Work::Op(sum), vec![ty(DType::F16, [n(), m()])]);
}

#[test]
fn products_of_blocks() {
    let product = |transpose_rhs| Op::Matmul { transpose_lhs: false, transpose_rhs };
    let weights = |dims: [i64; 2]| ty(DType::F32, dims.map(Dim::Known));
    let is_split = |op: Op, operands: Vec<Type>| {
        let kernel = Kernel::compile_as("contraction", Work::Op(op), operands);
        assert!(kernel.is_in_blocks, "it has a schedule in vectors");
        check_kernel(&kernel);
    };
    is_split(product(false), vec![ty(DType::F32, [n(), 3.into(), 10.into()]), weights([10, 37])]);
    is_split(product(true), vec![ty(DType::F32, [m(), 10.into()]), weights([20, 10])]);
    is_split(product(true), vec![ty(DType::F32, [n() * 64.into(), 10.into()]), weights([20, 10])]);
    let heads =
        |rows: i64, columns: i64| ty(DType::F16, [n(), 3.into(), rows.into(), columns.into()]);
    is_split(product(false), vec![heads(9, 5), heads(5, 18)]);
    let image = ty(DType::F32, [n(), 4.into(), 6.into(), 7.into()]);
    let filters = ty(DType::F32, [16.into(), 2.into(), 3.into(), 3.into()]);
    let conv = Conv {
        strides: vec![1, 2],
        dilations: vec![1, 1],
        pads: vec![[1, 1], [0, 2]],
        groups: 2,
        outside: 0,
    };
    is_split(Op::Conv(conv), vec![image, filters]);
}

#[test]
fn moves_and_sizes_that_are_computed() {
    let permutation = vec![1, 0];
    check(Work::Op(Op::Transpose { permutation }), vec![ty(DType::U8, [n(), m()])]);
    for (dtype, rows) in [(DType::F32, 3), (DType::F64, 40), (DType::U8, 12), (DType::Bool, 4)] {
        let turned = || Work::Op(Op::Transpose { permutation: vec![0, 2, 1] });
        check(turned(), vec![ty(dtype, [m(), rows.into(), n()])]);
        check(turned(), vec![ty(dtype, [2.into(), n(), rows.into()])]);
    }
    let source = ty(DType::I32, [n(), m(), 6.into()]);
    let reshaped = Compute::reshape(&source, [n() * 2.into(), m() * 3.into()]);
    check(Work::Op(Op::compute(reshaped)), vec![source]);
    // Every other row, as many as there are.
    let half = (n() + 1.into()).floor_div(&2.into());
    let at = [Scalar::Loop(0) * Scalar::index(2), Scalar::Loop(1)];
    let strided = Compute::map([half, m()], Scalar::load(0, at));
    check(Work::Op(Op::compute(strided)), vec![ty(DType::F64, [n(), m()])]);
}

#[test]
fn windows() {
    let image = ty(DType::F32, [1.into(), 3.into(), n() + 2.into(), m() + 2.into()]);
    let filters = ty(DType::F32, [4.into(), 3.into(), 3.into(), 3.into()]);
    let conv = Conv {
        strides: vec![2, 1],
        dilations: vec![1, 1],
        pads: vec![[1, 1]; 2],
        groups: 1,
        outside: 0,
    };
    check(Work::Op(Op::Conv(conv)), vec![image, filters]);
    let most = Compute::reduce(
        [n()],
        Combine::Max,
        [m()],
        Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]),
    );
    check(Work::Op(Op::compute(most)), vec![ty(DType::I8, [n(), m()])]);
}

#[test]
fn algorithms() {
    let k = m().minimum(&3.into());
    let top = Algorithm::TopK { axis: 1, k, largest: true };
    check(Work::Algorithm(top), vec![ty(DType::F32, [n(), m()])]);
    let sorted = Algorithm::TopK { axis: 0, k: n(), largest: false };
    check(Work::Algorithm(sorted), vec![ty(DType::U16, [n(), m()])]);
    for (axis, combine) in [(0, Combine::Sum), (1, Combine::Max), (1, Combine::Product)] {
        let scan = Algorithm::Scan { axis, combine, reverse: axis == 0, exclusive: false };
        check(Work::Algorithm(scan), vec![ty(DType::I32, [n(), m()])]);
    }
    check(Work::Algorithm(Algorithm::NonZero), vec![ty(DType::Bool, [n(), m()])]);
}
