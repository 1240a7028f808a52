//! Checks that the sizes in metadata follow from graph and parameters.

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Severity};

use super::error;
use crate::graph::{Graph, storages};
use crate::metadata::{
    FunctionUsage, Memory, ModelMemory, Module, PATH, Tensor, constants_bytes, io_bytes,
    tvm_io_bytes, tvm_storage_bytes, usage, workspace_bytes,
};
use crate::package::Package;
use crate::params::{Param, index};
use crate::report::Report;
use irc_diag::clip;

/// Checks the memory of one model, whose graph has no errors.
pub(super) fn check(
    package: &Package,
    module: &Module,
    graph: &Graph,
    params: &[Param],
    report: &mut Report,
) {
    let Memory::Model(memory) = &module.memory else { return };
    let model = Model {
        graph,
        params,
        memory,
        is_ours: package.metadata.extension.is_some(),
        version: package.metadata.version,
        // Version 1 lists storages directly under `memory`.
        place: format!("{}.memory", package.metadata.module_path(module)),
    };
    let mut found = vec![];
    model.storages(&mut found);
    model.functions(&mut found);
    model.main(&mut found);
    report.add_json(&package.archive, PATH, found);
}

struct Model<'p> {
    graph: &'p Graph,
    params: &'p [Param],
    memory: &'p ModelMemory,
    is_ours: bool,
    version: u32,
    place: String,
}

