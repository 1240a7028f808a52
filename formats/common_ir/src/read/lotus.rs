//! Converts Common IR's messages to the model.

use bytes::Bytes;

use super::shared::{Reader, dim, list, modern, take, typed};
use crate::model::{
    Attribute, AttributeValue, ElementType, Function, Graph, Metadata, Module, Node, Operator,
    Path, ProducerVersion, Schema, Shape, Signature, TensorType, Type, Value,
};
use crate::proto::lotus::{self, type_proto};

impl Reader<'_> {
    pub(super) fn lotus_graph_file(&mut self, mut from: lotus::GraphProto) -> Module {
        let metadata = Metadata {
            name: from.name.take(),
            domain: from.domain.take(),
            ir_version: from.ir_version.take(),
            model_version: from.model_version.take(),
            author: from.model_author.take(),
            license: from.model_license.take(),
            producer: from.producer_tag.take(),
            producer_version: from.producer_version.take().map(ProducerVersion::Number),
            doc: from.doc_string.take(),
            properties: vec![],
        };
        let functions = std::mem::take(&mut from.function);
        let operators = std::mem::take(&mut from.operator);
        Module {
            schema: Schema::CommonIr,
            metadata,
            imports: std::mem::take(&mut from.imported_libraries),
            opsets: vec![],
            operators: operators.into_iter().map(operator).collect(),
            functions: self.lotus_functions(functions),
            graph: Some(self.lotus_graph(from, &Path::GRAPH)),
        }
    }

    pub(super) fn lotus_library(&mut self, from: lotus::LibraryProto) -> Module {
        let metadata = Metadata {
            name: from.name,
            domain: from.domain,
            ir_version: from.ir_version,
            model_version: from.model_version,
            author: from.model_author,
            license: from.model_license,
            producer: from.producer_tag,
            producer_version: from.producer_version.map(ProducerVersion::Number),
            doc: from.doc_string,
            properties: vec![],
        };
        Module {
            schema: Schema::CommonIr,
            metadata,
            imports: from.imported_libraries,
            opsets: vec![],
            operators: from.operator.into_iter().map(operator).collect(),
            functions: self.lotus_functions(from.function),
            graph: None,
        }
    }

    fn lotus_functions(&mut self, from: Vec<lotus::FunctionDefProto>) -> Vec<Function> {
        let read = |(index, from): (usize, lotus::FunctionDefProto)| {
            let at = Path::ROOT;
            let at = at.index("function", index);
            let (domain, name) = split_name(from.name);
            Function {
                name,
                domain,
                inputs: from.input_params.into_iter().map(parameter).collect(),
                outputs: from.output_params.into_iter().map(parameter).collect(),
                attributes: self.lotus_attributes(from.attr, &at),
                nodes: self.lotus_nodes(from.node, &at),
                ..Function::default()
            }
        };
        from.into_iter().enumerate().map(read).collect()
    }

    fn lotus_graph(&mut self, from: lotus::GraphProto, at: &Path<'_>) -> Graph {
        let is_whole = from.ir_version.is_some() || from.domain.is_some();
        self.report_ignored(is_whole, "the version or domain of a graph in an attribute", at);
        let has_symbols = !from.function.is_empty() || !from.operator.is_empty();
        self.report_ignored(has_symbols, "a function or operator of a graph in an attribute", at);
        self.report_ignored(
            !from.imported_libraries.is_empty(),
            "an import of a graph in an attribute",
            at,
        );
        let initializers = from.initializer.into_iter().enumerate();
        let initializers = initializers
            .map(|(index, tensor)| self.tensor(modern(tensor), &at.index("initializer", index)));
        Graph {
            initializers: initializers.collect(),
            nodes: self.lotus_nodes(from.node, at),
            name: from.name,
            doc: from.doc_string,
            inputs: values(from.input, from.input_arg_info),
            outputs: values(from.output, from.output_arg_info),
            ..Graph::default()
        }
    }

    fn lotus_nodes(&mut self, from: Vec<Bytes>, at: &Path<'_>) -> Vec<Node> {
        self.nodes(from, at, |reader, from: lotus::NodeProto, at| {
            let (domain, op) = split(from.op_type.unwrap_or_default());
            Node {
                name: from.name,
                domain,
                op,
                attributes: reader.lotus_attributes(from.attribute, at),
                inputs: from.input,
                outputs: from.output,
                arg_counts: from.input_arg_count,
                control_inputs: from.control_input,
                input_types: from
                    .input_arg_info
                    .into_iter()
                    .map(|info| value(None, info))
                    .collect(),
                output_types: from
                    .output_arg_info
                    .into_iter()
                    .map(|info| value(None, info))
                    .collect(),
                doc: from.doc_string,
                ..Node::default()
            }
        })
    }

    fn lotus_attributes(
        &mut self,
        from: Vec<lotus::AttributeProto>,
        at: &Path<'_>,
    ) -> Vec<Attribute> {
        list(from, |_, from| {
            let name = from.name.clone();
            let at = at.key("attribute", name.as_deref().unwrap_or_default());
            Attribute { name: name.clone(), value: self.lotus_value(from, &at), doc: None }
        })
    }

    fn lotus_value(&mut self, from: lotus::AttributeProto, at: &Path<'_>) -> AttributeValue {
        use AttributeValue as V;
        let mut found = vec![];
        found.extend(from.f.map(V::Float));
        found.extend(from.i.map(V::Int));
        found.extend(from.s.map(V::String));
        found.extend(from.t.map(|t| V::Tensor(Box::new(self.tensor(modern(t), &at.field("t"))))));
        found.extend(from.g.map(|g| V::Graph(Box::new(self.lotus_graph(g, &at.field("g"))))));
        take(&mut found, from.floats, V::Floats);
        take(&mut found, from.ints, V::Ints);
        take(&mut found, from.strings, V::Strings);
        let tensors = from.tensors.into_iter().enumerate();
        let tensors = tensors.map(|(i, t)| self.tensor(modern(t), &at.index("tensors", i)));
        take(&mut found, tensors.collect(), V::Tensors);
        let graphs = from.graphs.into_iter().enumerate();
        let graphs = graphs.map(|(i, g)| self.lotus_graph(g, &at.index("graphs", i)));
        take(&mut found, graphs.collect(), V::Graphs);
        found.extend(from.r#type.and_then(ty).map(|ty| V::Type(Box::new(ty))));
        take(&mut found, from.types.into_iter().filter_map(ty).collect(), V::Types);
        found.extend(from.shape.map(|from| V::Shape(shape(from))));
        take(&mut found, from.shapes.into_iter().map(shape).collect(), V::Shapes);
        self.choose(found, at)
    }
}

