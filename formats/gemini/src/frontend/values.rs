//! Checks of values of a layer that no other part of the file depends on: constants, names, flags.

use irc_diag::counted;
use irc_json::{Json, Number};

use super::{FrontendLayer, Modules, Quantization};

/// An error: the key and the message.
pub(super) type KeyError = (String, String);

/// Maximum absolute value of zero points: that of any type of eight bits.
const MAX_ZERO: f64 = 256.0;

/// All invalid values.
pub(super) fn wrong(layer: &FrontendLayer) -> Vec<KeyError> {
    let mut all = KeyErrors(vec![]);
    all.name("device", Some(&layer.device), &["npu", "cpu"]);
    all.flag("ceil_mode", layer.ceil_mode.as_ref());
    all.flag("nhwc_consistant", layer.nhwc_consistant.as_ref());
    for (key, lut) in [("tensor0_lut", layer.tensor0_lut), ("tensor1_lut", layer.tensor1_lut)] {
        all.between(key, lut.as_ref().map_or(&[], |lut| lut), 0, 1);
    }
    all.between("tensor_mode", layer.tensor_mode.as_slice(), 0, 15);
    let (inputs, outputs) = (&layer.input_batchdim, &layer.output_batchdim);
    all.batch("input_batchdim", inputs.as_deref(), layer.input_shape.len());
    all.batch("output_batchdim", outputs.as_deref(), layer.output_shape.len());
    if let Some(constants) = &layer.quant_info {
        all.quantization(constants);
    }
    if let Some(modules) = &layer.module_list {
        all.modules(modules);
    }
    all.0
}

struct KeyErrors(Vec<KeyError>);

impl KeyErrors {
    fn push(&mut self, key: &str, why: String) {
        self.0.push((key.to_owned(), why));
    }

    fn name(&mut self, key: &str, name: Option<&String>, names: &[&str]) {
        if let Some(name) = name.filter(|name| !names.contains(&name.as_str())) {
            let name = irc_diag::clip(name);
            self.push(key, format!("unknown name `{name}`, expected one of {}", names.join(", ")));
        }
    }

    /// 0 or 1, or a boolean.
    fn flag(&mut self, key: &str, value: Option<&Json>) {
        if !matches!(value, None | Some(Json::Bool(_) | Json::Int(0 | 1))) {
            self.push(key, "expected a boolean, 0 or 1".into());
        }
    }

    fn between(&mut self, key: &str, values: &[i64], least: i64, most: i64) {
        if let Some(value) = values.iter().find(|value| !(least..=most).contains(*value)) {
            self.push(key, format!("{value} is out of range, expected {least} to {most}"));
        }
    }

    /// Checks the batch axis of each tensor, or -1. Weights and biases need none.
    fn batch(&mut self, key: &str, axes: Option<&[i64]>, tensors: usize) {
        let axes = axes.unwrap_or_default();
        self.between(key, axes, -1, 3);
        if axes.len() > tensors + 1 {
            self.push(key, format!("{} axes for {}", axes.len(), counted(tensors, "tensor")));
        }
    }

    fn positive(&mut self, key: &str, value: Option<&Number>) {
        if value.is_some_and(|value| value.value() <= 0.0) {
            self.push(key, "a scale must be positive".into());
        }
    }

    fn zero_point(&mut self, key: &str, value: Option<&Number>) {
        if value.is_some_and(|value| value.value().abs() > MAX_ZERO) {
            self.push(key, "expected a zero point in the range of the elements' type".into());
        }
    }

    fn quantization(&mut self, constants: &Quantization) {
        self.positive("quant_info.input_scale1", constants.input_scale1.as_ref());
        self.positive("quant_info.output_scale", constants.output_scale.as_ref());
        self.zero_point("quant_info.input_zero_point1", constants.input_zero_point1.as_ref());
        self.zero_point("quant_info.output_zero_point", constants.output_zero_point.as_ref());
        self.name(
            "quant_info.round_type",
            constants.round_type.as_ref(),
            &["round", "ceil", "floor"],
        );
    }

    fn modules(&mut self, modules: &Modules) {
        for (name, group) in &modules.groups {
            let key = |key: &str| format!("module_list.{name}.{key}");
            self.positive(&key("requan_scale_a"), group.requan_scale_a.as_ref());
            self.positive(&key("requan_scale_b"), group.requan_scale_b.as_ref());
            self.positive(&key("mul_k"), group.mul_k.as_ref());
            let signs = ["add", "sub"];
            self.name(&key("sumsub_mode"), group.sumsub_mode.as_ref(), &signs);
            self.name(&key("sumsub_group_mode"), group.sumsub_group_mode.as_ref(), &signs);
            self.name(&key("cmp_max_en"), group.cmp_max_en.as_ref(), &["max", "min"]);
            self.name(&key("acc_tree_mode"), group.acc_tree_mode.as_ref(), &["acc", "tree"]);
            let shapes =
                [("input_shape", &group.input_shape), ("output_shape", &group.output_shape)];
            for (shape, all) in shapes {
                let extents: Vec<i64> = all.iter().flatten().flatten().copied().collect();
                self.between(&key(shape), &extents, 1, 1 << 24);
            }
        }
    }
}
