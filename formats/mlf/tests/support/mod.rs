//! A small archive, written by the crate itself: three calls that use a storage again, two outputs.
#![allow(dead_code)]

use std::collections::BTreeMap;

use bytes::Bytes;
use irc_diag::Diagnostic;
use irc_mlf::graph::{Call, Edge, Entry, Graph, Node};
use irc_mlf::params::Param;
use irc_mlf::{
    Code, Contents, DataType, Depth, Model, Package, Shared, TestVector, Type, Version, check,
};
use object::write::elf::{FileHeader, Sym, Writer};
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope, elf};

/// A float tensor type.
pub fn float32(shape: &[i64]) -> Type {
    Type { dtype: DataType::scalar(Code::Float, 32), shape: shape.to_vec() }
}

/// A tensor of a type with some bytes.
pub fn param(name: &str, ty: Type) -> Param {
    let bytes = ty.bytes().expect("a size");
    let data: Vec<u8> = (0..bytes).map(|at| (at * 7 + name.len() as u64) as u8).collect();
    Param { name: name.into(), ty, data: data.into() }
}

fn call(function: &str, inputs: &[usize], outputs: usize) -> Node {
    let inputs = inputs.iter().map(|node| Edge { node: *node, output: 0 }).collect();
    let attributes = BTreeMap::from([("hash".to_owned(), "0123456789abcdef".to_owned())]);
    let function = format!("tvmgen_default_{function}");
    let name = function.clone();
    let call = Call { function, inputs, outputs, flatten: false, attributes };
    Node { name, call: Some(call) }
}

/// `data` through two layers, then split in two.
pub fn graph() -> Graph {
    let input = |name: &str| Node { name: name.into(), call: None };
    let entry =
        |storage: i64, shape: &[i64]| Entry { ty: float32(shape), storage, device: Some(1) };
    Graph {
        nodes: vec![
            input("data"),
            input("w"),
            input("b"),
            call("scale", &[0], 1),
            call("dense", &[3, 1, 2], 1),
            call("relu", &[4], 1),
            call("split", &[5], 2),
        ],
        inputs: vec![0, 1, 2],
        outputs: vec![Edge { node: 6, output: 0 }, Edge { node: 6, output: 1 }],
        entries: vec![
            entry(0, &[1, 8]),
            entry(1, &[16, 8]),
            entry(2, &[16]),
            entry(3, &[1, 8]),
            entry(4, &[1, 16]),
            entry(3, &[1, 16]),
            entry(5, &[1, 4]),
            entry(6, &[1, 12]),
        ],
    }
}

/// The functions of the graph.
pub const FUNCTIONS: [&str; 4] =
    ["tvmgen_default_scale", "tvmgen_default_dense", "tvmgen_default_relu", "tvmgen_default_split"];

/// The code of the graph in C.
pub fn c_source() -> String {
    let head = "#include <stdint.h>\n/* int tvmgen_default_relu(void) { } */\n";
    let function = |name: &&str| {
        format!(
            "int32_t {name}(void* a, int32_t* t, int32_t n, void* r, int32_t* c, void* h) {{\n  return 0;\n}}\n"
        )
    };
    head.to_owned() + &FUNCTIONS.iter().map(function).collect::<String>()
}

/// An object that defines functions, and needs others.
pub fn object(machine: Architecture, functions: &[&str], undefined: &[&str]) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, machine, Endianness::Little);
    let text = object.section_id(object::write::StandardSection::Text);
    let symbol = |name: &str, section, kind| Symbol {
        name: name.into(),
        value: 0,
        size: 1,
        kind,
        scope: SymbolScope::Linkage,
        weak: false,
        section,
        flags: SymbolFlags::None,
    };
    for name in functions {
        let id = object.add_symbol(symbol(name, SymbolSection::Undefined, SymbolKind::Text));
        object.add_symbol_data(id, text, &[0xc3], 1);
    }
    for name in undefined {
        object.add_symbol(symbol(name, SymbolSection::Undefined, SymbolKind::Unknown));
    }
    object.write().expect("an object")
}

