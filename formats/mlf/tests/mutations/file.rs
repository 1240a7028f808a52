//! Mutations of members.

use irc_mlf::Version::{self, V5, V7};
use object::{Architecture, elf};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Members, Row};
use crate::support::{FUNCTIONS, object, shared_object};

const METADATA: &str = "metadata.json";
const GRAPH: &str = "executor-config/graph/graph.json";
const PARAMS: &str = "parameters/default.params";
const WEIGHTS: &str = "parameters/default.weights";
const OBJECT: &str = "codegen/host/lib/default_lib0.o";
const SHARED: &str = "codegen/host/shared/default.so";
const INPUTS: &str = "test-vectors/default/0.inputs.params";

/// Brings the hashes up to date.
pub fn rehash(members: &mut Members) {
    let hash = |content: &Vec<u8>| -> String {
        Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if !members.contains_key(METADATA) {
        return;
    }
    let rest = members.iter().filter(|(path, _)| *path != METADATA);
    let hashes: Value = rest.map(|(path, content)| (path.clone(), json!(hash(content)))).collect();
    edit(members, METADATA, |metadata| {
        if let Some(place) = metadata.pointer_mut("/irc/sha256") {
            *place = hashes;
        }
    });
}

fn edit(members: &mut Members, path: &str, change: impl FnOnce(&mut Value)) {
    let content = members.get_mut(path).expect("the member");
    // Some rows leave text that is no JSON, and want it so.
    let Ok(mut value) = serde_json::from_slice(content) else { return };
    change(&mut value);
    *content = serde_json::to_vec(&value).expect("memory");
}

fn row(name: &'static str, code: &'static str, edit: impl Fn(&mut Members) + 'static) -> Row {
    Row { name, code, version: V5, edit: Box::new(edit), rehash: true }
}

/// Sets or adds a value of a JSON member.
fn set(
    name: &'static str,
    code: &'static str,
    path: &'static str,
    pointer: &'static str,
    new: Value,
) -> Row {
    row(name, code, move |members| {
        edit(members, path, |value| {
            let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
            match value.pointer_mut(parent).expect("the parent") {
                Value::Object(object) => drop(object.insert(key.to_owned(), new.clone())),
                Value::Array(array) => match key.parse::<usize>() {
                    Ok(index) => array[index] = new.clone(),
                    Err(_) => array.push(new.clone()),
                },
                other => panic!("{other} has no parts"),
            }
        });
    })
}

/// Removes a key of a JSON member.
fn cut(name: &'static str, code: &'static str, path: &'static str, pointer: &'static str) -> Row {
    row(name, code, move |members| {
        edit(members, path, |value| {
            let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
            match value.pointer_mut(parent).expect("the parent") {
                Value::Object(object) => drop(object.remove(key).expect("the key")),
                Value::Array(array) => drop(array.remove(key.parse().expect("an index"))),
                other => panic!("{other} has no parts"),
            }
        });
    })
}

/// Replaces the first occurrence of a text in a member.
fn text(
    name: &'static str,
    code: &'static str,
    path: &'static str,
    from: &'static str,
    to: &'static str,
) -> Row {
    row(name, code, move |members| {
        let content = members.get_mut(path).expect("the member");
        let old = String::from_utf8(content.clone()).expect("text");
        *content = old.replacen(from, to, 1).into_bytes();
    })
}

/// Replaces bytes of a member at an offset.
fn bytes(
    name: &'static str,
    code: &'static str,
    path: &'static str,
    at: usize,
    new: &'static [u8],
) -> Row {
    row(name, code, move |members| {
        let content = members.get_mut(path).expect("the member");
        content[at..at + new.len()].copy_from_slice(new);
    })
}

/// Replaces the object.
fn code(
    name: &'static str,
    code: &'static str,
    functions: Vec<&'static str>,
    undefined: &'static [&'static str],
) -> Row {
    row(name, code, move |members| {
        let new = object(Architecture::X86_64, &functions, undefined);
        members.insert(OBJECT.into(), new);
    })
}

fn version(version: Version, row: Row) -> Row {
    Row { version, ..row }
}