impl Model<'_> {
    /// Reports a wrong size. Known errors of TVM are warnings.
    fn size(
        &self,
        what: &str,
        (stated, real): (u64, u64),
        is_tvms: bool,
        path: String,
        found: &mut Vec<Diagnostic>,
    ) {
        if stated == real {
            return;
        }
        let message = format!("expected {real} bytes for {what}, found {stated}");
        let diagnostic = match !self.is_ours && is_tvms {
            true => Diagnostic::warning("mlf-tvm-size", message)
                .with_note("TVM is known to write wrong sizes here"),
            false => Diagnostic::error("mlf-size", message),
        };
        found.push(diagnostic.path(path));
    }

    fn storages(&self, found: &mut Vec<Diagnostic>) {
        let Some(stated) = &self.memory.storages else { return };
        let list = if self.version == 1 { "" } else { ".sids" };
        let place = format!("{}{list}", self.place);
        let real = storages(self.graph);
        let mut seen = BTreeSet::new();
        for (index, storage) in stated.iter().enumerate() {
            let path = format!("{place}[{index}]");
            let id = storage.id;
            let Some(&bytes) = real.get(&id).filter(|_| seen.insert(id)) else {
                let message = format!("storage {id} is listed twice or not in the graph");
                error(found, "mlf-storage", message, path);
                continue;
            };
            let is_tvms = tvm_storage_bytes(self.graph, id) == Some(storage.bytes);
            let sizes = (storage.bytes, bytes);
            let what = format!("storage {id}");
            self.size(&what, sizes, is_tvms, format!("{path}.size_bytes"), found);
        }
        let listed = index(stated.iter().map(|storage| (storage.id, storage.bytes)));
        for id in real.keys().filter(|id| !listed.contains_key(*id)) {
            let message = format!("storage {id} of the graph is not listed");
            error(found, "mlf-storage", message, place.clone());
        }
        self.bindings(&place, found);
    }

    /// Checks that inputs are named at their storages.
    fn bindings(&self, place: &str, found: &mut Vec<Diagnostic>) {
        let named = self.graph.named_inputs();
        let lies = |(number, (_, entry)): (usize, &(&str, usize))| {
            (self.graph.entries[*entry].storage, number as u64)
        };
        let numbers = index(named.iter().enumerate().map(lies));
        let shown = |input: Option<&str>| {
            input.map_or("no input".into(), |input| format!("input `{}`", clip(input)))
        };
        for (index, storage) in self.memory.storages.iter().flatten().enumerate() {
            let stated = storage.input.as_deref();
            let real = numbers.get(&storage.id).map(|number| named[*number as usize].0);
            if stated != real {
                let (id, stated, real) = (storage.id, shown(stated), shown(real));
                let message = format!("expected {real} in storage {id}, found {stated}");
                // TVM takes indices of entries for those of nodes.
                self.ours("mlf-binding", message, format!("{place}[{index}]"), found);
            }
        }
    }

    /// A diagnostic that is an error only in irc's archives.
    fn ours(&self, code: &'static str, message: String, path: String, found: &mut Vec<Diagnostic>) {
        let severity = if self.is_ours { Severity::Error } else { Severity::Warning };
        found.push(Diagnostic::new(severity, code, message).path(path));
    }

    /// Checks that the workspace of each called function is stated.
    fn functions(&self, found: &mut Vec<Diagnostic>) {
        if self.version == 1 {
            return;
        }
        let stated = self.memory.functions.iter().enumerate();
        let stated = index(stated.map(|(number, usage)| (usage.name.as_str(), number)));
        let called = self.graph.functions();
        for name in called.keys().filter(|name| !stated.contains_key(**name)) {
            let message = format!("the workspace of `{}` is not stated", clip(name));
            let path = format!("{}.functions.operator_functions", self.place);
            self.ours("mlf-workspace", message, path, found);
        }
    }

    fn main(&self, found: &mut Vec<Diagnostic>) {
        let [stated] = &self.memory.main[..] else { return self.no_main(found) };
        let place = format!("{}.functions.main[0]", self.place);
        let (graph, params) = (self.graph, self.params);
        let path = |key: &str| format!("{place}.{key}_size_bytes");
        let constants = (stated.constants, constants_bytes(params));
        self.size("the parameters", constants, false, path("constants"), found);
        let io = (stated.io, io_bytes(graph, params));
        let is_tvms = stated.io == tvm_io_bytes(graph, params);
        self.size("inputs and outputs", io, is_tvms, path("io"), found);
        let called = self.called();
        let workspace = (stated.workspace, workspace_bytes(graph, &called));
        // TVM counts tuples once for each of their fields; from version 6 on it may plan pools.
        let has_tuples = graph.outputs.len() > 1 || graph.calls().any(|(_, call)| call.outputs > 1);
        let is_tvms = self.version >= 6 || has_tuples && workspace.0 > workspace.1;
        self.size("the workspace", workspace, is_tvms, path("workspace"), found);
        let real = usage(graph, params, &called, stated.device);
        self.tensors("inputs", &stated.inputs, &real.inputs, &place, found);
        // Outputs may have their own names: their order is not stated.
        if stated.outputs.len() == real.outputs.len() && self.is_ours {
            self.tensors("outputs", &stated.outputs, &real.outputs, &place, found);
        }
        self.device(stated.device, &place, found);
    }

    /// Workspaces of functions that the graph calls.
    fn called(&self) -> Vec<FunctionUsage> {
        let called = self.graph.functions();
        let usages = self.memory.functions.iter();
        usages.filter(|usage| called.contains_key(usage.name.as_str())).cloned().collect()
    }

    /// Reports that the sizes of zero or several devices are not checked.
    fn no_main(&self, found: &mut Vec<Diagnostic>) {
        if self.version == 1 {
            return;
        }
        let path = format!("{}.functions.main", self.place);
        let devices = self.memory.main.len();
        if devices == 0 {
            return error(found, "mlf-size", "the memory of the model is not stated".into(), path);
        }
        let message = format!("sizes of {devices} devices are not checked");
        found.push(Diagnostic::note("mlf-devices", message).path(path));
    }

    /// Checks tensors by name, which versions from 7 on state.
    fn tensors(
        &self,
        key: &str,
        stated: &BTreeMap<String, Tensor>,
        real: &BTreeMap<String, Tensor>,
        place: &str,
        found: &mut Vec<Diagnostic>,
    ) {
        if self.version < 7 || stated == real {
            return;
        }
        let show = |tensors: &BTreeMap<String, Tensor>| {
            let show = |(name, tensor): (&String, &Tensor)| {
                format!("`{}` {} bytes of {}", clip(name), tensor.bytes, tensor.dtype)
            };
            tensors.iter().map(show).collect::<Vec<_>>().join(", ")
        };
        let message = format!("{key} do not match the graph");
        let diagnostic = Diagnostic::error("mlf-signature", message).path(format!("{place}.{key}"));
        found.push(diagnostic.with_note(format!("the graph has {}", show(real))));
    }

    /// Checks that the graph is on the device of the memory.
    fn device(&self, device: i64, place: &str, found: &mut Vec<Diagnostic>) {
        let mut others = self.graph.entries.iter().filter_map(|entry| entry.device);
        if let Some(other) = others.find(|other| *other != device) {
            let message = format!("expected device type {device} of the graph, found {other}");
            error(found, "mlf-target", message, format!("{place}.device"));
        }
    }
}
