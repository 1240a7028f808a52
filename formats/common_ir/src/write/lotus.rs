//! Converts the model to Common IR's messages.

use bytes::Bytes;
use prost::Message;

use super::Writer;
use crate::model::{
    Attribute, AttributeValue, Dim, ElementType, Entries, Function, Graph, Module, Node, Operator,
    Path, ProducerVersion, Shape, Signature, Tensor, TensorData, Type, Value,
};
use crate::proto::lotus::{self, type_proto};

impl Writer<'_> {
    pub(super) fn lotus_graph_file(&mut self, module: &Module, graph: &Graph) -> lotus::GraphProto {
        let about = &module.metadata;
        self.reject_properties(&about.properties, &Path::ROOT);
        let mut to = self.lotus_graph(graph, &Path::GRAPH);
        to.name = about.name.clone();
        to.ir_version = about.ir_version;
        to.producer_version = about.producer_version.as_ref().and_then(ProducerVersion::number);
        to.producer_tag = about.producer.clone();
        to.domain = about.domain.clone();
        to.doc_string = about.doc.clone();
        to.function = self.lotus_functions(&module.functions);
        to.model_version = about.model_version;
        to.model_author = about.author.clone();
        to.model_license = about.license.clone();
        to.operator = self.lotus_operators(&module.operators);
        to.imported_libraries = module.imports.clone();
        to
    }

    pub(super) fn lotus_library(&mut self, module: &Module) -> lotus::LibraryProto {
        let about = &module.metadata;
        self.reject_properties(&about.properties, &Path::ROOT);
        lotus::LibraryProto {
            ir_version: about.ir_version,
            producer_version: about.producer_version.as_ref().and_then(ProducerVersion::number),
            producer_tag: about.producer.clone(),
            model_version: about.model_version,
            model_author: about.author.clone(),
            model_license: about.license.clone(),
            name: about.name.clone(),
            domain: about.domain.clone(),
            doc_string: about.doc.clone(),
            operator: self.lotus_operators(&module.operators),
            function: self.lotus_functions(&module.functions),
            imported_libraries: module.imports.clone(),
        }
    }

    /// Properties are for people and tools; omitting them changes no result.
    fn reject_properties(&mut self, properties: &Entries, at: &Path<'_>) {
        crate::carry::report_omitted(!properties.is_empty(), "further properties", at, self.sink);
    }

    fn lotus_operators(&mut self, operators: &[Operator]) -> Vec<lotus::OperatorDeclProto> {
        let write = |(index, from): (usize, &Operator)| {
            let at = Path::ROOT;
            let at = at.index("operator", index);
            let signatures = from.signatures.iter().enumerate();
            let signatures =
                signatures.map(|(i, from)| self.lotus_signature(from, &at.index("signature", i)));
            lotus::OperatorDeclProto {
                name: qualified(from.domain.as_deref(), from.name.as_deref()),
                signature: signatures.collect(),
                doc_string: from.doc.clone(),
            }
        };
        operators.iter().enumerate().map(write).collect()
    }

    fn lotus_signature(&mut self, from: &Signature, at: &Path<'_>) -> lotus::SignatureDeclProto {
        lotus::SignatureDeclProto {
            input_params: self.lotus_parameters(&from.inputs, "input", at),
            output_params: self.lotus_parameters(&from.outputs, "output", at),
            input_attributes: self.lotus_parameters(&from.attributes, "attribute", at),
            doc_string: from.doc.clone(),
        }
    }

    fn lotus_parameters(
        &mut self,
        values: &[Value],
        list: &str,
        at: &Path<'_>,
    ) -> Vec<lotus::ParameterDeclProto> {
        let write = |(index, from): (usize, &Value)| {
            let info = self.lotus_info(from, &at.index(list, index));
            lotus::ParameterDeclProto {
                name: from.name.clone(),
                r#type: info.r#type,
                shape: info.shape,
                doc_string: from.doc.clone(),
            }
        };
        values.iter().enumerate().map(write).collect()
    }

    fn lotus_functions(&mut self, functions: &[Function]) -> Vec<lotus::FunctionDefProto> {
        let write = |(index, from): (usize, &Function)| {
            let at = Path::ROOT;
            let at = at.index("function", index);
            self.reject_if(from.overload.is_some(), "an overload of a function", &at);
            crate::carry::report_omitted(
                from.doc.is_some(),
                "documentation of functions",
                &at,
                self.sink,
            );
            self.reject_properties(&from.properties, &at);
            lotus::FunctionDefProto {
                name: qualified(from.domain.as_deref(), from.name.as_deref()),
                input_params: self.lotus_parameters(&from.inputs, "input", &at),
                output_params: self.lotus_parameters(&from.outputs, "output", &at),
                node: self.lotus_nodes(&from.nodes, &at),
                attr: self.lotus_attributes(&from.attributes, &at),
            }
        };
        functions.iter().enumerate().map(write).collect()
    }

    fn lotus_graph(&mut self, from: &Graph, at: &Path<'_>) -> lotus::GraphProto {
        self.reject_if(!from.sparse_initializers.is_empty(), "a sparse initializer", at);
        self.reject_if(!from.quantizations.is_empty(), "a quantization annotation", at);
        self.reject_properties(&from.properties, at);
        let initializers = from.initializers.iter().enumerate();
        let initializers =
            initializers.map(|(i, tensor)| self.lotus_tensor(tensor, &at.index("initializer", i)));
        let mut to =
            lotus::GraphProto { initializer: initializers.collect(), ..Default::default() };
        to.node = self.lotus_nodes(&from.nodes, at);
        to.name = from.name.clone();
        to.doc_string = from.doc.clone();
        (to.input, to.input_arg_info) = self.lotus_values(&from.inputs, "input", at);
        (to.output, to.output_arg_info) = self.lotus_values(&from.outputs, "output", at);
        to
    }

    /// Splits names and types into two lists; a list ends at its last present entry.
    fn lotus_values(
        &mut self,
        values: &[Value],
        list: &str,
        at: &Path<'_>,
    ) -> (Vec<String>, Vec<lotus::ArgInfoProto>) {
        let named = values.iter().rposition(|value| value.name.is_some()).map_or(0, |i| i + 1);
        let names = values.iter().take(named).map(|value| value.name().to_owned()).collect();
        for (index, value) in values.iter().enumerate() {
            let at = at.index(list, index);
            crate::carry::report_omitted(
                value.doc.is_some(),
                "documentation of values",
                &at,
                self.sink,
            );
        }
        (names, self.lotus_infos(values, list, at))
    }

    fn lotus_infos(
        &mut self,
        values: &[Value],
        list: &str,
        at: &Path<'_>,
    ) -> Vec<lotus::ArgInfoProto> {
        let is_typed = |value: &Value| value.ty.is_some() || value.shape.is_some();
        let typed = values.iter().rposition(is_typed).map_or(0, |index| index + 1);
        let typed = values.iter().take(typed).enumerate();
        typed.map(|(index, value)| self.lotus_info(value, &at.index(list, index))).collect()
    }

    fn lotus_info(&mut self, from: &Value, at: &Path<'_>) -> lotus::ArgInfoProto {
        self.reject_properties(&from.properties, at);
        let inner = from.ty.as_ref().and_then(Type::as_tensor).and_then(|ty| ty.shape.as_ref());
        lotus::ArgInfoProto {
            r#type: from.ty.as_ref().map(|ty| self.lotus_type(ty, at)),
            shape: inner.or(from.shape.as_ref()).map(shape),
        }
    }

    fn lotus_nodes(&mut self, nodes: &[Node], at: &Path<'_>) -> Vec<Bytes> {
        let write = |(index, from): (usize, &Node)| {
            let at = at.index("node", index);
            self.reject_if(from.overload.is_some(), "an overload of a function", &at);
            let is_unwanted = from.outputs.iter().any(String::is_empty);
            self.reject_if(is_unwanted, "an output without a name", &at);
            self.reject_properties(&from.properties, &at);
            let has_op = !from.op.is_empty() || from.domain.is_some();
            let to = lotus::NodeProto {
                input: from.inputs.clone(),
                output: from.outputs.clone(),
                name: from.name.clone(),
                op_type: has_op.then(|| from.symbol()),
                attribute: self.lotus_attributes(&from.attributes, &at),
                doc_string: from.doc.clone(),
                input_arg_info: self.lotus_infos(&from.input_types, "input_type", &at),
                output_arg_info: self.lotus_infos(&from.output_types, "output_type", &at),
                input_arg_count: from.arg_counts.clone(),
                control_input: from.control_inputs.clone(),
            };
            Bytes::from(to.encode_to_vec())
        };
        nodes.iter().enumerate().map(write).collect()
    }

    fn lotus_attributes(
        &mut self,
        attributes: &[Attribute],
        at: &Path<'_>,
    ) -> Vec<lotus::AttributeProto> {
        let write = |from: &Attribute| {
            let at = at.key("attribute", from.name.as_deref().unwrap_or_default());
            crate::carry::report_omitted(
                from.doc.is_some(),
                "documentation of attributes",
                &at,
                self.sink,
            );
            let mut to = lotus::AttributeProto { name: from.name.clone(), ..Default::default() };
            self.lotus_value(&from.value, &mut to, &at);
            to
        };
        attributes.iter().map(write).collect()
    }

    fn lotus_value(
        &mut self,
        from: &AttributeValue,
        to: &mut lotus::AttributeProto,
        at: &Path<'_>,
    ) {
        use AttributeValue as V;
        match from {
            V::Nothing => {}
            V::Float(value) => to.f = Some(*value),
            V::Int(value) => to.i = Some(*value),
            V::String(value) => to.s = Some(value.clone()),
            V::Tensor(value) => to.t = Some(self.lotus_tensor(value, &at.field("t"))),
            V::Graph(value) => to.g = Some(self.lotus_graph(value, &at.field("g"))),
            V::Type(value) => to.r#type = Some(self.lotus_type(value, at)),
            V::Shape(value) => to.shape = Some(shape(value)),
            V::Floats(values) => to.floats.clone_from(values),
            V::Ints(values) => to.ints.clone_from(values),
            V::Strings(values) => to.strings.clone_from(values),
            V::Tensors(values) => {
                let values = values.iter().enumerate();
                let tensors = values.map(|(i, t)| self.lotus_tensor(t, &at.index("tensors", i)));
                to.tensors = tensors.collect();
            }
            V::Graphs(values) => {
                let values = values.iter().enumerate();
                let graphs = values.map(|(i, g)| self.lotus_graph(g, &at.index("graphs", i)));
                to.graphs = graphs.collect();
            }
            V::Types(values) => {
                to.types = values.iter().map(|ty| self.lotus_type(ty, at)).collect();
            }
            V::Shapes(values) => to.shapes = values.iter().map(shape).collect(),
            V::SparseTensor(_) | V::SparseTensors(_) => {
                self.reject_if(true, "a sparse tensor as an attribute", at);
            }
            V::Reference { name, .. } => {
                self.reject_if(true, &format!("a reference to attribute `{name}`"), at);
            }
        }
    }

    fn lotus_tensor(&mut self, from: &Tensor, at: &Path<'_>) -> lotus::TensorProto {
        self.reject_properties(&from.properties, at);
        crate::carry::report_omitted(from.doc.is_some(), "documentation of tensors", at, self.sink);
        let mut to = lotus::TensorProto {
            dims: from.dims.clone(),
            name: from.name.clone(),
            data_type: self.lotus_element(from.element, at),
            segment: from
                .segment
                .map(|part| lotus::tensor_proto::Segment { begin: part.begin, end: part.end }),
            ..Default::default()
        };
        match &from.data {
            TensorData::Nothing => {}
            TensorData::Raw(bytes) => to.raw_data = Some(bytes.clone()),
            TensorData::Floats(values) => to.float_data.clone_from(values),
            TensorData::Ints32(values) => to.int32_data.clone_from(values),
            TensorData::Strings(values) => to.string_data.clone_from(values),
            TensorData::Ints64(values) => to.int64_data.clone_from(values),
            TensorData::Doubles(values) => to.double_data.clone_from(values),
            // Common IR stores the bits of unsigned numbers there.
            TensorData::Uints64(values) => {
                to.int64_data = values.iter().map(|value| *value as i64).collect();
            }
            TensorData::External(external) => match &external.bytes {
                Some(bytes) => to.raw_data = Some(bytes.clone()),
                None => self.reject_if(true, "data in another file, which was not read,", at),
            },
        }
        to
    }

    fn lotus_element(&mut self, element: ElementType, at: &Path<'_>) -> Option<i32> {
        let newest = ElementType::Complex128.number();
        let number = element.number();
        self.reject_if(number > newest, &format!("element type {element}"), at);
        (number != 0).then_some(number)
    }

    fn lotus_type(&mut self, from: &Type, at: &Path<'_>) -> lotus::TypeProto {
        use type_proto::Value as V;
        let value = match from {
            Type::Tensor(ty) => V::TensorType(type_proto::TensorTypeProto {
                elem_type: self.lotus_element(ty.element, at),
            }),
            Type::Sparse(ty) => V::SparseTensorType(type_proto::SparseTensorTypeProto {
                elem_type: self.lotus_element(ty.element, at),
            }),
            Type::Handle => V::HandleType(type_proto::HandleTypeProto {}),
            Type::Tuple(types) => V::TupleType(type_proto::TupleTypeProto {
                elem_type: types.iter().map(|ty| self.inner_type(ty, at)).collect(),
            }),
            Type::Sequence(element) => V::SeqType(Box::new(type_proto::SeqTypeProto {
                elem_type: element.as_ref().map(|ty| Box::new(self.inner_type(ty, at))),
            })),
            Type::Map { key, value } => {
                let value = value.as_ref().map(|ty| self.map_value(ty, at));
                V::MapType(type_proto::MapTypeProto {
                    key_type: self.lotus_element(*key, at),
                    value_type: value.and_then(|element| self.lotus_element(element, at)),
                })
            }
            Type::Optional(_) | Type::Opaque { .. } => {
                self.reject_if(true, &format!("type {from}"), at);
                return lotus::TypeProto::default();
            }
        };
        lotus::TypeProto { value: Some(value) }
    }

    /// A type within another, where shapes have no place.
    fn inner_type(&mut self, from: &Type, at: &Path<'_>) -> lotus::TypeProto {
        let has_shape = from.as_tensor().is_some_and(|ty| ty.shape.is_some());
        crate::carry::report_omitted(has_shape, "shapes within types", at, self.sink);
        match from.as_tensor() {
            // An absent element type, as in the reader.
            Some(ty) if ty.element == ElementType::Undefined => lotus::TypeProto::default(),
            _ => self.lotus_type(from, at),
        }
    }

    /// Values of maps are scalars with an element type.
    fn map_value(&mut self, from: &Type, at: &Path<'_>) -> ElementType {
        match from {
            Type::Tensor(ty) if ty.shape.as_ref().is_none_or(|shape| shape.dims.is_empty()) => {
                ty.element
            }
            _ => {
                self.reject_if(true, &format!("a map to {from}"), at);
                ElementType::Undefined
            }
        }
    }
}

/// `domain.library.Symbol`.
pub(super) fn qualified(domain: Option<&str>, name: Option<&str>) -> Option<String> {
    match (domain, name) {
        (Some(domain), name) => Some(format!("{domain}.{}", name.unwrap_or_default())),
        (None, name) => name.map(String::from),
    }
}

fn shape(from: &Shape) -> lotus::TensorShapeProto {
    use lotus::tensor_shape_proto::{Dimension, dimension::Value as V};
    let dim = |dim: &Dim| Dimension {
        value: match dim {
            Dim::Size(size) => Some(V::DimValue(*size)),
            other => other.parameter().map(V::DimParam),
        },
    };
    lotus::TensorShapeProto { dim: from.dims.iter().map(dim).collect() }
}