/// Replaces the shared library.
fn shared(name: &'static str, e_machine: u16, functions: &'static [&'static str]) -> Row {
    row(name, "mlf-library", move |members| {
        members.insert(SHARED.into(), shared_object(e_machine, functions));
    })
}

/// All mutations of members.
pub fn all() -> Vec<Row> {
    let mut rows = vec![];
    rows.extend(members());
    rows.extend(graph_form());
    rows.extend(graph_sense());
    rows.extend(graph_subset());
    rows.extend(parameters());
    rows.extend(metadata());
    rows.extend(sizes());
    rows.extend(libraries());
    rows.extend(ours());
    rows
}

fn members() -> Vec<Row> {
    let gone = |name, path: &'static str| {
        row(name, "mlf-missing-member", move |members| drop(members.remove(path)))
    };
    vec![
        gone("no metadata", METADATA),
        gone("no graph", GRAPH),
        gone("no parameters", PARAMS),
        row("no code", "mlf-no-code", |members| drop(members.remove(OBJECT))),
    ]
}

fn graph_form() -> Vec<Row> {
    let node = "/nodes/3/attrs";
    vec![
        text("no JSON", "mlf-json", GRAPH, "{", "["),
        set("top key", "mlf-graph-key", GRAPH, "/extra", json!(1)),
        text("metadata first", "mlf-graph-key", GRAPH, "{", "{\"metadata\": {},"),
        set("node key", "mlf-graph-key", GRAPH, "/nodes/3/extra", json!(1)),
        set("list of strings", "mlf-graph-key", GRAPH, "/attrs/extra", json!(["list_str", []])),
        cut("no node_row_ptr", "mlf-missing-key", GRAPH, "/node_row_ptr"),
        cut("no flatten_data", "mlf-missing-key", GRAPH, "/nodes/3/attrs/flatten_data"),
        set("number attribute", "mlf-wrong-type", GRAPH, "/nodes/3/attrs/num_inputs", json!(1)),
        set("other number attribute", "mlf-wrong-type", GRAPH, "/nodes/3/attrs/x", json!(1)),
        set("negative index", "mlf-wrong-type", GRAPH, "/heads/0/0", json!(-1)),
        set("edge of one", "mlf-wrong-type", GRAPH, "/heads/0", json!([1])),
        text("key twice", "mlf-duplicate-key", GRAPH, "\"heads\"", "\"heads\": [], \"heads\""),
        text("escape", "mlf-graph-escape", GRAPH, "\"data\"", "\"\\u0064ata\""),
        set("operation", "mlf-graph-op", GRAPH, "/nodes/3/op", json!("other")),
        set("input of an input", "mlf-graph-op", GRAPH, "/nodes/1/inputs/-", json!([0, 0, 0])),
        set("inputs counted", "mlf-graph-count", GRAPH, "/nodes/4/attrs/num_inputs", json!("2")),
        set("inputs worded", "mlf-graph-count", GRAPH, "/nodes/4/attrs/num_inputs", json!("x")),
        set("outputs none", "mlf-graph-rows", GRAPH, "/nodes/3/attrs/num_outputs", json!("0")),
        set("outputs counted", "mlf-graph-rows", GRAPH, "/nodes/6/attrs/num_outputs", json!("3")),
        set("row", "mlf-graph-rows", GRAPH, "/node_row_ptr/2", json!(7)),
        set("rows", "mlf-graph-rows", GRAPH, "/node_row_ptr/-", json!(8)),
        set("element type", "mlf-graph-dtype", GRAPH, "/attrs/dltype/1/3", json!("float33x")),
        cut("one type less", "mlf-graph-entries", GRAPH, "/attrs/dltype/1/7"),
        row("an entry more", "mlf-graph-entries", |members| {
            edit(members, GRAPH, |graph| {
                for (list, new) in [
                    ("dltype", json!("int8")),
                    ("storage_id", json!(1)),
                    ("shape", json!([1])),
                    ("device_index", json!(1)),
                ] {
                    let list = graph["attrs"][list][1].as_array_mut().expect("a list");
                    list.push(new);
                }
            });
        }),
        set("kind of list", "mlf-wrong-type", GRAPH, "/attrs/shape/0", json!("list_int")),
        row("function without a name", "mlf-graph-function", move |members| {
            edit(members, GRAPH, |graph| {
                *graph.pointer_mut(&format!("{node}/func_name")).expect("a name") = json!("");
            });
        }),
    ]
}

