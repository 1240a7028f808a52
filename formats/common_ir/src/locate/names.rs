//! Names of the schemas that differ from those of the model.

/// The fields that may contain a step of a path, most likely first: each is a field of the
/// message or several joined by `/`; an empty one is the message itself.
pub(super) fn routes<'s>(message: &str, step: &'s str, next: &str) -> Vec<&'s str> {
    if let ("LotusIR.GraphProto", "type" | "shape") = (message, next) {
        match step {
            "input" => return vec!["input_arg_info", "input"],
            "output" => return vec!["output_arg_info", "output"],
            _ => {}
        }
    }
    let row = TABLE.iter().find(|row| row.0 == message && row.1 == step);
    row.map_or_else(|| vec![step], |row| row.2.to_vec())
}

/// Message, step of the model, fields of the file.
const TABLE: &[(&str, &str, &[&str])] = &[
    ("LotusIR.GraphProto", "graph", &[""]),
    ("LotusIR.GraphProto", "metadata", &[""]),
    ("LotusIR.GraphProto", "import", &["imported_libraries"]),
    ("LotusIR.GraphProto", "author", &["model_author"]),
    ("LotusIR.GraphProto", "license", &["model_license"]),
    ("LotusIR.GraphProto", "producer", &["producer_tag"]),
    ("LotusIR.GraphProto", "doc", &["doc_string"]),
    ("LotusIR.LibraryProto", "metadata", &[""]),
    ("LotusIR.LibraryProto", "import", &["imported_libraries"]),
    ("LotusIR.LibraryProto", "author", &["model_author"]),
    ("LotusIR.LibraryProto", "license", &["model_license"]),
    ("LotusIR.LibraryProto", "producer", &["producer_tag"]),
    ("LotusIR.LibraryProto", "doc", &["doc_string"]),
    ("LotusIR.NodeProto", "op", &["op_type"]),
    ("LotusIR.NodeProto", "domain", &["op_type"]),
    ("LotusIR.NodeProto", "arg_count", &["input_arg_count"]),
    ("LotusIR.NodeProto", "input_type", &["input_arg_info"]),
    ("LotusIR.NodeProto", "output_type", &["output_arg_info"]),
    ("LotusIR.NodeProto", "doc", &["doc_string"]),
    ("LotusIR.FunctionDefProto", "input", &["input_params"]),
    ("LotusIR.FunctionDefProto", "output", &["output_params"]),
    ("LotusIR.FunctionDefProto", "attribute", &["attr"]),
    ("LotusIR.OperatorDeclProto", "doc", &["doc_string"]),
    ("LotusIR.SignatureDeclProto", "input", &["input_params"]),
    ("LotusIR.SignatureDeclProto", "output", &["output_params"]),
    ("LotusIR.SignatureDeclProto", "attribute", &["input_attributes"]),
    ("LotusIR.SignatureDeclProto", "doc", &["doc_string"]),
    ("LotusIR.ParameterDeclProto", "doc", &["doc_string"]),
    ("LotusIR.AttributeProto", "tp", &["type"]),
    ("LotusIR.AttributeProto", "type_protos", &["types"]),
    ("LotusIR.TensorProto", "element", &["data_type"]),
    ("onnx.ModelProto", "metadata", &[""]),
    ("onnx.ModelProto", "name", &["graph/name"]),
    ("onnx.ModelProto", "import", &["graph/imported_libraries"]),
    ("onnx.ModelProto", "operator", &["graph/operator"]),
    ("onnx.ModelProto", "function", &["functions", "graph/function"]),
    ("onnx.ModelProto", "opset", &["opset_import"]),
    ("onnx.ModelProto", "author", &["model_author"]),
    ("onnx.ModelProto", "license", &["model_license"]),
    ("onnx.ModelProto", "producer", &["producer_name"]),
    ("onnx.ModelProto", "doc", &["doc_string"]),
    ("onnx.GraphProto", "input", &["input", "input_name"]),
    ("onnx.GraphProto", "output", &["output", "output_name"]),
    ("onnx.GraphProto", "value", &["value_info"]),
    ("onnx.GraphProto", "doc", &["doc_string"]),
    (
        "onnx.ValueInfoProto",
        "shape",
        &["type/tensor_type/shape", "type/sparse_tensor_type/shape", "shape"],
    ),
    ("onnx.ValueInfoProto", "doc", &["doc_string"]),
    ("onnx.NodeProto", "op", &["op_type"]),
    ("onnx.NodeProto", "arg_count", &["input_arg_count"]),
    ("onnx.NodeProto", "input_type", &["input_arg_info"]),
    ("onnx.NodeProto", "output_type", &["output_arg_info"]),
    ("onnx.NodeProto", "doc", &["doc_string"]),
    ("onnx.FunctionProto", "attribute", &["attribute_proto", "attribute"]),
    ("onnx.FunctionProto", "opset", &["opset_import"]),
    ("onnx.FunctionProto", "value", &["value_info"]),
    ("onnx.FunctionProto", "doc", &["doc_string"]),
    ("onnx.FunctionDefProto", "input", &["input_params"]),
    ("onnx.FunctionDefProto", "output", &["output_params"]),
    ("onnx.FunctionDefProto", "attribute", &["attr"]),
    ("onnx.OperatorDeclProto", "doc", &["doc_string"]),
    ("onnx.SignatureDeclProto", "input", &["input_params"]),
    ("onnx.SignatureDeclProto", "output", &["output_params"]),
    ("onnx.SignatureDeclProto", "attribute", &["input_attributes"]),
    ("onnx.SignatureDeclProto", "doc", &["doc_string"]),
    (
        "onnx.ParameterDeclProto",
        "shape",
        &["type/tensor_type/shape", "type/sparse_tensor_type/shape", "shape"],
    ),
    ("onnx.ParameterDeclProto", "doc", &["doc_string"]),
    ("onnx.AttributeProto", "doc", &["doc_string"]),
    ("onnx.TensorProto", "element", &["data_type"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_field_of_the_table_exists() {
        for (message, step, routes) in TABLE {
            for route in *routes {
                let mut here = schema::message(message);
                for name in route.split('/').filter(|name| !name.is_empty()) {
                    let field = here.get_field_by_name(name);
                    let field = field.unwrap_or_else(|| panic!("{message}.{step}: no {name}"));
                    if let Some(inner) = super::super::of_kind(&field) {
                        here = inner;
                    }
                }
            }
        }
    }
}
