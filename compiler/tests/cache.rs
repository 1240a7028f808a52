//! Caches of keys and values are updated in place, and attention reads them where they are.
use crate::support::levels::levels;
use irc::{
    Compiled, ImportOptions, Place, Session, Source, Target,
    codegen::Output,
    gpu::{Options as Emulation, emulate},
};
use irc_runtime::{Context, ContextOptions, ModelError, OpenOptions, Runner};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{DType, Dim};
use std::{collections::BTreeMap, sync::Arc};

const HEADS: i64 = 2;
const DEPTH: i64 = 16;

/// A decoder layer's attention of one new token.
fn decoder(past: &str) -> String {
    let port = |name: &str, length: &str| {
        let dim = |size: &str| match size.parse::<i64>() {
            Ok(_) => format!("dim {{ dim_value: {size} }}"),
            Err(_) => format!("dim {{ dim_param: \"{size}\" }}"),
        };
        let dims = ["1", "2", length, "16"].map(dim).join(" ");
        format!("name: \"{name}\" type {{ tensor_type {{ elem_type: 1 shape {{ {dims} }} }} }}")
    };
    let node = |op: &str, inputs: &[&str], output: &str, rest: &str| {
        let inputs: Vec<String> = inputs.iter().map(|it| format!("input: \"{it}\"")).collect();
        format!("node {{ op_type: \"{op}\" {} output: \"{output}\" {rest} }}", inputs.join(" "))
    };
    let axis = "attribute { name: \"axis\" type: INT i: 2 }";
    let perm = "attribute { name: \"perm\" type: INTS ints: [0, 1, 3, 2] }";
    let nodes = [
        node("Concat", &["past_k", "k"], "present_k", axis),
        node("Concat", &["past_v", "v"], "present_v", axis),
        node("Transpose", &["present_k"], "kt", perm),
        node("MatMul", &["q", "kt"], "s", ""),
        node("Mul", &["s", "scale"], "scaled", ""),
        node("Softmax", &["scaled"], "p", "attribute { name: \"axis\" type: INT i: -1 }"),
        node("MatMul", &["p", "present_v"], "y", ""),
    ];
    let inputs = [("q", "1"), ("k", "1"), ("v", "1"), ("past_k", past), ("past_v", past)];
    let inputs = inputs.map(|(name, length)| format!("input {{ {} }}", port(name, length)));
    let outputs = ["y", "present_k", "present_v"].map(|name| {
        format!("output {{ name: \"{name}\" type {{ tensor_type {{ elem_type: 1 }} }} }}")
    });
    format!(
        "ir_version: 8 opset_import {{ version: 17 }} graph {{ name: \"g\" {} {} {}
         initializer {{ name: \"scale\" data_type: 1 float_data: 0.25 }} }}",
        nodes.join(" "),
        inputs.join(" "),
        outputs.join(" ")
    )
}

fn floats(rows: i64, seed: u64) -> Tensor {
    Tensor::random(TensorType::new(DType::F32, [1, HEADS, rows, DEPTH]), seed).unwrap()
}

/// The first rows of each head.
fn first(of: &Tensor, rows: i64) -> Tensor {
    let own = of.shape()[2] as usize * DEPTH as usize * 4;
    let bytes = of.bytes().chunks(own).flat_map(|head| &head[..(rows * DEPTH) as usize * 4]);
    let ty = TensorType::new(DType::F32, [1, HEADS, rows, DEPTH]);
    Tensor::from_bytes(ty, &bytes.copied().collect::<Vec<_>>()).unwrap()
}

fn import<'s>(
    session: &'s Session,
    text: &str,
    cache: Option<Dim>,
) -> Result<irc::Model<'s>, String> {
    let options = ImportOptions { cache, ..ImportOptions::default() };
    let model = session.import_bytes("decoder.pbtxt", text.to_owned().into(), &options);
    model.map_err(|error| error.to_string())
}

/// What the model computes as it is written, from the first tokens of buffers.
fn expected(text: &str, new: &[Tensor; 3], pasts: [Tensor; 2]) -> BTreeMap<String, Tensor> {
    let session = Session::new();
    let [q, k, v] = new.clone();
    let [past_k, past_v] = pasts;
    let inputs = [("q", q), ("k", k), ("v", v), ("past_k", past_k), ("past_v", past_v)];
    let inputs = inputs.map(|(name, tensor)| (name.to_owned(), tensor));
    import(&session, text, None).unwrap().evaluate(inputs.into()).unwrap()
}

fn close(found: &Tensor, expected: &Tensor) {
    assert_eq!(found.shape(), expected.shape());
    for (found, expected) in found.to_f64().into_iter().zip(expected.to_f64()) {
        assert!((found - expected).abs() <= 1e-5, "{found} instead of {expected}");
    }
}