fn graph_sense() -> Vec<Row> {
    let storage = |name, entry: &'static str, storage: i64| {
        set(name, "mlf-graph-overlap", GRAPH, entry, json!(storage))
    };
    vec![
        set("cycle", "mlf-graph-cycle", GRAPH, "/nodes/3/inputs/0", json!([5, 0, 0])),
        set("of itself", "mlf-graph-cycle", GRAPH, "/nodes/4/inputs/0", json!([4, 0, 0])),
        set("no such node", "mlf-graph-reference", GRAPH, "/nodes/4/inputs/0", json!([99, 0, 0])),
        set("no such output", "mlf-graph-reference", GRAPH, "/nodes/4/inputs/0", json!([3, 1, 0])),
        set("no such head", "mlf-graph-reference", GRAPH, "/heads/1", json!([6, 2, 0])),
        set("no outputs", "mlf-graph-outputs", GRAPH, "/heads", json!([])),
        set("call as input", "mlf-graph-inputs", GRAPH, "/arg_nodes/1", json!(3)),
        set("no such input", "mlf-graph-inputs", GRAPH, "/arg_nodes/1", json!(77)),
        set("input twice", "mlf-graph-inputs", GRAPH, "/arg_nodes/1", json!(2)),
        cut("input not listed", "mlf-graph-inputs", GRAPH, "/arg_nodes/1"),
        set("one name for two", "mlf-graph-name", GRAPH, "/nodes/2/name", json!("w")),
        set("negative dimension", "mlf-graph-shape", GRAPH, "/attrs/shape/1/3", json!([-1, 8])),
        set("huge shape", "mlf-graph-shape", GRAPH, "/attrs/shape/1/3", json!([1u64 << 62, 8])),
        set("negative storage", "mlf-graph-storage", GRAPH, "/attrs/storage_id/1/3", json!(-1)),
        storage("result over operand", "/attrs/storage_id/1/4", 3),
        storage("call over parameter", "/attrs/storage_id/1/4", 1),
        storage("call over input", "/attrs/storage_id/1/5", 0),
        storage("outputs over each other", "/attrs/storage_id/1/7", 5),
        set("two devices", "mlf-graph-device", GRAPH, "/attrs/device_index/1/5", json!(2)),
        set("another device", "mlf-target", GRAPH, "/attrs/device_index/1/0", json!(2)),
    ]
}

fn graph_subset() -> Vec<Row> {
    let long = || "n".repeat(200);
    vec![
        set("long name", "mlf-subset-name", GRAPH, "/nodes/0/name", json!(long())),
        set("name of no ASCII", "mlf-subset-name", GRAPH, "/nodes/0/name", json!("größe")),
        set("rank", "mlf-subset-rank", GRAPH, "/attrs/shape/1/7", json!([])),
        set("gap", "mlf-subset-gap", GRAPH, "/attrs/storage_id/1/7", json!(9)),
        set("long value", "mlf-subset-attribute", GRAPH, "/nodes/3/attrs/hash", json!(long())),
        set("flattened", "mlf-subset-flatten", GRAPH, "/nodes/3/attrs/flatten_data", json!("1")),
        set("nop", "mlf-subset-builtin", GRAPH, "/nodes/3/attrs/func_name", json!("__nop")),
        row("arguments", "mlf-subset-arguments", |members| {
            edit(members, GRAPH, |graph| {
                graph["nodes"][4]["inputs"] = json!(vec![[0, 0, 0]; 9]);
                graph["nodes"][4]["attrs"]["num_inputs"] = json!("9");
            });
        }),
        row("metadata last", "mlf-subset-key", |members| {
            let graph = members.get_mut(GRAPH).expect("a graph");
            graph.truncate(graph.len() - 1);
            graph.extend(b", \"metadata\": {}}");
        }),
        set("scopes", "mlf-subset-key", GRAPH, "/attrs/storage_scope", json!(["list_str", []])),
        set("list of integers", "mlf-subset-key", GRAPH, "/attrs/extra", json!(["list_int", []])),
        set("parameter first", "mlf-subset-first-input", GRAPH, "/arg_nodes", json!([1, 0, 2])),
        set("surplus parameter", "mlf-subset-surplus-param", GRAPH, "/nodes/1/name", json!("v")),
        row("model name", "mlf-subset-model-name", |members| {
            let params = members.remove(PARAMS).expect("parameters");
            members.insert("parameters/mine.params".into(), params);
            edit(members, METADATA, |metadata| metadata["model_name"] = json!("mine"));
        }),
    ]
}

