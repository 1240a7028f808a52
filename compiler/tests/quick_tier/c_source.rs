//! Whole models as C source, against the quick tier: with vectors of the same width both compute the
//! same bits, by any C compiler and with any flags.
use super::{
    cc,
    harness::{Functions, c_source},
    models::{Buffers, LIMITS, files, inputs, run},
};
use irc::{Backend, ImportOptions, Model, Results, Session, Target, codegen::Output};
use irc_runtime::{Library, Runner};
use irc_tensor::{DType, Tensor, TensorType, Tolerance, compare};
use irc_tl::{Binary, Builder, Dim, Type, Unary};
use std::{path::Path, sync::Arc};

/// A model that returns every buffer; `None` for one that exchanges data with other ranks.
fn model<'s>(session: &'s Session, path: &Path) -> Option<Model<'s>> {
    session.import_with(path, &ImportOptions::default().results(Results::All)).ok()
}

/// A model's C source.
fn source(path: &Path, target: Target) -> Option<Vec<u8>> {
    let session = Session::new();
    let model = model(&session, path)?;
    let report = model.explain_fusion(target.clone()).unwrap();
    let interface = model.interface().unwrap();
    let types = interface.inputs.iter().map(|port| port.tensor_type().unwrap());
    let bytes: usize = types.map(|ty| ty.byte_size().unwrap()).sum();
    if report.before.work > LIMITS.0 || bytes > LIMITS.1 {
        return None;
    }
    let name = path.display();
    let text = model.emit(Output::C, target);
    Some(text.unwrap_or_else(|failure| panic!("{name}: {failure:?}")))
}

/// What a model gives by the quick tier, and as C by the flags.
fn both(path: &Path, flags: &[&str]) -> Option<[Buffers; 2]> {
    let text = source(path, Target::portable())?;
    let session = Session::new();
    let target = Target::host().with_backend(Backend::QUICK);
    let quick = model(&session, path)?.library(target).unwrap();
    let inputs = inputs(&quick.interface);
    Some([run(&quick.library, inputs.clone()), run_c(&text, flags, inputs)])
}

fn run_c(text: &[u8], flags: &[&str], inputs: Buffers) -> Buffers {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.so");
    cc::library(text, &path, flags);
    run(&std::fs::read(path).unwrap(), inputs)
}

fn same_bits(path: &Path, [expected, found]: [Buffers; 2]) {
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (buffer, expected) in expected {
        let found = &found[&buffer];
        let differing = (0..expected.elements()).find(|at| {
            let (a, b) = (expected.get_f64(*at), found.get_f64(*at));
            a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan())
        });
        let shown = differing.map(|at| (at, expected.get_f64(at), found.get_f64(at)));
        assert_eq!(shown, None, "{}: {buffer}", path.display());
    }
}

/// Every model of a folder; how many ran.
fn agree(folder: &Path, flags: &[&str]) -> usize {
    let mut count = 0;
    for path in files::models(folder) {
        if let Some(both) = both(&path, flags) {
            same_bits(&path, both);
            count += 1;
        }
    }
    count
}

#[test]
fn models_of_every_op_are_the_same_bits() {
    assert!(agree(&files::root().join("tests/models"), &["-O1"]) >= 18);
}

#[test]
fn optimisation_and_other_instructions_change_no_bit() {
    let native = Target::host();
    let mut flags = vec!["-O3"];
    if native.required_features().iter().any(|feature| feature == "fma") {
        // A product and a sum could become one rounding.
        flags.extend(["-mfma", "-mavx2"]);
    }
    assert!(agree(&files::root().join("examples"), &flags) >= 4);
}

#[test]
fn a_processor_without_fused_products_gives_the_same_bits() {
    let flags = ["-O2", "-DIRC_NO_FMA"];
    assert!(agree(&files::root().join("examples"), &flags) >= 4);
}