/// A shared library that exports functions, for a machine by its number in ELF; it has no code.
pub fn shared_object(e_machine: u16, functions: &[&str]) -> Vec<u8> {
    let mut bytes = vec![];
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let names: Vec<_> =
        functions.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
    writer.reserve_file_header();
    writer.reserve_null_section_index();
    writer.reserve_dynsym_section_index();
    writer.reserve_dynstr_section_index();
    writer.reserve_shstrtab_section_index();
    writer.reserve_null_dynamic_symbol_index();
    for _ in &names {
        writer.reserve_dynamic_symbol_index();
    }
    writer.reserve_dynsym();
    writer.reserve_dynstr();
    writer.reserve_shstrtab();
    writer.reserve_section_headers();
    let header = FileHeader {
        os_abi: 0,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine,
        e_entry: 0,
        e_flags: 0,
    };
    writer.write_file_header(&header).expect("a header");
    writer.write_null_dynamic_symbol();
    for name in names {
        writer.write_dynamic_symbol(&Sym {
            name: Some(name),
            section: None,
            st_info: (elf::STB_GLOBAL << 4) | elf::STT_FUNC,
            st_other: 0,
            // A section of its own: the symbols are defined, without content.
            st_shndx: elf::SHN_ABS,
            st_value: 0,
            st_size: 1,
        });
    }
    writer.write_dynstr();
    writer.write_shstrtab();
    writer.write_null_section_header();
    writer.write_dynsym_section_header(0, 1);
    writer.write_dynstr_section_header(0);
    writer.write_shstrtab_section_header();
    bytes
}

/// The object of the graph.
pub fn sound_object() -> Vec<u8> {
    object(Architecture::X86_64, &FUNCTIONS, &["memcpy", "expf"])
}

/// The contents of the small archive.
pub fn contents(version: Version, code: &str, bytes: Vec<u8>) -> Contents {
    let vector = TestVector {
        inputs: vec![param("data", float32(&[1, 8]))],
        outputs: vec![param("0", float32(&[1, 4])), param("1", float32(&[1, 12]))],
    };
    let workspace = |name: &&str| (name.to_string(), 16);
    let shared = Shared {
        bytes: shared_object(elf::EM_X86_64, &FUNCTIONS).into(),
        requires: vec!["avx2".into(), "fma".into()],
    };
    Contents {
        version,
        time: 1_700_000_000,
        models: vec![Model {
            name: "default".into(),
            target: "llvm -keys=cpu".into(),
            device: 1,
            graph: graph(),
            outputs: vec!["out".into(), "sum".into()],
            params: vec![param("b", float32(&[16])), param("w", float32(&[16, 8]))],
            workspaces: FUNCTIONS.iter().map(workspace).collect(),
            with_weights: true,
            vectors: vec![vector],
        }],
        code: BTreeMap::from([(code.into(), bytes.into())]),
        shared: Some(shared),
        sources: BTreeMap::from([("model.mlir".into(), Bytes::from_static(b"module {}\n"))]),
    }
}

/// The small archive with an object.
pub fn package(version: Version) -> Package {
    let contents = contents(version, "lib/default_lib0.o", sound_object());
    irc_mlf::build("test.tar", &contents).unwrap_or_else(|report| panic!("{report:#?}"))
}

/// The small archive as a file.
pub fn tar(package: &Package) -> Bytes {
    let mut bytes = vec![];
    package.archive.write(1_700_000_000, &mut bytes).expect("memory");
    bytes.into()
}

/// All diagnostics of a file.
pub fn diagnostics(bytes: &Bytes) -> Vec<Diagnostic> {
    let (package, report) = irc_mlf::read("test.tar", bytes);
    assert_eq!(package.is_none(), report.has_errors(), "rejected if and only if there are errors");
    let mut found: Vec<Diagnostic> = report.all().cloned().collect();
    if let Some(package) = package {
        found.extend(check(&package, Depth::Content).all().cloned());
    }
    found
}