fn parameters() -> Vec<Row> {
    // Words of the file of `b` float32[16] and `w` float32[16,8].
    const COUNT: usize = 16;
    const NAME: usize = 32;
    const TENSOR: usize = 24 + 2 * 9 + 8;
    const DEVICE: usize = TENSOR + 16;
    const RANK: usize = DEVICE + 8;
    const SHAPE: usize = RANK + 8;
    const SIZE: usize = SHAPE + 8;
    vec![
        bytes("magic of the list", "mlf-params-magic", PARAMS, 0, &[0]),
        bytes("reserved word", "mlf-params-magic", PARAMS, 8, &[1]),
        bytes("huge count", "mlf-params-count", PARAMS, COUNT, &[0xff; 8]),
        bytes("other count", "mlf-params-count", PARAMS, TENSOR - 8, &[3]),
        bytes("long name", "mlf-params-name", PARAMS, COUNT + 8, &[0xff; 8]),
        bytes("name twice", "mlf-params-name", PARAMS, NAME, b"w"),
        bytes("name of no text", "mlf-params-name", PARAMS, NAME, &[0xff]),
        bytes("magic of a tensor", "mlf-params-magic", PARAMS, TENSOR, &[0]),
        bytes("device", "mlf-params-device", PARAMS, DEVICE, &[2]),
        bytes("negative rank", "mlf-params-shape", PARAMS, RANK, &[0xff; 4]),
        bytes("kind of element", "mlf-params-dtype", PARAMS, RANK + 4, &[9]),
        bytes("no bits", "mlf-params-dtype", PARAMS, RANK + 5, &[0]),
        bytes("lanes", "mlf-params-dtype", PARAMS, RANK + 6, &[4]),
        bytes("negative dimension", "mlf-params-shape", PARAMS, SHAPE, &[0xff; 8]),
        bytes("size", "mlf-params-size", PARAMS, SIZE, &[60]),
        bytes("size of another shape", "mlf-params-size", PARAMS, SHAPE, &[15]),
        bytes("other type", "mlf-param-type", PARAMS, RANK + 4, &[0]),
        row("cut by eight bytes", "mlf-truncated", |members| {
            let params = members.get_mut(PARAMS).expect("parameters");
            params.truncate(params.len() - 8);
        }),
        row("eight bytes more", "mlf-trailing", |members| {
            members.get_mut(PARAMS).expect("parameters").extend([0; 8]);
        }),
        row("missing parameter", "mlf-size", |members| {
            let params =
                irc_mlf::params::read(&members[PARAMS].clone().into(), &mut irc_diag::Sink::new());
            let params = params.expect("sound");
            members.insert(PARAMS.into(), irc_mlf::params::write(&params[1..]).to_vec());
        }),
        set("other shape", "mlf-param-type", GRAPH, "/attrs/shape/1/2", json!([4, 4])),
    ]
}

