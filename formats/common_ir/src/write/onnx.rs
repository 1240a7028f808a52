//! Converts the model to ONNX's messages, with additional fields for Common IR if the target has them.

use bytes::Bytes;
use prost::Message;

use super::lotus::qualified;
use super::{Target, Writer};
use crate::model::{
    Attribute, AttributeKind, AttributeValue, Dim, ElementType, Entries, External, Function, Graph,
    Metadata, Module, Node, Operator, Opset, Path, Quantization, Shape, Signature, SparseTensor,
    Tensor, TensorData, TensorType, Type, Value,
};
use crate::proto::onnx::{self, type_proto};

impl Writer<'_> {
    /// `own` is the domain of an embedded module's functions, which are written in both representations.
    pub(super) fn onnx_model(&mut self, module: &Module, own: Option<&str>) -> onnx::ModelProto {
        let about = &module.metadata;
        let mut graph = module.graph.as_ref().map(|graph| self.onnx_graph(graph, &Path::GRAPH));
        if let Some(graph) = &mut graph {
            graph.name = about.name.clone();
            graph.operator = self.onnx_operators(&module.operators);
            graph.imported_libraries = module.imports.clone();
            if let Some(own) = own {
                graph.function = self.carried_functions(&module.functions, own);
            }
        }
        let (mut author, mut license) = (about.author.clone(), about.license.clone());
        let mut properties = about.properties.clone();
        if self.target == Target::Onnx {
            let mut put = |key: &str, value: Option<String>| {
                properties.extend(value.map(|value| (key.to_owned(), value)));
            };
            put("model_author", author.take());
            put("model_license", license.take());
        }
        onnx::ModelProto {
            graph,
            functions: self.onnx_functions(&module.functions),
            opset_import: opsets(&module.opsets),
            metadata_props: entries(&properties),
            model_author: author,
            model_license: license,
            ..header(about)
        }
    }

    fn carried_functions(
        &mut self,
        functions: &[Function],
        own: &str,
    ) -> Vec<onnx::FunctionDefProto> {
        let write = |(index, from): (usize, &Function)| {
            let at = Path::ROOT;
            let at = at.index("function", index);
            let domain = from.domain.as_deref().filter(|domain| *domain != own);
            onnx::FunctionDefProto {
                name: qualified(domain, from.name.as_deref()),
                input_params: self.onnx_parameters(&from.inputs, "input", &at),
                output_params: self.onnx_parameters(&from.outputs, "output", &at),
                node: self.onnx_nodes(&from.nodes, &at),
                attr: self.onnx_attributes(&from.attributes, &at),
            }
        };
        functions.iter().enumerate().map(write).collect()
    }

    fn onnx_functions(&mut self, functions: &[Function]) -> Vec<onnx::FunctionProto> {
        let write = |(index, from): (usize, &Function)| {
            let at = Path::ROOT;
            let at = at.index("function", index);
            self.onnx_function(from, &at)
        };
        functions.iter().enumerate().map(write).collect()
    }

    fn onnx_function(&mut self, from: &Function, at: &Path<'_>) -> onnx::FunctionProto {
        let names = |values: &[Value]| values.iter().map(|value| value.name().into()).collect();
        let has_default = |from: &&Attribute| from.value != AttributeValue::Nothing;
        let defaults: Vec<Attribute> =
            from.attributes.iter().filter(has_default).cloned().collect();
        let without = from.attributes.iter().filter(|from| !has_default(from));
        let mut value_info = vec![];
        for (list, values) in [("input", &from.inputs), ("output", &from.outputs)] {
            for (index, value) in values.iter().enumerate() {
                if *value != Value::untyped(value.name()) {
                    value_info.push(self.onnx_value_info(value, &at.index(list, index)));
                }
            }
        }
        value_info.extend(self.onnx_values(&from.values, "value", at));
        onnx::FunctionProto {
            name: from.name.clone(),
            input: names(&from.inputs),
            output: names(&from.outputs),
            attribute: without.filter_map(|from| from.name.clone()).collect(),
            node: self.onnx_nodes(&from.nodes, at),
            doc_string: from.doc.clone(),
            opset_import: opsets(&from.opsets),
            domain: from.domain.clone(),
            attribute_proto: self.onnx_attributes(&defaults, at),
            value_info,
            overload: from.overload.clone(),
            metadata_props: entries(&from.properties),
        }
    }

    fn onnx_operators(&mut self, operators: &[Operator]) -> Vec<onnx::OperatorDeclProto> {
        let write = |(index, from): (usize, &Operator)| {
            let at = Path::ROOT;
            let at = at.index("operator", index);
            let signatures = from.signatures.iter().enumerate();
            let signatures =
                signatures.map(|(i, from)| self.onnx_signature(from, &at.index("signature", i)));
            onnx::OperatorDeclProto {
                name: qualified(from.domain.as_deref(), from.name.as_deref()),
                signature: signatures.collect(),
                doc_string: from.doc.clone(),
            }
        };
        operators.iter().enumerate().map(write).collect()
    }

    fn onnx_signature(&mut self, from: &Signature, at: &Path<'_>) -> onnx::SignatureDeclProto {
        onnx::SignatureDeclProto {
            input_params: self.onnx_parameters(&from.inputs, "input", at),
            output_params: self.onnx_parameters(&from.outputs, "output", at),
            input_attributes: self.onnx_parameters(&from.attributes, "attribute", at),
            doc_string: from.doc.clone(),
        }
    }

    fn onnx_parameters(
        &mut self,
        values: &[Value],
        list: &str,
        at: &Path<'_>,
    ) -> Vec<onnx::ParameterDeclProto> {
        let write = |(index, from): (usize, &Value)| onnx::ParameterDeclProto {
            name: from.name.clone(),
            r#type: from.ty.as_ref().map(|ty| self.onnx_type(ty, &at.index(list, index))),
            shape: from.shape.as_ref().map(shape),
            doc_string: from.doc.clone(),
        };
        values.iter().enumerate().map(write).collect()
    }

    fn onnx_graph(&mut self, from: &Graph, at: &Path<'_>) -> onnx::GraphProto {
        let initializers = from.initializers.iter().enumerate();
        let initializer = initializers
            .map(|(i, tensor)| self.onnx_tensor(tensor, &at.index("initializer", i)))
            .collect();
        let sparse = from.sparse_initializers.iter().enumerate();
        let sparse_initializer = sparse
            .map(|(i, tensor)| self.onnx_sparse(tensor, &at.index("sparse_initializer", i)))
            .collect();
        onnx::GraphProto {
            node: self.onnx_nodes(&from.nodes, at),
            name: from.name.clone(),
            initializer,
            doc_string: from.doc.clone(),
            input: self.onnx_values(&from.inputs, "input", at),
            output: self.onnx_values(&from.outputs, "output", at),
            value_info: self.onnx_values(&from.values, "value", at),
            quantization_annotation: from.quantizations.iter().map(quantization).collect(),
            sparse_initializer,
            metadata_props: entries(&from.properties),
            ..Default::default()
        }
    }

    fn onnx_values(
        &mut self,
        values: &[Value],
        list: &str,
        at: &Path<'_>,
    ) -> Vec<onnx::ValueInfoProto> {
        let values = values.iter().enumerate();
        values.map(|(index, value)| self.onnx_value_info(value, &at.index(list, index))).collect()
    }

    fn onnx_value_info(&mut self, from: &Value, at: &Path<'_>) -> onnx::ValueInfoProto {
        let mut ty = from.ty.as_ref().map(|ty| self.onnx_type(ty, at));
        if from.denotation.is_some() {
            ty.get_or_insert_default().denotation = from.denotation.clone();
        }
        if self.target == Target::Onnx {
            self.reject_if(from.shape.is_some(), "a shape beside a type", at);
        }
        onnx::ValueInfoProto {
            name: from.name.clone(),
            r#type: ty,
            doc_string: from.doc.clone(),
            metadata_props: entries(&from.properties),
            shape: from.shape.as_ref().map(shape),
        }
    }

    fn onnx_nodes(&mut self, nodes: &[Node], at: &Path<'_>) -> Vec<Bytes> {
        let write = |(index, from): (usize, &Node)| {
            let at = at.index("node", index);
            let to = onnx::NodeProto {
                input: from.inputs.clone(),
                output: from.outputs.clone(),
                name: from.name.clone(),
                op_type: (!from.op.is_empty()).then(|| from.op.clone()),
                attribute: self.onnx_attributes(&from.attributes, &at),
                doc_string: from.doc.clone(),
                domain: from.domain.clone(),
                overload: from.overload.clone(),
                metadata_props: entries(&from.properties),
                device_configurations: vec![],
                input_arg_count: from.arg_counts.clone(),
                control_input: from.control_inputs.clone(),
                input_arg_info: self.onnx_values(&from.input_types, "input_type", &at),
                output_arg_info: self.onnx_values(&from.output_types, "output_type", &at),
            };
            Bytes::from(to.encode_to_vec())
        };
        nodes.iter().enumerate().map(write).collect()
    }

    fn onnx_attributes(
        &mut self,
        attributes: &[Attribute],
        at: &Path<'_>,
    ) -> Vec<onnx::AttributeProto> {
        let write = |from: &Attribute| {
            let at = at.key("attribute", from.name.as_deref().unwrap_or_default());
            let mut to = onnx::AttributeProto {
                name: from.name.clone(),
                doc_string: from.doc.clone(),
                r#type: from.value.kind().and_then(number),
                ..Default::default()
            };
            self.onnx_value(&from.value, &mut to, &at);
            to
        };
        attributes.iter().map(write).collect()
    }

    fn onnx_value(&mut self, from: &AttributeValue, to: &mut onnx::AttributeProto, at: &Path<'_>) {
        use AttributeValue as V;
        match from {
            V::Nothing => {}
            V::Float(value) => to.f = Some(*value),
            V::Int(value) => to.i = Some(*value),
            V::String(value) => to.s = Some(value.clone()),
            V::Tensor(value) => to.t = Some(self.onnx_tensor(value, &at.field("t"))),
            V::Graph(value) => to.g = Some(self.onnx_graph(value, &at.field("g"))),
            V::SparseTensor(value) => {
                to.sparse_tensor = Some(self.onnx_sparse(value, &at.field("sparse_tensor")));
            }
            V::Type(value) => to.tp = Some(self.onnx_type(value, at)),
            V::Floats(values) => to.floats.clone_from(values),
            V::Ints(values) => to.ints.clone_from(values),
            V::Strings(values) => to.strings.clone_from(values),
            V::Tensors(values) => {
                let values = values.iter().enumerate();
                let tensors = values.map(|(i, t)| self.onnx_tensor(t, &at.index("tensors", i)));
                to.tensors = tensors.collect();
            }
            V::Graphs(values) => {
                let values = values.iter().enumerate();
                let graphs = values.map(|(i, g)| self.onnx_graph(g, &at.index("graphs", i)));
                to.graphs = graphs.collect();
            }
            V::SparseTensors(values) => {
                let values = values.iter().enumerate();
                let sparse =
                    values.map(|(i, t)| self.onnx_sparse(t, &at.index("sparse_tensors", i)));
                to.sparse_tensors = sparse.collect();
            }
            V::Types(values) => {
                to.type_protos = values.iter().map(|ty| self.onnx_type(ty, at)).collect();
            }
            V::Shape(_) | V::Shapes(_) if self.target == Target::Onnx => {
                self.reject_if(true, "a shape as an attribute", at);
            }
            V::Shape(value) => to.shape = Some(shape(value)),
            V::Shapes(values) => to.shapes = values.iter().map(shape).collect(),
            V::Reference { name, .. } => to.ref_attr_name = Some(name.clone()),
        }
    }

    fn onnx_sparse(&mut self, from: &SparseTensor, at: &Path<'_>) -> onnx::SparseTensorProto {
        let part = |tensor: &Option<Tensor>, name: &str, writer: &mut Self| {
            tensor.as_ref().map(|tensor| writer.onnx_tensor(tensor, &at.field(name)))
        };
        onnx::SparseTensorProto {
            values: part(&from.values, "values", self),
            indices: part(&from.indices, "indices", self),
            dims: from.dims.clone(),
        }
    }

    fn onnx_tensor(&mut self, from: &Tensor, at: &Path<'_>) -> onnx::TensorProto {
        let mut to = onnx::TensorProto {
            dims: from.dims.clone(),
            data_type: element(from.element),
            segment: from
                .segment
                .map(|part| onnx::tensor_proto::Segment { begin: part.begin, end: part.end }),
            name: from.name.clone(),
            doc_string: from.doc.clone(),
            metadata_props: entries(&from.properties),
            ..Default::default()
        };
        match &from.data {
            TensorData::Nothing => {}
            TensorData::Raw(bytes) => to.raw_data = Some(bytes.clone()),
            TensorData::Floats(values) => to.float_data.clone_from(values),
            TensorData::Ints32(values) => to.int32_data.clone_from(values),
            TensorData::Strings(values) => to.string_data.clone_from(values),
            TensorData::Doubles(values) => to.double_data.clone_from(values),
            TensorData::Uints64(values) => to.uint64_data.clone_from(values),
            // Common IR stores the bits of unsigned numbers there; ONNX has a field for them.
            TensorData::Ints64(values)
                if matches!(from.element, ElementType::Uint32 | ElementType::Uint64) =>
            {
                to.uint64_data = values.iter().map(|value| *value as u64).collect();
            }
            TensorData::Ints64(values) => to.int64_data.clone_from(values),
            TensorData::External(external) => self.onnx_external(external, &mut to, at),
        }
        to
    }

    fn onnx_external(&mut self, from: &External, to: &mut onnx::TensorProto, at: &Path<'_>) {
        if self.inline {
            to.raw_data.clone_from(&from.bytes);
            let is_absent = from.bytes.is_none();
            return self.reject_if(is_absent, "data in another file, which was not read,", at);
        }
        let mut all = vec![("location".to_owned(), from.location.clone())];
        if from.offset != 0 {
            all.push(("offset".into(), from.offset.to_string()));
        }
        all.extend(from.length.map(|length| ("length".into(), length.to_string())));
        all.extend(from.others.iter().cloned());
        to.external_data = entries(&all);
        to.data_location = Some(onnx::tensor_proto::DataLocation::External as i32);
    }

    fn onnx_type(&mut self, from: &Type, at: &Path<'_>) -> onnx::TypeProto {
        use type_proto::Value as V;
        let mut boxed =
            |of: &Option<Box<Type>>| of.as_ref().map(|of| Box::new(self.onnx_type(of, at)));
        let value = match from {
            Type::Tensor(TensorType { element: of, shape: dims }) => {
                V::TensorType(type_proto::Tensor {
                    elem_type: element(*of),
                    shape: dims.as_ref().map(shape),
                })
            }
            Type::Sparse(TensorType { element: of, shape: dims }) => {
                V::SparseTensorType(type_proto::SparseTensor {
                    elem_type: element(*of),
                    shape: dims.as_ref().map(shape),
                })
            }
            Type::Sequence(of) => {
                V::SequenceType(Box::new(type_proto::Sequence { elem_type: boxed(of) }))
            }
            Type::Optional(of) => {
                V::OptionalType(Box::new(type_proto::Optional { elem_type: boxed(of) }))
            }
            Type::Map { key, value } => V::MapType(Box::new(type_proto::Map {
                key_type: element(*key),
                value_type: boxed(value),
            })),
            Type::Opaque { domain, name } => V::OpaqueType(type_proto::Opaque {
                domain: Some(domain.clone()),
                name: Some(name.clone()),
            }),
            Type::Handle | Type::Tuple(_) if self.target == Target::Onnx => {
                self.reject_if(true, &format!("type {from}"), at);
                return onnx::TypeProto::default();
            }
            Type::Handle => V::HandleType(type_proto::Handle {}),
            Type::Tuple(types) => V::TupleType(type_proto::Tuple {
                elem_type: types.iter().map(|ty| self.onnx_type(ty, at)).collect(),
            }),
        };
        onnx::TypeProto { value: Some(value), denotation: None }
    }
}

