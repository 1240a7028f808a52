//! An op of the tensor level is defined in its file of `irc-tl` and scheduled in `tl_to_linalg`: no other
//! file of the compiler names it, so that a new op needs no change elsewhere.

use crate::support::files::root;
use irc_tl::Op;
use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// Where ops are named: their schedules, the code of functions of numbers, algorithms written with such
/// functions, rules about ops, and what becomes bytes.
const HOMES: [&str; 9] = [
    "compiler/lowering/tl_to_linalg/",
    "compiler/kernel/arithmetic/",
    "compiler/lowering/compute_to_loops/",
    "compiler/fusion/algebra.rs",
    "compiler/quantise/",
    // Products of narrow numbers become others, before fusion.
    "compiler/lowering/prepare_products",
    // What attention consists of.
    "compiler/fusion/attention",
    "compiler/lowering/split_blocks/attention",
    // Concatenations of keys and values become updates of buffers, before all other algebra.
    "compiler/import/cache.rs",
];

/// Ops that the IR itself is made of, with the files that create or take apart such an op.
const STRUCTURAL: [(&str, &str); 14] = [
    // Loops around an expression are joined, and their sizes are renamed.
    ("compute", "compiler/fusion/inline.rs"),
    ("compute", "compiler/lowering/outline_kernels/sizes.rs"),
    ("compute", "compiler/lowering/outline_kernels/updates.rs"),
    // A constant that is a causal mask becomes a comparison.
    ("le", "compiler/lowering/graph_to_tl/masks.rs"),
    // A view that is not checked by its type rule.
    ("reshape", "dialects/tl/verify.rs"),
    // Views around kernels.
    ("reshape", "compiler/fusion/inline.rs"),
    ("reshape", "compiler/fusion/open.rs"),
    ("reshape", "compiler/fusion/sink.rs"),
    ("bitcast", "compiler/lowering/outline_kernels.rs"),
    // Many slices of one value share a kernel, which is given where they start.
    ("slice", "compiler/lowering/outline_kernels/slices.rs"),
    // Its loops are a schedule of their own.
    ("stepped_matmul", "compiler/lowering/linalg_to_vector/stepped_matmul.rs"),
    // They may have symbolic sizes, which graphs represent as loops.
    ("broadcast", "compiler/lowering/tl_to_graph/body.rs"),
    ("fill", "compiler/lowering/tl_to_graph/body.rs"),
    ("reshape", "compiler/lowering/tl_to_graph/body.rs"),
];

/// How source code names an op: as a variant, and by its name in the IR.
fn names(op: &Op) -> Vec<String> {
    let variant = format!("{op:?}");
    let variant = variant.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned();
    let variant = match op {
        Op::Unary(function) => format!("Unary::{function:?}"),
        Op::Binary(function) => format!("Binary::{function:?}"),
        Op::Compare(function) => format!("Comparison::{function:?}"),
        Op::Reduce { kind, .. } => format!("Reduction::{kind:?}"),
        _ => format!("Op::{variant}"),
    };
    vec![variant, format!("\"tl.{}\"", op.name())]
}

/// The source files of the compiler and the dialects, with their text up to their unit tests.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) -> io::Result<()> {
    // Front ends build graphs of ops, the export of ARK models and `npu-lower` read them, and the cost model and the search of
    // the NPU have layers.
    const OTHERS: [&str; 7] =
        ["tests", "frontends", "backends", "npu-cost", "npu-lower", "npu-schedule", "op"];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !OTHERS.contains(&name.as_str()) {
                sources(&path, found)?;
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            found.push((path, code));
        }
    }
    Ok(())
}

/// Whether a text has a name that is not part of a longer one.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let after = text[at + name.len()..].chars().next();
        !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[test]
fn no_other_file_names_an_op() {
    let mut files = vec![];
    for folder in ["compiler", "dialects"] {
        sources(&root().join(folder), &mut files).unwrap();
    }
    assert!(files.len() > 250, "{}", files.len());
    let (mut wrong, mut structural) = (vec![], BTreeSet::new());
    for row in Op::rows() {
        let (op, _) = row.example();
        let is_named = |text: &str| names(&op).iter().any(|name| mentions(text, name));
        for (path, _) in files.iter().filter(|(_, text)| is_named(text)) {
            if HOMES.iter().any(|home| path.starts_with(home)) {
                continue;
            }
            match STRUCTURAL.iter().find(|known| **known == (row.name, path.as_str())) {
                Some(known) => drop(structural.insert(*known)),
                None => wrong.push(format!("{path} names tl.{}", row.name)),
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(structural, STRUCTURAL.into(), "what is not named any more");
}

/// The op of each recipe is in no file of the compiler that the page does not name.
#[test]
fn the_how_to_names_every_home() {
    let page = fs::read_to_string(root().join("docs/how-to-add.md")).unwrap();
    let (_, section) = page.split_once("\n## An op of the tensor level\n").expect("the recipe");
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut files = vec![];
    for folder in ["compiler", "dialects"] {
        sources(&root().join(folder), &mut files).unwrap();
    }
    sources(&root().join("dialects/tl/op/src"), &mut files).unwrap();
    sources(&root().join("dialects/tl/op/src/op"), &mut files).unwrap();
    for example in ["log1p", "gather"] {
        assert!(section.contains(&format!("`tl.{example}`")), "{example}");
        let row = Op::rows().find(|row| row.name == example).unwrap();
        let names = names(&row.example().0);
        for (path, text) in &files {
            if names.iter().any(|name| mentions(text, name)) {
                assert!(section.contains(&format!("`{path}`")), "{path} names {example}");
            }
        }
    }
}