/// Splits `com.example.nn.mlp.Relu` into `com.example.nn.mlp` and `Relu`.
fn split(symbol: String) -> (Option<String>, String) {
    match symbol.rsplit_once('.') {
        Some((domain, op)) if !domain.is_empty() => (Some(domain.into()), op.into()),
        _ => (None, symbol),
    }
}

/// As [`split`], for a symbol that may be absent.
pub(super) fn split_name(symbol: Option<String>) -> (Option<String>, Option<String>) {
    let Some((domain, name)) = symbol.map(split) else { return (None, None) };
    (domain, Some(name))
}

fn operator(from: lotus::OperatorDeclProto) -> Operator {
    let (domain, name) = split_name(from.name);
    Operator {
        name,
        domain,
        signatures: from.signature.into_iter().map(signature).collect(),
        doc: from.doc_string,
    }
}

fn signature(from: lotus::SignatureDeclProto) -> Signature {
    Signature {
        inputs: from.input_params.into_iter().map(parameter).collect(),
        outputs: from.output_params.into_iter().map(parameter).collect(),
        attributes: from.input_attributes.into_iter().map(parameter).collect(),
        doc: from.doc_string,
    }
}

fn parameter(from: lotus::ParameterDeclProto) -> Value {
    let value = typed(from.name, from.r#type.and_then(ty), from.shape.map(shape));
    Value { doc: from.doc_string, ..value }
}

/// Combines parallel lists of names and types.
fn values(names: Vec<String>, infos: Vec<lotus::ArgInfoProto>) -> Vec<Value> {
    let (mut names, mut infos) = (names.into_iter(), infos.into_iter());
    let next = || match (names.next(), infos.next()) {
        (None, None) => None,
        (name, info) => Some(value(name, info.unwrap_or_default())),
    };
    std::iter::from_fn(next).collect()
}

fn value(name: Option<String>, info: lotus::ArgInfoProto) -> Value {
    typed(name, info.r#type.and_then(ty), info.shape.map(shape))
}

fn shape(from: lotus::TensorShapeProto) -> Shape {
    use lotus::tensor_shape_proto::dimension::Value as V;
    let size = |from: lotus::tensor_shape_proto::Dimension| match from.value {
        Some(V::DimValue(size)) => dim(Some(size), None),
        Some(V::DimParam(text)) => dim(None, Some(&text)),
        None => dim(None, None),
    };
    Shape { dims: from.dim.into_iter().map(size).collect(), denotations: vec![] }
}

fn ty(from: lotus::TypeProto) -> Option<Type> {
    let element = |number: Option<i32>| ElementType::from_number(number.unwrap_or_default());
    let tensor = |number| TensorType { element: element(number), shape: None };
    Some(match from.value? {
        type_proto::Value::TensorType(from) => Type::Tensor(tensor(from.elem_type)),
        type_proto::Value::SparseTensorType(from) => Type::Sparse(tensor(from.elem_type)),
        type_proto::Value::HandleType(_) => Type::Handle,
        type_proto::Value::TupleType(from) => {
            // An absent element type keeps its place.
            let unknown = || Type::Tensor(TensorType::default());
            Type::Tuple(
                from.elem_type.into_iter().map(|of| ty(of).unwrap_or_else(unknown)).collect(),
            )
        }
        type_proto::Value::SeqType(from) => {
            Type::Sequence(from.elem_type.and_then(|of| ty(*of)).map(Box::new))
        }
        type_proto::Value::MapType(from) => {
            let value = from.value_type.map(|number| Box::new(Type::Tensor(tensor(Some(number)))));
            Type::Map { key: element(from.key_type), value }
        }
    })
}
