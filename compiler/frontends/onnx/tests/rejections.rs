//! Warnings of what ONNX Runtime rejects.

use irc_common_format::model::{
    Attribute, AttributeValue, Function, Graph, Module, Node, Opset, Schema, Value,
};
use irc_onnx_ops::rejections;

fn opset(domain: &str, version: i64) -> Opset {
    Opset { domain: Some(domain.to_owned()), version }
}

fn module(version: i64, nodes: Vec<Node>) -> Module {
    Module {
        schema: Schema::Onnx,
        opsets: vec![opset("", version)],
        graph: Some(Graph { inputs: vec![Value::untyped("x")], nodes, ..Graph::default() }),
        ..Module::default()
    }
}

fn with(mut node: Node, name: &str, value: AttributeValue) -> Node {
    node.attributes.push(Attribute::new(name, value));
    node
}

fn messages(module: &Module) -> Vec<String> {
    rejections(module).iter().map(ToString::to_string).collect()
}

#[test]
fn attributes_are_those_of_the_operator() {
    let node = Node::new("Softmax", ["x"], ["y"]);
    let found = |name, value| messages(&module(17, vec![with(node.clone(), name, value)]));
    assert_eq!(found("axis", AttributeValue::Int(1)), [""; 0]);
    let wrong = "graph.node[0]: Softmax: version 13 of the operator has no attribute";
    assert_eq!(
        found("axes", AttributeValue::Int(1)),
        [format!("{wrong} `axes`: did you mean `axis`?")]
    );
    assert_eq!(
        found("temperature", AttributeValue::Float(1.0)),
        [format!("{wrong} `temperature`")]
    );
    let kind = "graph.node[0]: Softmax: the attribute `axis` is of kind int, found float";
    assert_eq!(found("axis", AttributeValue::Float(1.0)), [kind]);
}

#[test]
fn operands_are_as_many_as_the_version_has() {
    let found = |version, inputs: &[&str]| {
        let node = Node::new("Squeeze", inputs.iter().copied(), ["y"]);
        messages(&module(version, vec![node]))
    };
    assert_eq!(found(13, &["x", "axes"]), [""; 0]);
    let wrong = "graph.node[0]: Squeeze: version 11 of the operator has 1 inputs, found 2";
    assert_eq!(found(11, &["x", "axes"]), [wrong]);
}

#[test]
fn operator_sets_are_imported_and_known() {
    let node = || vec![Node::new("Relu", ["x"], ["y"])];
    let newer = messages(&module(99, node()));
    assert_eq!(
        newer,
        ["opset[0]: the model: it imports set 99 of ai.onnx, newer than the newest known, 28"]
    );
    let mut none = module(1, node());
    none.opsets.clear();
    assert_eq!(messages(&none).len(), 1);
    let mut ancestor = module(99, node());
    ancestor.schema = Schema::CommonIr;
    assert_eq!(messages(&ancestor), [""; 0]);
}

#[test]
fn functions_import_the_sets_that_they_use() {
    let function = Function {
        domain: Some("my".into()),
        name: Some("F".into()),
        nodes: vec![Node::new("Relu", ["a"], ["b"])],
        ..Function::default()
    };
    let mut call = Node::new("F", ["x"], ["y"]);
    call.domain = Some("my".into());
    let mut found = module(17, vec![call]);
    found.functions = vec![function.clone(), function];
    let of = |index: usize, message: &str| format!("function[{index}]: function 'F': {message}");
    let (domain, set) =
        ("the model does not import its domain, my", "it imports no operator set of ai.onnx");
    assert_eq!(
        messages(&found),
        [of(0, domain), of(0, set), of(1, "it is defined twice"), of(1, domain), of(1, set)]
    );
    found.functions.pop();
    found.functions[0].opsets = vec![opset("", 17)];
    found.opsets.push(opset("my", 1));
    assert_eq!(messages(&found), [""; 0]);
}

#[test]
fn names_in_graphs_of_nodes_are_their_own() {
    let branch = |result: &str| Graph {
        nodes: vec![Node::new("Relu", ["x"], [result])],
        outputs: vec![Value::untyped(result)],
        ..Graph::default()
    };
    let outer = Graph { outputs: vec![Value::untyped("a")], ..Graph::default() };
    let graph = |graph| AttributeValue::Graph(Box::new(graph));
    let node = with(Node::new("If", ["c"], ["y"]), "then_branch", graph(branch("a")));
    let node = with(node, "else_branch", graph(outer));
    let found = messages(&module(17, vec![Node::new("Neg", ["x"], ["a"]), node]));
    let at = |place: usize| format!("graph.node[1].attribute[{place}].g: graph: ");
    assert_eq!(
        found,
        [
            at(0) + "'a' is also the name of a value around it",
            at(1) + "its output 'a' is a value of the graph around it: pass it through Identity",
        ]
    );
}