/// Runs a token, and checks it; in place in the outputs of the token before, if that is so.
fn token(
    (runner, in_place): (&mut Runner, bool),
    text: &str,
    past: i64,
    outputs: &mut Vec<Tensor>,
    pasts: [&Tensor; 2],
) {
    let new = [1, 2, 3].map(|part| floats(1, (10 * past + part) as u64));
    let length = Tensor::from_values([], &[past]).unwrap();
    let inputs: Vec<&Tensor> = runner
        .inputs()
        .map(|port| match &*port.name {
            "q" => &new[0],
            "k" => &new[1],
            "v" => &new[2],
            "past_k" => pasts[0],
            "past_v" => pasts[1],
            _ => &length,
        })
        .collect();
    let before = match &outputs[..] {
        [_, keys, values] if in_place => [first(keys, past), first(values, past)],
        _ => pasts.map(|buffer| first(buffer, past)),
    };
    let addresses: Vec<_> = outputs.iter().map(|output| output.bytes().as_ptr()).collect();
    runner.run_with(&inputs, outputs).unwrap();
    if let [_, keys, values] = addresses[..] {
        assert_eq!([keys, values], [1, 2].map(|at| outputs[at].bytes().as_ptr()));
    }
    let expected = expected(text, &new, before);
    close(&outputs[0], &expected["y"]);
    for (output, name) in outputs[1..].iter().zip(["present_k", "present_v"]) {
        assert_eq!(first(output, past + 1), expected[name]);
    }
}

/// Runs tokens in place; what the inputs hold after the first one has no effect.
fn tokens(compiled: &Compiled, text: &str, capacity: i64, pasts: impl Iterator<Item = i64>) {
    let updates = compiled.interface.outputs.iter().map(|port| port.updates.as_deref());
    assert_eq!(updates.collect::<Vec<_>>(), [None, Some("past_k"), Some("past_v")]);
    let mut runner = compiled.runner().unwrap();
    let buffers = [floats(capacity, 7), floats(capacity, 8)];
    let zeros = [0, 1].map(|_| Tensor::zeros(buffers[0].ty().clone()).unwrap());
    let mut outputs = match compiled.interface.is_sized() {
        true => vec![],
        false => {
            let ports = compiled.interface.outputs.iter();
            ports.map(|port| Tensor::zeros(port.tensor_type().unwrap()).unwrap()).collect()
        }
    };
    for (number, past) in pasts.enumerate() {
        let given = if number == 0 { &buffers } else { &zeros };
        let pasts = [&given[0], &given[1]];
        token((&mut runner, number > 0), text, past, &mut outputs, pasts);
        for (output, old) in outputs[1..].iter().zip(&buffers) {
            let rest = |of: &Tensor| of.bytes()[of.bytes().len() - 4..].to_vec();
            assert!(past + 1 == capacity || rest(output) == rest(old), "the room is unchanged");
        }
        runner.share();
    }
}

#[test]
fn gpus_update_caches_of_a_known_number_of_tokens() {
    let session = Session::new();
    let emit = |past: &str| {
        let model = import(&session, &decoder(past), Some(9.into())).unwrap();
        let code = model.emit(Output::Ptx, Target::gpu(80));
        code.map(|code| String::from_utf8(code).unwrap()).map_err(|error| error.to_string())
    };
    let message = emit("P").expect_err("a value");
    let reason = "the value of input 'P' determines sizes, and kernels for GPUs need known sizes";
    assert!(message.contains(reason), "{message}");

    let new = [1, 2, 3].map(|seed| floats(1, seed));
    let buffers = [4, 5].map(|seed| floats(9, seed));
    let names = ["q", "k", "v", "past_k", "past_v"].map(str::to_owned);
    let inputs = names.into_iter().zip(new.iter().chain(&buffers).cloned()).collect();
    let source = Source::new("decoder.ptx", emit("5").unwrap());
    let found = emulate(&source, &inputs, &Emulation::CHECKED).unwrap().outputs;
    let expected = expected(&decoder("5"), &new, buffers.each_ref().map(|it| first(it, 5)));
    close(&found["y"], &expected["y"]);
    for name in ["present_k", "present_v"] {
        assert_eq!(first(&found[name], 6), expected[name], "{name}");
    }
}

#[test]
fn a_known_number_of_tokens_in_a_buffer() {
    let text = decoder("5");
    for target in levels() {
        for capacity in [6, 9] {
            let session = Session::new();
            let model = import(&session, &text, Some(capacity.into())).unwrap();
            let compiled = model.library_with(target.clone(), Place::Given).unwrap();
            tokens(&compiled, &text, capacity, [5, 5].into_iter());
        }
    }
}