#[test]
fn fused_products_are_rounded_once_without_the_processor_s() {
    let text = "llvm.func @irc_task_0(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %o: !llvm.ptr) {
      %0 = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> vector<64xf32>
      %1 = llvm.load %b {alignment = 4 : i64} : !llvm.ptr -> vector<64xf32>
      %2 = llvm.load %c {alignment = 4 : i64} : !llvm.ptr -> vector<64xf32>
      %3 = llvm.intr.fma(%0, %1, %2) : (vector<64xf32>, vector<64xf32>, vector<64xf32>) -> vector<64xf32>
      llvm.store %3, %o {alignment = 4 : i64} : vector<64xf32>, !llvm.ptr
      llvm.return }";
    let functions = Functions::of_c(&c_source(text), &["-O2", "-DIRC_NO_FMA"]);
    let mut state = 1_u64;
    let mut random = move || {
        let product = state.wrapping_mul(6_364_136_223_846_793_005);
        state = product.wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for round in 0..5_000 {
        let mut draw = || [(); 64].map(|()| f32::from_bits(random()));
        let (a, b, mut c) = (draw(), draw(), draw());
        if round % 2 == 0 {
            // Close to minus the product, or to half of its last bit.
            for lane in 0..64 {
                let scale = [-1.0, 1.0, 3e-8, 6e-8, 1.2e-7][lane % 5];
                c[lane] = a[lane] * b[lane] * scale;
            }
        }
        let mut found = [0_f32; 64];
        let pointers = [a.as_ptr(), b.as_ptr(), c.as_ptr(), found.as_mut_ptr().cast_const()];
        functions.raw("irc_task_0", pointers.map(|pointer| pointer.cast_mut().cast()));
        for lane in 0..64 {
            let expected = a[lane].mul_add(b[lane], c[lane]);
            let same = expected.to_bits() == found[lane].to_bits();
            let shown = (a[lane], b[lane], c[lane], expected, found[lane]);
            assert!(same || (expected.is_nan() && found[lane].is_nan()), "{shown:?}");
        }
    }
}

#[test]
fn vectors_of_a_named_processor_need_no_flags() {
    let path = files::root().join("examples/layernorm.model.json");
    let target = Target::from_name("x86-64-v3").with_backend(Backend::C);
    let text = source(&path, target).unwrap();
    assert!(String::from_utf8_lossy(&text).contains("vector_size(32)"));
    let session = Session::new();
    let llvm = model(&session, &path).unwrap().library(Target::host()).unwrap();
    let inputs = inputs(&llvm.interface);
    let expected = run(&llvm.library, inputs.clone());
    for (buffer, found) in run_c(&text, &["-O1"], inputs) {
        let expected = &expected[&buffer];
        let result = compare(expected, &found, Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{buffer}: {result}");
    }
}

#[test]
fn the_file_says_how_it_is_called_and_is_the_same_each_time() {
    let path = files::root().join("examples/softmax.model.json");
    let text = || source(&path, Target::portable()).unwrap();
    let first = String::from_utf8(text()).unwrap();
    assert!(first.contains("     uint32_t irc_run(void *a0, void *a1);\n"));
    // What only the file itself calls is its own.
    assert!(first.contains("static void irc_main(") && !first.contains("\nvoid"));
    assert!(first.contains("in  f"), "{}", &first[..600]);
    assert_eq!(first.as_bytes(), text());
}

#[test]
fn clang_takes_it_too() {
    let Some(clang) = ["clang", "clang-22"].into_iter().find(|name| cc::is_there(name)) else {
        println!("skipped: no clang");
        return;
    };
    let path = files::root().join("examples/swiglu_ffn_f16.model.json");
    let text = source(&path, Target::portable()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    cc::library_by(clang, &text, &folder.path().join("model.so"), &["-O1"]);
}

#[test]
fn a_graph_whose_sizes_depend_on_its_inputs_runs_on_a_host() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N"), Dim::from(8)]));
    let weights = Tensor::random(TensorType::new(DType::F32, [8, 40]), 3).unwrap();
    let w = b.tensor(&weights);
    let y = b.matmul(x, w).unwrap();
    let z = b.unary(Unary::Exp, y).unwrap();
    let sum = b.binary(Binary::Add, z, y).unwrap();
    b.output("sum", sum);
    let graph = b.finish();
    let session = Session::new();
    let text = session.import_graph(&graph).emit(Output::C, Target::portable()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.so");
    cc::library(&text, &path, &["-O1"]);
    // The source holds its constants.
    let mut runner = Runner::new(Arc::new(Library::load(&path).unwrap()), &[]).unwrap();
    for rows in [1, 5, 17] {
        let x = Tensor::random(TensorType::new(DType::F32, [rows, 8]), 1).unwrap();
        let inputs = Buffers::from([("x".to_owned(), x)]);
        let expected = graph.eval(&inputs).unwrap();
        let found = runner.run(inputs).unwrap();
        let result = compare(&expected[0], &found["sum"], Tolerance::of(DType::F32)).unwrap();
        assert!(result.is_match(), "{rows} rows: {result}");
    }
}
