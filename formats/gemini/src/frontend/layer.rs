//! One layer of a frontend file.

use irc_json::{At, Json, Node, Number, Reader};

use crate::record::{Extra, Field, Nullable, names, record};

names! {
    /// The function applied to a layer's result.
    pub enum Activation {
        /// `max(x, 0)`.
        Relu = "relu",
    }
}

record! {
    /// One layer.
    pub struct FrontendLayer {
        /// Parameter of the activation.
        activation_attr: Option<Nullable<Json>>,
        /// Function applied to the result.
        activation_type: Option<Nullable<Activation>>,
        /// Whether pooling rounds extents up: 0 or 1, or a boolean.
        ceil_mode: Option<Json>,
        /// Where it runs: `npu` or `cpu`.
        device: String,
        /// Files of activations (`input_activation1`, …), weights (`k`) and biases (`b`).
        file_list: Json,
        /// Batch axis of each input; -1 for none.
        input_batchdim: Option<Vec<i64>>,
        /// Element types of the inputs.
        input_dtype: Vec<String>,
        /// Shapes of the inputs: `[N, C, H, W]`, weights `[K, C, R, S]`.
        input_shape: Vec<Vec<i64>>,
        /// Extents of the kernel, in H and W.
        kernel_size: Option<[i64; 2]>,
        /// Position in the model.
        layer_index: i64,
        /// Modules of the vector processor and their settings.
        module_list: Option<Modules>,
        /// The name, equal to the key.
        name: String,
        /// Layers that read the result.
        next_layer: Vec<String>,
        /// Whether a reshape has the same effect in NHWC.
        nhwc_consistant: Option<Json>,
        /// The operation.
        operation: String,
        /// Name in the original model.
        ori_name: Option<String>,
        /// Batch axis of each result.
        output_batchdim: Option<Vec<i64>>,
        /// Element types of the results.
        output_dtype: Vec<String>,
        /// Shapes of the results.
        output_shape: Vec<Vec<i64>>,
        /// Padding; the same on all four sides in published files.
        padding: Option<[i64; 4]>,
        /// Extents of the window, in H and W.
        pool_size: Option<[i64; 2]>,
        /// Layers, inputs and constants that it reads.
        previous_layer: Vec<String>,
        /// Quantisation constants.
        quant_info: Option<Quantization>,
        /// Strides in H and W.
        stride: Option<[i64; 2]>,
        /// Axes C, H, W of the first operand that are used.
        tensor0_lut: Option<[i64; 3]>,
        /// Axes C, H, W of the second operand that are used.
        tensor1_lut: Option<[i64; 3]>,
        /// How tensors of different shapes are broadcast.
        tensor_mode: Option<i64>,
    }

    /// Quantisation constants of a layer of the PE array.
    pub struct Quantization {
        /// Scale of the activations read.
        input_scale1: Option<Number>,
        /// Zero point of the activations read.
        input_zero_point1: Option<Number>,
        /// Factor from the accumulator to the result.
        output_scale: Option<Number>,
        /// Zero point of the result.
        output_zero_point: Option<Number>,
        /// Rounding of results.
        round_type: Option<String>,
    }

    /// The settings of a module of the vector processor; the fields depend on the
    /// module.
    pub struct Group {
        /// Axes of an accumulation.
        acc_dim: Option<String>,
        /// `acc` or `tree`.
        acc_tree_mode: Option<String>,
        /// The function that the multiplier also applies.
        act_mode: Option<String>,
        /// Rounding of results.
        carry_sel: Option<String>,
        /// Axes of a comparison.
        cmp_dim: Option<String>,
        /// `max` or `min`.
        cmp_max_en: Option<String>,
        /// How comparisons are combined.
        cmp_mode: Option<String>,
        /// Shapes of the inputs.
        input_shape: Option<Vec<Vec<i64>>>,
        /// Source of the factor.
        mul_group_k_mux: Option<String>,
        /// The factor.
        mul_group_k_scalar: Option<Number>,
        /// Factor after the operation.
        mul_k: Option<Number>,
        /// Shapes of the outputs.
        output_shape: Option<Vec<Vec<i64>>>,
        /// Scale of the first operand.
        requan_scale_a: Option<Number>,
        /// Scale of the second operand.
        requan_scale_b: Option<Number>,
        /// Zero point of the first operand.
        requan_zp_a: Option<Number>,
        /// Zero point of the second operand.
        requan_zp_b: Option<Number>,
        /// Summand after the operation.
        sum_b: Option<Number>,
        /// Source of the summand.
        sumsub_group_b_mux: Option<String>,
        /// `add` or `sub`.
        sumsub_group_mode: Option<String>,
        /// `add` or `sub`, after the operation.
        sumsub_mode: Option<String>,
    }
}

/// The modules of the vector processor that a layer uses, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Modules {
    /// Names, such as `pre_cal`, and settings.
    pub groups: Vec<(String, Group)>,
    /// The order of keys, if they are not sorted.
    pub extra: Extra,
}

impl Modules {
    /// The module with a name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|(other, _)| other == name).map(|(_, group)| group)
    }
}

impl Field for Modules {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        let (groups, extra) = read_map(reader, node, at)?;
        Some(Modules { groups, extra })
    }

    fn write(&self) -> Option<Json> {
        Some(write_map(&self.groups, &self.extra))
    }
}

/// The members of an object whose keys are names.
pub(super) fn read_map<T: Field>(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    at: &At<'_>,
) -> Option<(Vec<(String, T)>, Extra)> {
    let members = reader.object(node, at)?.members;
    let mut all = vec![];
    for member in members {
        let value = T::read(reader, &member.value, &at.key(&member.key));
        all.extend(value.map(|value| (member.key.clone().into_owned(), value)));
    }
    (all.len() == members.len()).then(|| (all, Extra::new(members, vec![])))
}

pub(super) fn write_map<T: Field>(all: &[(String, T)], extra: &Extra) -> Json {
    let member = |(name, value): &(String, T)| Some((name.as_str().into(), value.write()?));
    extra.object(all.iter().filter_map(member).collect())
}