#[test]
fn any_number_of_tokens_in_a_buffer_of_any_size() {
    let text = decoder("P");
    for target in levels() {
        for capacity in [Dim::from(1040), Dim::symbol("C")] {
            let session = Session::new();
            let model = import(&session, &text, Some(capacity)).unwrap();
            let compiled = model.library_with(target.clone(), Place::Given).unwrap();
            // Around the end of a block of columns.
            tokens(&compiled, &text, 1040, 1005..1011);
            tokens(&compiled, &text, 1040, 0..3);
        }
    }
}

/// The message of a run in which an output is bound to the memory of a port.
fn bound(context: &mut Context, output: usize, memory: &mut [u8]) -> Result<(), ModelError> {
    // Safety: the memory outlives the run.
    unsafe { context.bind_output(output, memory.as_mut_ptr(), memory.len())? };
    context.run()
}

#[test]
fn a_context_binds_an_input_and_its_update_to_one_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (past, capacity) in [("5", Dim::from(8)), ("P", Dim::symbol("C"))] {
        let text = decoder(past);
        let session = Session::new();
        let model = import(&session, &text, Some(capacity)).unwrap();
        let compiled = model.library(irc::Target::host()).unwrap();
        let path = folder.path().join(format!("{past}.so"));
        std::fs::write(&path, &compiled.library).unwrap();
        let model = Arc::new(irc_runtime::Model::open(&path, OpenOptions::default()).unwrap());
        let mut context = Context::new(&model, &ContextOptions::default()).unwrap();
        let new = [1, 2, 3].map(|seed| floats(1, seed));
        let mut buffers = [floats(8, 7), floats(8, 8)];
        let expected = expected(&text, &new, [0, 1].map(|at| first(&buffers[at], 5)));
        for (name, tensor) in ["q", "k", "v"].iter().zip(&new) {
            context.set_input(model.input(name).unwrap(), tensor.bytes()).unwrap();
        }
        if past == "P" {
            context.set_input(model.input("P").unwrap(), &5i64.to_le_bytes()).unwrap();
        }
        let places = ["past_k", "past_v"].map(|name| model.input(name).unwrap());
        for (input, buffer) in places.iter().zip(&buffers) {
            let (shape, bytes) = (buffer.shape(), buffer.bytes());
            // Safety: the buffers outlive the runs.
            let is_bound =
                unsafe { context.bind_input_shaped(*input, shape, bytes.as_ptr(), bytes.len()) };
            is_bound.unwrap();
        }
        let [keys, values] = &mut buffers;
        bound(&mut context, 1, keys.bytes_mut()).unwrap();
        let error = bound(&mut context, 2, keys.bytes_mut()).unwrap_err().to_string();
        assert!(
            error.contains(
                "output 'present_v': expected memory of its own, or all of that of input 'past_v'"
            ),
            "{error}"
        );
        assert!(error.contains("found memory that overlaps "), "{error}");
        bound(&mut context, 2, values.bytes_mut()).unwrap();
        let y = Tensor::from_bytes(expected["y"].ty().clone(), context.output(0).unwrap()).unwrap();
        close(&y, &expected["y"]);
        assert_eq!(context.output_shape(2).unwrap(), [1, 2, 8, 16]);
        assert_eq!(context.output(1).unwrap().as_ptr(), buffers[0].bytes().as_ptr());
        assert_eq!(first(&buffers[0], 6), expected["present_k"]);
        assert_eq!(first(&buffers[1], 6), expected["present_v"]);
    }
}

#[test]
fn what_has_no_room_is_an_error() {
    let session = Session::new();
    let error = |past: &str, capacity: Dim| {
        import(&session, &decoder(past), Some(capacity)).err().expect("an error")
    };
    let message = error("5", 5.into());
    assert!(
        message.contains("'present_k': expected room for at least 6 tokens, found 5"),
        "{message}"
    );
    let message = error("P", Dim::symbol("P"));
    assert!(
        message.contains("expected a new name of the room of caches, but 'P' is a size"),
        "{message}"
    );
    let plain = "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" }";
    let message = import(&session, plain, Some(9.into())).err().expect("an error");
    assert!(message.contains("an input with new tokens behind it"), "{message}");

    let model = import(&session, &decoder("P"), Some(9.into())).unwrap();
    let compiled = model.library(irc::Target::host()).unwrap();
    let mut runner = compiled.runner().unwrap();
    let inputs = ["q", "k", "v"].map(|name| (name.to_owned(), floats(1, 1)));
    let pasts = ["past_k", "past_v"].map(|name| (name.to_owned(), floats(9, 1)));
    for (length, message) in [
        (9i64, "expected a cache with room for all tokens"),
        (-1, "expected a number of past tokens"),
    ] {
        let length = ("P".to_owned(), Tensor::from_values([], &[length]).unwrap());
        let given: BTreeMap<String, Tensor> =
            inputs.clone().into_iter().chain(pasts.clone()).chain([length]).collect();
        let error = runner.run(given).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
