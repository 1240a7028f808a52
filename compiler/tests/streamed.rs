//! Large results are stored past the caches where their memory is aligned.

use crate::support::{graphs::f32s, levels::widths};
use irc::{
    Session, Target,
    codegen::{Backend, Output},
};
use irc_runtime::{Context, ContextOptions, Model, OpenOptions, ThreadPool};
use irc_tl::{Binary, Builder, Graph, Reduction, Type, Unary};
use std::{collections::BTreeMap, sync::Arc};

type Entry = unsafe extern "C" fn(*mut *mut u8, *mut u8) -> i32;

/// The logistic function of each element, minus the maximum of its row.
fn graph(rows: i64, columns: i64) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::from(f32s([rows, columns], 1).ty().clone()));
    let most = b.reduce(Reduction::Max, x, &[1], true).unwrap();
    let below = b.binary(Binary::Sub, x, most).unwrap();
    let y = b.unary(Unary::Sigmoid, below).unwrap();
    b.output("y", y);
    b.finish()
}

fn assembly(graph: &Graph, target: Target) -> String {
    let session = Session::new();
    let text = session.import_graph(graph).emit(Output::Assembly, target).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn only_large_results_in_whole_lines_are() {
    let v3 = || Target::from_name("x86-64-v3");
    let streams = |rows, columns| assembly(&graph(rows, columns), v3()).contains("vmovntps");
    assert!(streams(1025, 4096));
    assert!(!streams(512, 4096), "a cache holds it");
    assert!(!streams(1025, 4100), "rows begin within lines");
}

#[test]
fn the_results_are_those_of_other_stores() {
    let (rows, columns) = (1025, 4096);
    let (graph, x) = (graph(rows, columns), f32s([rows, columns], 3));
    let expected = graph.eval(&BTreeMap::from([("x".to_owned(), x.clone())])).unwrap();
    let expected = expected[0].to_f64();
    let quick = Target::host().with_backend(Backend::QUICK);
    for target in widths().into_iter().chain([quick]) {
        let session = Session::new();
        let library = session.import_graph(&graph).library(target.clone()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.so");
        std::fs::write(&path, &library.library).unwrap();
        // Safety: the library runs no code when it is loaded.
        let code = unsafe { libloading::Library::new(&path) }.unwrap();
        let (workspace, bytes) = (library.interface.workspace_bytes as usize, x.bytes().len());
        let mut found = vec![];
        for offset in [0, 4, 36] {
            let (mut memory, mut scratch) = (vec![0u8; bytes + 128], vec![0u8; workspace + 64]);
            let start = memory.as_ptr().align_offset(64) + offset;
            let aligned = scratch.as_ptr().align_offset(64);
            let input = x.bytes().as_ptr().cast_mut();
            let mut buffers = [input, memory[start..].as_mut_ptr()];
            // Safety: the buffers are as large as the interface says.
            let status = unsafe {
                let run = code.get::<Entry>("irc_run").unwrap();
                run(buffers.as_mut_ptr(), scratch[aligned..].as_mut_ptr())
            };
            assert_eq!(status, 0);
            found.push(memory[start..start + bytes].to_vec());
        }
        let model = Arc::new(Model::open(&path, OpenOptions::default()).unwrap());
        let options =
            ContextOptions { pool: Arc::new(ThreadPool::new(3).unwrap()), ..Default::default() };
        let mut context = Context::new(&model, &options).unwrap();
        context.set_input(0, x.bytes()).unwrap();
        context.run().unwrap();
        found.push(context.output(0).unwrap().to_vec());
        assert!(found.iter().all(|other| *other == found[0]), "{}", target.cpu);
        let values = found[0].as_chunks().0.iter().map(|it| f64::from(f32::from_le_bytes(*it)));
        let error = values.zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-6, "{}: {error}", target.cpu);
    }
}
