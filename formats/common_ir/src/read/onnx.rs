//! Converts ONNX's messages, including an embedded module of Common IR, to the model.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::lotus::split_name;
use super::shared::{Reader, dim, entries, list, some_text, take, typed};
use crate::carry;
use crate::model::{
    Attribute, AttributeKind, AttributeValue, ElementType, Entries, Function, Graph, Metadata,
    Module, Node, Operator, Opset, Path, ProducerVersion, Quantization, Schema, Shape, Signature,
    TensorType, Type, Value,
};
use crate::proto::onnx::{self, type_proto};

impl Reader<'_> {
    pub(super) fn onnx_model(&mut self, from: onnx::ModelProto) -> Option<Module> {
        self.report_ignored(!from.training_info.is_empty(), "`training_info`", &Path::ROOT);
        self.report_ignored(
            !from.configuration.is_empty(),
            "`configuration` of devices",
            &Path::ROOT,
        );
        let Some(mut graph) = from.graph else {
            self.error("cir-no-graph", "the model has no graph".into(), &Path::ROOT);
            return None;
        };
        let mut properties = entries(from.metadata_props);
        let metadata = Metadata {
            name: graph.name.take(),
            domain: some_text(from.domain),
            ir_version: from.ir_version,
            model_version: from.model_version,
            author: from.model_author.or_else(|| take_entry(&mut properties, "model_author")),
            license: from.model_license.or_else(|| take_entry(&mut properties, "model_license")),
            producer: from.producer_name,
            producer_version: from.producer_version.map(ProducerVersion::Text),
            doc: from.doc_string,
            properties,
        };
        let local = std::mem::take(&mut graph.function);
        let operators = std::mem::take(&mut graph.operator);
        // An embedded module has its functions in both representations, of which ours is complete.
        let is_double = !local.is_empty() && carry::is_carried(&metadata.properties);
        let functions = if is_double { vec![] } else { from.functions };
        let functions = functions.into_iter().enumerate();
        let mut functions: Vec<Function> =
            functions.map(|(index, from)| self.onnx_function(from, index)).collect();
        let first = functions.len();
        let local = local.into_iter().enumerate();
        functions.extend(local.map(|(index, from)| self.carried_function(from, first + index)));
        Some(Module {
            schema: Schema::Onnx,
            metadata,
            imports: std::mem::take(&mut graph.imported_libraries),
            opsets: opsets(from.opset_import),
            operators: operators.into_iter().map(operator).collect(),
            functions,
            graph: Some(self.onnx_graph(graph, &Path::GRAPH)),
        })
    }

    /// A function of the model; the types of its parameters are in `value_info`.
    fn onnx_function(&mut self, from: onnx::FunctionProto, index: usize) -> Function {
        let at = Path::ROOT;
        let at = at.index("function", index);
        let mut values: Vec<Value> = from.value_info.into_iter().map(value).collect();
        let inputs = parameters(from.input, &mut values);
        let outputs = parameters(from.output, &mut values);
        let without_default =
            from.attribute.into_iter().map(|name| Attribute::new(name, AttributeValue::Nothing));
        let mut attributes: Vec<Attribute> = without_default.collect();
        attributes.extend(self.onnx_attributes(from.attribute_proto, &at));
        Function {
            name: from.name,
            domain: some_text(from.domain),
            overload: some_text(from.overload),
            inputs,
            outputs,
            attributes,
            values,
            nodes: self.onnx_nodes(from.node, &at),
            opsets: opsets(from.opset_import),
            doc: from.doc_string,
            properties: entries(from.metadata_props),
        }
    }

    fn carried_function(&mut self, from: onnx::FunctionDefProto, index: usize) -> Function {
        let at = Path::ROOT;
        let at = at.index("function", index);
        let (domain, name) = split_name(from.name);
        Function {
            name,
            domain,
            inputs: from.input_params.into_iter().map(parameter).collect(),
            outputs: from.output_params.into_iter().map(parameter).collect(),
            attributes: self.onnx_attributes(from.attr, &at),
            nodes: self.onnx_nodes(from.node, &at),
            ..Function::default()
        }
    }

    fn onnx_graph(&mut self, from: onnx::GraphProto, at: &Path<'_>) -> Graph {
        let has_symbols = !from.function.is_empty() || !from.operator.is_empty();
        self.report_ignored(has_symbols, "a function or operator of a graph in an attribute", at);
        let initializers = from.initializer.into_iter().enumerate();
        let initializers = initializers
            .map(|(index, tensor)| self.tensor(tensor, &at.index("initializer", index)))
            .collect();
        let sparse = from.sparse_initializer.into_iter().enumerate();
        let sparse_initializers = sparse
            .map(|(index, tensor)| self.sparse(tensor, &at.index("sparse_initializer", index)))
            .collect();
        Graph {
            name: from.name,
            doc: from.doc_string,
            inputs: named(from.input, from.input_name),
            outputs: named(from.output, from.output_name),
            values: from.value_info.into_iter().map(value).collect(),
            initializers,
            sparse_initializers,
            nodes: self.onnx_nodes(from.node, at),
            quantizations: from.quantization_annotation.into_iter().map(quantization).collect(),
            properties: entries(from.metadata_props),
        }
    }

    fn onnx_nodes(&mut self, from: Vec<Bytes>, at: &Path<'_>) -> Vec<Node> {
        self.nodes(from, at, |reader, from: onnx::NodeProto, at| {
            reader.report_ignored(
                !from.device_configurations.is_empty(),
                "`device_configurations`",
                at,
            );
            Node {
                name: from.name,
                domain: some_text(from.domain),
                op: from.op_type.unwrap_or_default(),
                overload: some_text(from.overload),
                attributes: reader.onnx_attributes(from.attribute, at),
                inputs: from.input,
                outputs: from.output,
                arg_counts: from.input_arg_count,
                control_inputs: from.control_input,
                input_types: from.input_arg_info.into_iter().map(value).collect(),
                output_types: from.output_arg_info.into_iter().map(value).collect(),
                doc: from.doc_string,
                properties: entries(from.metadata_props),
            }
        })
    }

    fn onnx_attributes(
        &mut self,
        from: Vec<onnx::AttributeProto>,
        at: &Path<'_>,
    ) -> Vec<Attribute> {
        list(from, |_, mut from| {
            let (name, doc) = (from.name.take(), from.doc_string.take());
            let at = at.key("attribute", name.as_deref().unwrap_or_default());
            let value = self.onnx_value(from, &at);
            Attribute { name, value, doc }
        })
    }

    fn onnx_value(&mut self, from: onnx::AttributeProto, at: &Path<'_>) -> AttributeValue {
        let kind = kind(from.r#type.unwrap_or_default());
        if from.r#type.is_some_and(|number| number != 0) && kind.is_none() {
            let message = format!("unknown attribute type {}", from.r#type.unwrap_or_default());
            self.error("cir-attribute-type", message, at);
        }
        if let Some(name) = some_text(from.ref_attr_name.clone()) {
            return AttributeValue::Reference { name, kind };
        }
        let found = self.onnx_fields(from, at);
        match kind {
            Some(kind) => self.choose_kind(found, kind, at),
            None => self.choose(found, at),
        }
    }

    fn onnx_fields(&mut self, from: onnx::AttributeProto, at: &Path<'_>) -> Vec<AttributeValue> {
        use AttributeValue as V;
        let mut found = vec![];
        found.extend(from.f.map(V::Float));
        found.extend(from.i.map(V::Int));
        found.extend(from.s.map(V::String));
        found.extend(from.t.map(|t| V::Tensor(Box::new(self.tensor(t, &at.field("t"))))));
        found.extend(from.g.map(|g| V::Graph(Box::new(self.onnx_graph(g, &at.field("g"))))));
        take(&mut found, from.floats, V::Floats);
        take(&mut found, from.ints, V::Ints);
        take(&mut found, from.strings, V::Strings);
        let tensors = from.tensors.into_iter().enumerate();
        let tensors = tensors.map(|(i, t)| self.tensor(t, &at.index("tensors", i)));
        take(&mut found, tensors.collect(), V::Tensors);
        let graphs = from.graphs.into_iter().enumerate();
        let graphs = graphs.map(|(i, g)| self.onnx_graph(g, &at.index("graphs", i)));
        take(&mut found, graphs.collect(), V::Graphs);
        found.extend(from.tp.and_then(ty).map(|ty| V::Type(Box::new(ty))));
        take(&mut found, from.type_protos.into_iter().filter_map(ty).collect(), V::Types);
        let sparse = from.sparse_tensor;
        let sparse = sparse.map(|t| self.sparse(t, &at.field("sparse_tensor")));
        found.extend(sparse.map(|tensor| V::SparseTensor(Box::new(tensor))));
        let sparse = from.sparse_tensors.into_iter().enumerate();
        let sparse = sparse.map(|(i, t)| self.sparse(t, &at.index("sparse_tensors", i)));
        take(&mut found, sparse.collect(), V::SparseTensors);
        found.extend(from.shape.map(|from| V::Shape(shape(from))));
        take(&mut found, from.shapes.into_iter().map(shape).collect(), V::Shapes);
        found
    }
}