fn header(about: &Metadata) -> onnx::ModelProto {
    onnx::ModelProto {
        ir_version: about.ir_version,
        producer_name: about.producer.clone(),
        producer_version: about.producer_version.as_ref().map(|version| version.text()),
        domain: about.domain.clone(),
        model_version: about.model_version,
        doc_string: about.doc.clone(),
        ..Default::default()
    }
}

/// The number of a kind in files; shapes have none.
fn number(kind: AttributeKind) -> Option<i32> {
    use AttributeKind as K;
    use onnx::attribute_proto::AttributeType as T;
    let known = match kind {
        K::Float => T::Float,
        K::Int => T::Int,
        K::String => T::String,
        K::Tensor => T::Tensor,
        K::Graph => T::Graph,
        K::SparseTensor => T::SparseTensor,
        K::Type => T::TypeProto,
        K::Floats => T::Floats,
        K::Ints => T::Ints,
        K::Strings => T::Strings,
        K::Tensors => T::Tensors,
        K::Graphs => T::Graphs,
        K::SparseTensors => T::SparseTensors,
        K::Types => T::TypeProtos,
        K::Shape | K::Shapes => return None,
    };
    Some(known as i32)
}

fn element(of: ElementType) -> Option<i32> {
    (of != ElementType::Undefined).then(|| of.number())
}