fn metadata() -> Vec<Row> {
    vec![
        set("version", "mlf-version", METADATA, "/version", json!(8)),
        set("version zero", "mlf-version", METADATA, "/version", json!(0)),
        cut("no target", "mlf-missing-key", METADATA, "/target"),
        set("no size", "mlf-wrong-type", METADATA, "/memory/sids/0/size_bytes", json!(-1)),
        set("style", "mlf-style", METADATA, "/style", json!("half-model")),
        cut("no style", "mlf-metadata-form", METADATA, "/style"),
        set("executor", "mlf-executor", METADATA, "/executors/0", json!("vm")),
        set("no device", "mlf-target", METADATA, "/target", json!({"cpu": "llvm"})),
        set("name with folders", "mlf-model-name", METADATA, "/model_name", json!("../x")),
        version(V7, set("no models", "mlf-model-name", METADATA, "/modules", json!({}))),
        version(
            V7,
            set(
                "other name",
                "mlf-model-name",
                METADATA,
                "/modules/default/model_name",
                json!("x"),
            ),
        ),
        version(
            V7,
            set(
                "type of an input",
                "mlf-metadata-dtype",
                METADATA,
                "/modules/default/memory/functions/main/0/inputs/data/dtype",
                json!("f32"),
            ),
        ),
        version(
            V7,
            set(
                "size of an input",
                "mlf-signature",
                METADATA,
                "/modules/default/memory/functions/main/0/inputs/data/size",
                json!(31),
            ),
        ),
    ]
}

fn sizes() -> Vec<Row> {
    const MAIN: &str = "/memory/functions/main/0";
    let main = |name, key: &'static str| {
        row(name, "mlf-size", move |members| {
            edit(members, METADATA, |metadata| {
                let size = metadata.pointer_mut(MAIN).expect("main").get_mut(key);
                let size = size.expect("a size");
                *size = json!(size.as_u64().expect("a number") + 16);
            });
        })
    };
    let gone = |members: &mut Members| {
        edit(members, METADATA, |metadata| drop(metadata.as_object_mut().map(|m| m.remove("irc"))));
    };
    vec![
        main("constants", "constants_size_bytes"),
        main("inputs and outputs", "io_size_bytes"),
        main("workspace", "workspace_size_bytes"),
        set("size of a storage", "mlf-size", METADATA, "/memory/sids/3/size_bytes", json!(32)),
        set("nothing stated", "mlf-size", METADATA, "/memory/functions/main", json!([])),
        row("several devices", "mlf-devices", |members| {
            edit(members, METADATA, |metadata| {
                let main = metadata["memory"]["functions"]["main"].as_array_mut().expect("a list");
                main.push(main[0].clone());
            });
        }),
        set("no such storage", "mlf-storage", METADATA, "/memory/sids/3/storage_id", json!(9)),
        cut("storage not listed", "mlf-storage", METADATA, "/memory/sids/3"),
        set("other input", "mlf-binding", METADATA, "/memory/sids/0/input_binding", json!("w")),
        cut("no input", "mlf-binding", METADATA, "/memory/sids/0/input_binding"),
        cut("no workspace", "mlf-workspace", METADATA, "/memory/functions/operator_functions/0"),
        row("sizes as TVM states them", "mlf-tvm-size", move |members| {
            gone(members);
            edit(members, METADATA, |metadata| {
                // Outputs of 16 floats once for each of the two.
                let size = &mut metadata["memory"]["functions"]["main"][0]["io_size_bytes"];
                *size = json!((8 + 2 * 16) * 4);
            });
        }),
        row("sizes of nobody", "mlf-size", move |members| {
            gone(members);
            edit(members, METADATA, |metadata| {
                let size = &mut metadata["memory"]["functions"]["main"][0]["io_size_bytes"];
                *size = json!(1);
            });
        }),
    ]
}

