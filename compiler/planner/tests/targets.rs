//! Which architectures have kernels for what, and the messages where they have none.
use irc_ark_format::{
    model::{Arg, Buffer, DataType, Model, Node, Op, OpKind, Tensor},
    plan::{Architecture, Plan, PlanOp, matmul_kernels},
};
use irc_planner::{NodeDiagnostic, Options, Planned, Target};
use std::collections::BTreeMap;

fn dense(id: u64, dtype: DataType, shape: &[i64]) -> Tensor {
    Tensor::dense(id, dtype, shape, Buffer::local(id))
}

fn model(kind: OpKind, reads: Vec<Tensor>, output: Tensor, args: &[(&str, Arg)]) -> Model {
    let result = Tensor { id: 100, ..output.clone() };
    let args = args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone()));
    let op = Op {
        kind,
        name: "op".to_owned(),
        is_virtual: false,
        reads,
        writes: vec![output],
        results: vec![result],
        args: args.collect::<BTreeMap<_, _>>(),
    };
    let node = Node { id: 0, producers: vec![], consumers: vec![], op };
    Model { rank: 0, world_size: 1, nodes: vec![node] }
}

fn product(dtype: DataType, [m, n, k]: [i64; 3]) -> Model {
    let reads = vec![dense(0, dtype, &[m, k]), dense(1, dtype, &[k, n])];
    let args = [("TransposeInput", Arg::Bool(false)), ("TransposeOther", Arg::Bool(false))];
    model(OpKind::Matmul, reads, dense(2, dtype, &[m, n]), &args)
}

fn planned(model: &Model, architecture: Architecture) -> Result<Planned, Vec<NodeDiagnostic>> {
    let target = Target::new(architecture, None).expect("a target");
    irc_planner::plan(model, &Options::new(target))
}

fn first(plan: &Plan) -> &PlanOp {
    &plan.task_infos[0].ops[0]
}

#[test]
fn any_takes_a_kernel_of_cuda_80_where_one_divides() {
    let planned =
        planned(&product(DataType::Fp16, [256, 256, 128]), Architecture::Any).expect("a plan");
    let tile = first(&planned.plan).config.ints("TileShapeMNK").expect("a tile");
    let known = matmul_kernels(Architecture::Cuda80, DataType::Fp16);
    assert!(known.iter().any(|kernel| [kernel.m, kernel.n, kernel.k] == tile), "{tile:?}");
    assert_eq!(planned.warnings, []);
}

#[test]
fn families_say_when_no_device_has_the_tile() {
    for family in [Architecture::Any, Architecture::Cuda, Architecture::Rocm] {
        let planned = planned(&product(DataType::Fp16, [48, 80, 24]), family).expect("a plan");
        assert_eq!(first(&planned.plan).config.ints("TileShapeMNK"), Some(&[48, 40, 24][..]));
        let [NodeDiagnostic { node: Some(0), message }] = &planned.warnings[..] else {
            panic!("{:?}", planned.warnings)
        };
        assert!(message.starts_with("no known device has a kernel"), "{message}");
    }
}

#[test]
fn families_take_the_kernels_of_their_devices() {
    let model = product(DataType::Fp16, [512, 512, 128]);
    for (family, device) in [
        (Architecture::Any, Architecture::Cuda80),
        (Architecture::Cuda, Architecture::Cuda80),
        (Architecture::Rocm, Architecture::Rocm942),
    ] {
        let [of_family, of_device] =
            [family, device].map(|architecture| planned(&model, architecture).expect("a plan"));
        assert_eq!(first(&of_family.plan).config, first(&of_device.plan).config);
        assert_eq!(of_family.warnings, []);
    }
}

#[test]
fn cuda_70_has_one_kernel() {
    let planned =
        planned(&product(DataType::Fp16, [256, 512, 64]), Architecture::Cuda70).expect("a plan");
    let config = &first(&planned.plan).config;
    assert_eq!(config.ints("TileShapeMNK"), Some(&[128, 256, 32][..]));
    assert_eq!((config.int("NumWarps"), config.int("SramBytes")), (Some(8), Some(49_152)));
    assert!(
        planned
            .warnings
            .iter()
            .any(|diagnostic| diagnostic.message.contains("no device has confirmed"))
    );
    let rejected = self::planned(&product(DataType::Fp32, [256, 512, 64]), Architecture::Cuda70);
    let diagnostics = rejected.expect_err("a rejection");
    assert!(diagnostics[0].message.contains("Matmul of FP32 has no known kernel on CUDA_70"));
}

#[test]
fn cuda_90_has_kernels_of_irc_whose_stages_fill_on_chip_memory() {
    let sram = Architecture::Cuda90.max_sram().expect("known");
    for dtype in [DataType::Fp32, DataType::Fp16, DataType::Bf16] {
        for kernel in matmul_kernels(Architecture::Cuda90, dtype) {
            let bytes = if dtype == DataType::Fp32 { 4 } else { 2 };
            let stage = (kernel.m + kernel.n) * kernel.k * bytes;
            assert_eq!(kernel.sram % stage, 0, "{kernel:?}");
            // ARK reserves 128 bytes.
            assert!(kernel.sram + 128 <= sram, "{kernel:?}");
            assert!(kernel.m * kernel.n / (32 * kernel.warps) <= 128, "sums fit in registers");
        }
        let planned = planned(&product(dtype, [512, 512, 128]), Architecture::Cuda90);
        let planned = planned.expect("a plan");
        let config = &first(&planned.plan).config;
        let tile = config.ints("TileShapeMNK").expect("a tile");
        let known = matmul_kernels(Architecture::Cuda90, dtype);
        assert!(known.iter().any(|kernel| [kernel.m, kernel.n, kernel.k] == tile));
        assert_eq!(planned.warnings, []);
    }
}

#[test]
fn products_without_a_kernel_are_named() {
    let rejected = planned(&product(DataType::Fp16, [256, 256, 128]), Architecture::Rocm90a);
    let diagnostics = rejected.expect_err("a rejection");
    let [NodeDiagnostic { node: Some(0), message }] = &diagnostics[..] else {
        panic!("{diagnostics:?}")
    };
    let expected =
        "Matmul of FP16 has no known kernel on ROCM_90A; ARK has them for CUDA_80 and ROCM_942";
    assert_eq!(message, expected);
    let rejected = planned(&product(DataType::Fp16, [100, 256, 128]), Architecture::Cuda80);
    let message = &rejected.expect_err("a rejection")[0].message;
    assert!(message.contains("divides M=100 N=256 K=128; pad the operands"), "{message}");
}

#[test]
fn products_that_no_tile_divides_get_the_nearest_sizes_as_advice() {
    let advice_for = |dtype: DataType, size: [i64; 3], architecture: Architecture| {
        let rejected = planned(&product(dtype, size), architecture).expect_err("a rejection");
        let (_, advice) = rejected[0].message.split_once("multiples of a tile: ").expect("advice");
        advice.to_owned()
    };
    let advice = advice_for(DataType::Fp16, [512, 128, 512], Architecture::Cuda70);
    assert_eq!(advice, "M=512 N=256 K=512 for 128x256x32");
    let advice = advice_for(DataType::Bf16, [64, 64, 32], Architecture::Cuda80);
    let expected = "M=64 N=64 K=64 for 64x64x64, or M=128 N=64 K=32 for 128x64x32, or M=64 N=128 \
                    K=32 for 64x128x32";
    assert_eq!(advice, expected);
    let advice = advice_for(DataType::Fp32, [512, 100, 512], Architecture::Rocm942);
    assert_eq!(advice, "M=512 N=128 K=512 for 256x128x16");
}