/// The kind with a number in files.
fn kind(number: i32) -> Option<AttributeKind> {
    use AttributeKind as K;
    use onnx::attribute_proto::AttributeType as T;
    Some(match T::try_from(number).ok()? {
        T::Undefined => return None,
        T::Float => K::Float,
        T::Int => K::Int,
        T::String => K::String,
        T::Tensor => K::Tensor,
        T::Graph => K::Graph,
        T::Floats => K::Floats,
        T::Ints => K::Ints,
        T::Strings => K::Strings,
        T::Tensors => K::Tensors,
        T::Graphs => K::Graphs,
        T::SparseTensor => K::SparseTensor,
        T::SparseTensors => K::SparseTensors,
        T::TypeProto => K::Type,
        T::TypeProtos => K::Types,
    })
}

fn opsets(from: Vec<onnx::OperatorSetIdProto>) -> Vec<Opset> {
    let opset = |from: onnx::OperatorSetIdProto| Opset {
        domain: some_text(from.domain),
        version: from.version.unwrap_or_default(),
    };
    from.into_iter().map(opset).collect()
}

/// Removes a property that has a field of its own in the model.
fn take_entry(entries: &mut Entries, key: &str) -> Option<String> {
    let index = entries.iter().position(|entry| entry.0 == key)?;
    Some(entries.remove(index).1)
}