fn libraries() -> Vec<Row> {
    let all = || FUNCTIONS.to_vec();
    vec![
        code("function missing", "mlf-missing-function", FUNCTIONS[1..].to_vec(), &[]),
        code("undefined symbol", "mlf-undefined-symbol", all(), &["exit_everything"]),
        code("runtime symbol", "mlf-runtime-symbol", all(), &["TVMBackendAllocWorkspace"]),
        code(
            "parameters in the library",
            "mlf-linked-params",
            [&FUNCTIONS[..], &["_lookup_linked_param"]].concat(),
            &[],
        ),
        row("no object", "mlf-object", |members| drop(members.insert(OBJECT.into(), vec![1; 99]))),
        row("cut object", "mlf-object", |members| {
            members.get_mut(OBJECT).expect("an object").truncate(100);
        }),
        row("function twice", "mlf-duplicate-symbol", |members| {
            let again = object(Architecture::X86_64, &FUNCTIONS[..1], &[]);
            members.insert("codegen/host/lib/default_lib1.o".into(), again);
        }),
        row("two machines", "mlf-machine", |members| {
            let other = object(Architecture::Aarch64, &["other"], &[]);
            members.insert("codegen/host/lib/default_lib1.o".into(), other);
        }),
        row("declared alone", "mlf-missing-function", |members| {
            members.remove(OBJECT);
            let declared = FUNCTIONS.map(|name| format!("int32_t {name}(void* args);\n")).concat();
            members.insert("codegen/host/src/default_lib0.c".into(), declared.into_bytes());
        }),
    ]
}

fn ours() -> Vec<Row> {
    let weights = "/irc/models/default/weights";
    let hash = |row: Row| Row { rehash: false, ..row };
    vec![
        set("agreement", "mlf-abi", METADATA, "/irc/abi", json!(2)),
        hash(row("member changed", "mlf-hash", |members| {
            members.get_mut("src/model.mlir").expect("a source").push(b' ');
        })),
        hash(row("member added", "mlf-hash", |members| {
            members.insert("src/other.mlir".into(), vec![]);
        })),
        hash(row("member gone", "mlf-hash", |members| drop(members.remove("src/model.mlir")))),
        row("no such model", "mlf-model-name", |members| {
            edit(members, METADATA, |metadata| {
                let models = &mut metadata["irc"]["models"];
                models["other"] = models["default"].clone();
            });
        }),
        row("no shared library", "mlf-library", |members| drop(members.remove(SHARED))),
        bytes("no library at all", "mlf-library", SHARED, 0, &[0]),
        row("an object for a library", "mlf-library", |members| {
            let object = members[OBJECT].clone();
            members.insert(SHARED.into(), object);
        }),
        shared("library of another machine", elf::EM_AARCH64, &FUNCTIONS),
        shared("function not exported", elf::EM_X86_64, &[FUNCTIONS[0], FUNCTIONS[1]]),
        cut("features not said", "mlf-missing-key", METADATA, "/irc/library/requires"),
        set("a number of features", "mlf-wrong-type", METADATA, "/irc/library/requires", json!(2)),
        set(
            "a name too few",
            "mlf-outputs",
            METADATA,
            "/irc/models/default/outputs",
            json!(["out"]),
        ),
        row("no weights", "mlf-weights", |members| drop(members.remove(WEIGHTS))),
        bytes("other weights", "mlf-weights", WEIGHTS, 3, &[0xaa]),
        set(
            "alignment",
            "mlf-weights",
            METADATA,
            "/irc/models/default/weights/alignment",
            json!(8),
        ),
        set(
            "unaligned",
            "mlf-weights",
            METADATA,
            "/irc/models/default/weights/offsets/w",
            json!(65),
        ),
        set(
            "over another",
            "mlf-weights",
            METADATA,
            "/irc/models/default/weights/offsets/w",
            json!(0),
        ),
        set(
            "beyond",
            "mlf-weights",
            METADATA,
            "/irc/models/default/weights/offsets/w",
            json!(u64::MAX),
        ),
        set(
            "no such",
            "mlf-weights",
            METADATA,
            "/irc/models/default/weights/offsets/x",
            json!(640),
        ),
        row("no place", "mlf-weights", move |members| {
            edit(members, METADATA, |metadata| {
                let offsets = metadata.pointer_mut(&format!("{weights}/offsets"));
                offsets.and_then(Value::as_object_mut).expect("offsets").remove("b");
            });
        }),
        row("no inputs", "mlf-test-vector", |members| drop(members.remove(INPUTS))),
        bytes("name of an input", "mlf-test-vector", INPUTS, 32, b"x"),
        bytes("inputs of no tensor", "mlf-params-magic", INPUTS, 0, &[0]),
    ]
}