fn entries(from: &Entries) -> Vec<onnx::StringStringEntryProto> {
    let entry = |(key, value): &(String, String)| onnx::StringStringEntryProto {
        key: Some(key.clone()),
        value: Some(value.clone()),
    };
    from.iter().map(entry).collect()
}

fn opsets(from: &[Opset]) -> Vec<onnx::OperatorSetIdProto> {
    let opset = |from: &Opset| onnx::OperatorSetIdProto {
        domain: Some(from.domain.clone().unwrap_or_default()),
        version: Some(from.version),
    };
    from.iter().map(opset).collect()
}

fn quantization(from: &Quantization) -> onnx::TensorAnnotation {
    onnx::TensorAnnotation {
        tensor_name: from.tensor.clone(),
        quant_parameter_tensor_names: entries(&from.parameters),
    }
}

fn shape(from: &Shape) -> onnx::TensorShapeProto {
    use onnx::tensor_shape_proto::{Dimension, dimension::Value as V};
    let dim = |(index, dim): (usize, &Dim)| Dimension {
        value: match dim {
            Dim::Size(size) => Some(V::DimValue(*size)),
            other => other.parameter().map(V::DimParam),
        },
        denotation: from.denotations.get(index).cloned().flatten(),
    };
    onnx::TensorShapeProto { dim: from.dims.iter().enumerate().map(dim).collect() }
}