/// Parameters by name, with their types from `values`.
fn parameters(names: Vec<String>, values: &mut Vec<Value>) -> Vec<Value> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let is_parameter: BTreeSet<&String> = names.iter().collect();
    let keep = |value: Value| match value.name.as_ref().filter(|name| is_parameter.contains(name)) {
        Some(name) if !known.contains_key(name) => {
            known.insert(name.clone(), value);
            None
        }
        _ => Some(value),
    };
    *values = std::mem::take(values).into_iter().filter_map(keep).collect();
    let parameter = |name: String| known.remove(&name).unwrap_or_else(|| Value::untyped(name));
    names.clone().into_iter().map(parameter).collect()
}

fn quantization(from: onnx::TensorAnnotation) -> Quantization {
    let parameters = entries(from.quant_parameter_tensor_names);
    Quantization { tensor: from.tensor_name, parameters }
}

fn operator(from: onnx::OperatorDeclProto) -> Operator {
    let (domain, name) = split_name(from.name);
    Operator {
        name,
        domain,
        signatures: from.signature.into_iter().map(signature).collect(),
        doc: from.doc_string,
    }
}

fn signature(from: onnx::SignatureDeclProto) -> Signature {
    Signature {
        inputs: from.input_params.into_iter().map(parameter).collect(),
        outputs: from.output_params.into_iter().map(parameter).collect(),
        attributes: from.input_attributes.into_iter().map(parameter).collect(),
        doc: from.doc_string,
    }
}

fn parameter(from: onnx::ParameterDeclProto) -> Value {
    let value = typed(from.name, from.r#type.and_then(ty), from.shape.map(shape));
    Value { doc: from.doc_string, ..value }
}

/// Values with types, or only names as in the first models.
fn named(values: Vec<onnx::ValueInfoProto>, names: Vec<String>) -> Vec<Value> {
    let values = values.into_iter().map(value);
    values.chain(names.into_iter().map(Value::untyped)).collect()
}

fn value(mut from: onnx::ValueInfoProto) -> Value {
    let denotation = from.r#type.as_mut().and_then(|ty| ty.denotation.take());
    let value = typed(from.name, from.r#type.and_then(ty), from.shape.map(shape));
    let properties = entries(from.metadata_props);
    Value { doc: from.doc_string, properties, denotation: some_text(denotation), ..value }
}

fn shape(from: onnx::TensorShapeProto) -> Shape {
    use onnx::tensor_shape_proto::dimension::Value as V;
    let mut shape = Shape::default();
    for from in from.dim {
        shape.denotations.push(some_text(from.denotation));
        shape.dims.push(match from.value {
            Some(V::DimValue(size)) => dim(Some(size), None),
            Some(V::DimParam(text)) => dim(None, Some(&text)),
            None => dim(None, None),
        });
    }
    if shape.denotations.iter().all(Option::is_none) {
        shape.denotations.clear();
    }
    shape
}

fn ty(from: onnx::TypeProto) -> Option<Type> {
    let element = |number: Option<i32>| ElementType::from_number(number.unwrap_or_default());
    let boxed = |of: Option<Box<onnx::TypeProto>>| of.and_then(|of| ty(*of)).map(Box::new);
    Some(match from.value? {
        type_proto::Value::TensorType(from) => Type::Tensor(TensorType {
            element: element(from.elem_type),
            shape: from.shape.map(shape),
        }),
        type_proto::Value::SparseTensorType(from) => Type::Sparse(TensorType {
            element: element(from.elem_type),
            shape: from.shape.map(shape),
        }),
        type_proto::Value::SequenceType(from) => Type::Sequence(boxed(from.elem_type)),
        type_proto::Value::OptionalType(from) => Type::Optional(boxed(from.elem_type)),
        type_proto::Value::MapType(from) => {
            Type::Map { key: element(from.key_type), value: boxed(from.value_type) }
        }
        type_proto::Value::OpaqueType(from) => Type::Opaque {
            domain: from.domain.unwrap_or_default(),
            name: from.name.unwrap_or_default(),
        },
        type_proto::Value::HandleType(_) => Type::Handle,
        type_proto::Value::TupleType(from) => {
            // An absent element type keeps its place.
            let unknown = || Type::Tensor(TensorType::default());
            Type::Tuple(
                from.elem_type.into_iter().map(|of| ty(of).unwrap_or_else(unknown)).collect(),
            )
        }
    })
}
