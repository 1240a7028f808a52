//! Imports a module of the format to a module of MLIR.
//!
//! A name refers to the definition in the closest enclosing graph: an input, else a constant, else
//! the first node that defines it. Nodes may use values defined after them, so all ops are created
//! first and get their operands afterwards.
use super::{
    Origins, attributes,
    origins::each_graph,
    read::{Dictionary, entries, opsets, some_array, texts},
    tensors,
    types::Types,
    values,
};
use irc_common_format::model::{
    Attribute as Literal, Function, Graph, Module, Node, Operator, Path, ProducerVersion,
    Quantization, Schema, Signature, SparseTensor, Tensor, Type, Value,
};
use irc_mlir::{
    Attribute, Block, BlockLike, BlockRef, Context, Location, OpSpec, OperationLike, OperationRef,
    Region, RegionLike, attr, rebind, region_of, set_operands,
};
use std::collections::{BTreeMap, HashMap};

/// Creates a module that holds one `common_ir.module`.
///
/// The location of an op is its path in the module and, inside it, file, line and column, or the
/// node's name if the file is binary. Elements are not copied.
pub fn import<'c>(
    context: &'c Context,
    module: &Module,
    origins: &Origins,
) -> irc_mlir::Module<'c> {
    context.get_or_load_dialect("common_ir");
    let child = match &origins.file {
        Some(file) => Location::new(context, file, 1, 1),
        None => Location::unknown(context),
    };
    let whole = Location::name(context, "module", child);
    let made = irc_mlir::Module::new(whole);
    let spec = module_spec(OpSpec::new(context, "common_ir.module", whole), context, module);
    let op = spec.region(region_of(Block::new(&[]))).append(&made.body());
    let mut importer =
        Importer { types: Types::new(context), origins, scopes: vec![], pending: vec![] };
    importer.parts(module, body(op));
    importer.connect();
    made
}

fn module_spec<'c>(spec: OpSpec<'c>, context: &'c Context, module: &Module) -> OpSpec<'c> {
    let meta = &module.metadata;
    let text = |value: &Option<String>| value.as_ref().map(|text| attr::string(context, text));
    let number = |value: Option<i64>| value.map(|number| attr::i64(context, number));
    let schema = match module.schema {
        Schema::CommonIr => "common_ir",
        Schema::Onnx => "onnx",
    };
    let version = meta.producer_version.as_ref().map(|version| match version {
        ProducerVersion::Number(number) => attr::i64(context, *number),
        ProducerVersion::Text(text) => attr::string(context, text),
    });
    spec.attr("schema", attr::string(context, schema))
        .maybe_attr("module_name", text(&meta.name))
        .maybe_attr("domain", text(&meta.domain))
        .maybe_attr("ir_version", number(meta.ir_version))
        .maybe_attr("model_version", number(meta.model_version))
        .maybe_attr("author", text(&meta.author))
        .maybe_attr("license", text(&meta.license))
        .maybe_attr("producer", text(&meta.producer))
        .maybe_attr("producer_version", version)
        .maybe_attr("doc", text(&meta.doc))
        .maybe_attr("metadata", entries(context, &meta.properties))
        .maybe_attr("imports", texts(context, &module.imports))
        .maybe_attr("opsets", opsets(context, &module.opsets))
}

/// The single block of an op that was just built with one.
fn body<'c, 'a>(op: OperationRef<'c, 'a>) -> BlockRef<'c, 'a> {
    let block = OperationLike::region(&op, 0).ok().and_then(|region| region.first_block());
    block.expect("the op was built with a region of one block")
}

/// The values that a graph or function defines.
struct Scope<'c, 'a, 'm> {
    around: Option<usize>,
    names: HashMap<&'m str, irc_mlir::Value<'c, 'a>>,
    types: HashMap<&'m str, Option<Type>>,
    terminator: Option<OperationRef<'c, 'a>>,
    undefined: BTreeMap<Option<&'m str>, irc_mlir::Value<'c, 'a>>,
}

/// An op whose operands are to be set, by name; undefined names have no value.
struct Pending<'c, 'a, 'm> {
    op: OperationRef<'c, 'a>,
    scope: usize,
    names: Vec<Option<&'m str>>,
}

/// A graph or the body of a function.
struct Body<'m> {
    inputs: &'m [Value],
    outputs: &'m [Value],
    values: &'m [Value],
    initializers: &'m [Tensor],
    sparse: &'m [SparseTensor],
    nodes: &'m [Node],
}

impl<'m> Body<'m> {
    fn of_graph(graph: &'m Graph) -> Self {
        let Graph { inputs, outputs, values, initializers, nodes, .. } = graph;
        Self { inputs, outputs, values, initializers, sparse: &graph.sparse_initializers, nodes }
    }

    fn of_function(function: &'m Function) -> Self {
        let Function { inputs, outputs, values, nodes, .. } = function;
        Self { inputs, outputs, values, initializers: &[], sparse: &[], nodes }
    }

    /// The types of results of nodes, by name; the first declaration counts.
    fn declared(&self) -> HashMap<&'m str, &'m Type> {
        let mut declared = HashMap::new();
        for value in self.values.iter().chain(self.outputs) {
            if let (Some(name), Some(ty)) = (&value.name, &value.ty) {
                declared.entry(name.as_str()).or_insert(ty);
            }
        }
        declared
    }
}

struct Importer<'c, 'a, 'm, 'o> {
    types: Types<'c>,
    origins: &'o Origins,
    scopes: Vec<Scope<'c, 'a, 'm>>,
    pending: Vec<Pending<'c, 'a, 'm>>,
}

impl<'c: 'a, 'a, 'm> Importer<'c, 'a, 'm, '_> {
    fn context(&self) -> &'c Context {
        self.types.context
    }

    fn parts(&mut self, module: &'m Module, block: BlockRef<'c, 'a>) {
        for (index, operator) in module.operators.iter().enumerate() {
            let location =
                self.location(&Path::ROOT.index("operator", index), operator.name.as_deref());
            self.declare(operator, block, location);
        }
        for (index, function) in module.functions.iter().enumerate() {
            self.function(function, block, &Path::ROOT.index("function", index));
        }
        if let Some(graph) = &module.graph {
            self.graph(graph, block, None, &Path::GRAPH);
        }
    }

    fn location(&self, path: &Path<'_>, name: Option<&str>) -> Location<'c> {
        let (context, path) = (self.context(), path.to_string());
        let child = match (self.origins.places.get(&path), &self.origins.file, name) {
            (Some((line, column)), Some(file), _) => Location::new(context, file, *line, *column),
            (_, _, Some(name)) if !name.is_empty() => {
                Location::name(context, name, Location::unknown(context))
            }
            _ => Location::unknown(context),
        };
        Location::name(context, &path, child)
    }

    fn text(&self, value: &Option<String>) -> Option<Attribute<'c>> {
        value.as_ref().map(|text| attr::string(self.context(), text))
    }

    /// Values without an SSA value; `None` if there are none.
    fn free_values(&mut self, list: &[Value]) -> Option<Attribute<'c>> {
        let list = list.iter().map(|value| values::to_attribute(&mut self.types, value, None));
        let list = list.collect();
        some_array(self.context(), list)
    }

    fn declare(&mut self, operator: &Operator, block: BlockRef<'c, 'a>, location: Location<'c>) {
        let Operator { name, domain, signatures, doc } = operator;
        let signatures = signatures.iter().map(|signature| self.signature(signature)).collect();
        OpSpec::new(self.context(), "common_ir.declare", location)
            .maybe_attr("operator_name", self.text(name))
            .maybe_attr("domain", self.text(domain))
            .maybe_attr("signatures", some_array(self.context(), signatures))
            .maybe_attr("doc", self.text(doc))
            .append(&block);
    }

    fn signature(&mut self, signature: &Signature) -> Attribute<'c> {
        let Signature { inputs, outputs, attributes, doc } = signature;
        let mut fields = Dictionary::new(self.context());
        fields.maybe("inputs", self.free_values(inputs));
        fields.maybe("outputs", self.free_values(outputs));
        fields.maybe("attributes", self.free_values(attributes));
        fields.text("doc", doc.as_ref());
        fields.finish()
    }

    fn function(&mut self, function: &'m Function, block: BlockRef<'c, 'a>, path: &Path<'_>) {
        let body = Body::of_function(function);
        let Function { name, domain, overload, attributes, opsets: sets, doc, properties, .. } =
            function;
        let literals = self.literals(attributes);
        let location = self.location(path, name.as_deref());
        let scope = self.scope(&body, None);
        let spec = OpSpec::new(self.context(), "common_ir.function", location)
            .maybe_attr("function_name", self.text(name))
            .maybe_attr("domain", self.text(domain))
            .maybe_attr("overload", self.text(overload))
            .maybe_attr("attrs", literals)
            .maybe_attr("opsets", opsets(self.context(), sets))
            .maybe_attr("doc", self.text(doc))
            .maybe_attr("metadata", entries(self.context(), properties));
        self.body(spec, &body, scope, block, location, path);
    }

    fn graph(
        &mut self,
        graph: &'m Graph,
        block: BlockRef<'c, 'a>,
        around: Option<usize>,
        path: &Path<'_>,
    ) {
        let body = Body::of_graph(graph);
        let location = self.location(path, graph.name.as_deref());
        let scope = self.scope(&body, around);
        let quantizations =
            graph.quantizations.iter().map(|one| quantization(self.context(), one)).collect();
        let spec = OpSpec::new(self.context(), "common_ir.graph", location)
            .maybe_attr("graph_name", self.text(&graph.name))
            .maybe_attr("doc", self.text(&graph.doc))
            .maybe_attr("quantizations", some_array(self.context(), quantizations))
            .maybe_attr("metadata", entries(self.context(), &graph.properties));
        self.body(spec, &body, scope, block, location, path);
    }

    /// A scope with the declared types of its values.
    fn scope(&mut self, body: &Body<'m>, around: Option<usize>) -> usize {
        let mut types: HashMap<&str, Option<Type>> = HashMap::new();
        let mut add = |name: &'m str, ty: Option<Type>| {
            types.entry(name).or_insert(ty);
        };
        for input in body.inputs {
            add(input.name(), input.ty.clone());
        }
        for tensor in body.initializers {
            let name = tensor.name.as_deref().unwrap_or_default();
            add(name, Some(tensors::type_of_tensor(tensor)));
        }
        for sparse in body.sparse {
            add(name_of_sparse(sparse), Some(tensors::type_of_sparse(sparse)));
        }
        let declared = body.declared();
        for node in body.nodes {
            for (index, name) in node.outputs.iter().enumerate() {
                add(name, result_type(node, index, &declared).cloned());
            }
        }
        let (names, undefined) = (HashMap::new(), BTreeMap::new());
        self.scopes.push(Scope { around, names, types, terminator: None, undefined });
        self.scopes.len() - 1
    }

    /// Appends the op of a graph or function, with its contents.
    fn body(
        &mut self,
        spec: OpSpec<'c>,
        from: &Body<'m>,
        scope: usize,
        block: BlockRef<'c, 'a>,
        location: Location<'c>,
        path: &Path<'_>,
    ) {
        let context = self.context();
        let arguments: Vec<_> =
            from.inputs.iter().map(|input| self.types.mlir(input.ty.as_ref())).collect();
        let arguments: Vec<_> = arguments.into_iter().map(|ty| (ty, location)).collect();
        let inputs: Vec<_> = from
            .inputs
            .iter()
            .map(|input| values::to_attribute(&mut self.types, input, input.ty.as_ref()))
            .collect();
        let within = from.values.iter().map(|value| self.scoped(value, scope)).collect();
        let op = spec
            .attr("inputs", attr::array(context, &inputs))
            .maybe_attr("values", some_array(context, within))
            .region(region_of(Block::new(&arguments)))
            .append(&block);
        let block = body(op);
        for (index, input) in from.inputs.iter().enumerate() {
            if let Ok(argument) = block.argument(index) {
                self.define(scope, input.name(), rebind(argument.into()));
            }
        }
        for (index, tensor) in from.initializers.iter().enumerate() {
            self.initializer(tensor, scope, block, &path.index("initializer", index));
        }
        for (index, sparse) in from.sparse.iter().enumerate() {
            self.sparse(sparse, scope, block, &path.index("sparse_initializer", index));
        }
        let declared = from.declared();
        for (index, node) in from.nodes.iter().enumerate() {
            self.node(node, &declared, scope, block, &path.index("node", index));
        }
        let outputs: Vec<_> =
            from.outputs.iter().map(|output| self.scoped(output, scope)).collect();
        let terminator = OpSpec::new(context, "common_ir.output", location)
            .attr("outputs", attr::array(context, &outputs))
            .append(&block);
        self.scopes[scope].terminator = Some(terminator);
        let names = from.outputs.iter().map(|output| output.name.as_deref()).collect();
        self.pending.push(Pending { op: terminator, scope, names });
    }

    /// The description of a value that has an SSA value of that name.
    fn scoped(&mut self, value: &'m Value, scope: usize) -> Attribute<'c> {
        let known = self.known_type(value.name(), scope).cloned();
        values::to_attribute(&mut self.types, value, known.as_ref())
    }

    fn known_type(&self, name: &str, scope: usize) -> Option<&Type> {
        let mut next = Some(scope).filter(|_| !name.is_empty());
        while let Some(scope) = next.map(|scope| &self.scopes[scope]) {
            if let Some(ty) = scope.types.get(name) {
                return ty.as_ref();
            }
            next = scope.around;
        }
        None
    }

    /// The first definition of a name counts; an empty name is no definition.
    fn define(&mut self, scope: usize, name: &'m str, value: irc_mlir::Value<'c, 'a>) {
        if !name.is_empty() {
            self.scopes[scope].names.entry(name).or_insert(value);
        }
    }

    fn initializer(
        &mut self,
        tensor: &'m Tensor,
        scope: usize,
        block: BlockRef<'c, 'a>,
        path: &Path<'_>,
    ) {
        let ty = self.types.mlir(Some(&tensors::type_of_tensor(tensor)));
        let value = tensors::to_attribute(&mut self.types, tensor, true, true);
        let location = self.location(path, tensor.name.as_deref());
        let op = OpSpec::new(self.context(), "common_ir.initializer", location)
            .results(&[ty])
            .maybe_attr("value_name", self.text(&tensor.name))
            .attr("value", value)
            .append(&block);
        self.define_result(scope, op, 0, tensor.name.as_deref().unwrap_or_default());
    }

    fn sparse(
        &mut self,
        sparse: &'m SparseTensor,
        scope: usize,
        block: BlockRef<'c, 'a>,
        path: &Path<'_>,
    ) {
        let ty = self.types.mlir(Some(&tensors::type_of_sparse(sparse)));
        let value = tensors::sparse_to_attribute(&mut self.types, sparse);
        let location = self.location(path, Some(name_of_sparse(sparse)));
        let op = OpSpec::new(self.context(), "common_ir.sparse_initializer", location)
            .results(&[ty])
            .attr("value", value)
            .append(&block);
        self.define_result(scope, op, 0, name_of_sparse(sparse));
    }

    fn define_result(
        &mut self,
        scope: usize,
        op: OperationRef<'c, 'a>,
        index: usize,
        name: &'m str,
    ) {
        if let Ok(result) = op.result(index) {
            self.define(scope, name, rebind(result.into()));
        }
    }

    fn node(
        &mut self,
        node: &'m Node,
        declared: &HashMap<&str, &Type>,
        scope: usize,
        block: BlockRef<'c, 'a>,
        path: &Path<'_>,
    ) {
        let context = self.context();
        let literals = self.literals(&node.attributes);
        let types: Vec<Option<&Type>> =
            (0..node.outputs.len()).map(|index| result_type(node, index, declared)).collect();
        let results: Vec<_> = types.iter().map(|ty| self.types.mlir(*ty)).collect();
        let mut seen = |list: &[Value], known: &dyn Fn(usize) -> Option<Type>| {
            let list = list.iter().enumerate().map(|(index, value)| {
                values::to_attribute(&mut self.types, value, known(index).as_ref())
            });
            some_array(context, list.collect())
        };
        let input_types = seen(&node.input_types, &|_| None);
        let output_types = seen(&node.output_types, &|index| types.get(index)?.cloned());
        let region = Region::new();
        let has_graphs = node.attributes.iter().any(|literal| !literal.value.graphs().is_empty());
        if has_graphs {
            region.append_block(Block::new(&[]));
        }
        let names: Vec<_> = node.outputs.iter().map(|name| attr::string(context, name)).collect();
        let location = self.location(path, node.name.as_deref());
        let op = OpSpec::new(context, "common_ir.node", location)
            .results(&results)
            .attr("op_type", attr::string(context, &node.op))
            .attr("outputs", attr::array(context, &names))
            .maybe_attr("node_name", self.text(&node.name))
            .maybe_attr("domain", self.text(&node.domain))
            .maybe_attr("overload", self.text(&node.overload))
            .maybe_attr("absent", absent(context, node))
            .maybe_attr("attrs", literals)
            .maybe_attr("arg_counts", arg_counts(context, node))
            .maybe_attr("control_inputs", texts(context, &node.control_inputs))
            .maybe_attr("input_types", input_types)
            .maybe_attr("output_types", output_types)
            .maybe_attr("doc", self.text(&node.doc))
            .maybe_attr("metadata", entries(context, &node.properties))
            .region(region)
            .append(&block);
        for (index, name) in node.outputs.iter().enumerate() {
            self.define_result(scope, op, index, name);
        }
        let names = node.inputs.iter().filter(|name| !name.is_empty());
        let names = names.map(|name| Some(name.as_str())).collect();
        self.pending.push(Pending { op, scope, names });
        if has_graphs {
            let inner = body(op);
            each_graph(node, path, &mut |graph, path| {
                self.graph(graph, inner, Some(scope), path);
            });
        }
    }

    fn literals(&mut self, list: &[Literal]) -> Option<Attribute<'c>> {
        let mut graphs = 0;
        let list = list
            .iter()
            .map(|literal| attributes::to_attribute(&mut self.types, literal, &mut graphs))
            .collect();
        some_array(self.context(), list)
    }

    /// Sets the operands of every op.
    fn connect(&mut self) {
        for Pending { op, scope, names } in std::mem::take(&mut self.pending) {
            let operands: Vec<_> =
                names.into_iter().map(|name| self.resolve(name, scope)).collect();
            set_operands(op, &operands);
        }
    }

    fn resolve(&mut self, name: Option<&'m str>, scope: usize) -> irc_mlir::Value<'c, 'a> {
        let mut next = Some(scope);
        while let (Some(name), Some(scope)) = (name, next.map(|scope| &self.scopes[scope])) {
            if let Some(value) = scope.names.get(name) {
                return *value;
            }
            next = scope.around;
        }
        self.undefined(name, scope)
    }

    /// The value of an undefined name, one for each name in each graph.
    fn undefined(&mut self, name: Option<&'m str>, scope: usize) -> irc_mlir::Value<'c, 'a> {
        if let Some(value) = self.scopes[scope].undefined.get(&name) {
            return *value;
        }
        let context = self.context();
        let terminator = self.scopes[scope].terminator.expect("a body with a terminator");
        let block = terminator.block().expect("a terminator in a block");
        let ty = self.types.mlir(None);
        let op = OpSpec::new(context, "common_ir.undefined", terminator.location())
            .results(&[ty])
            .maybe_attr("value_name", name.map(|name| attr::string(context, name)))
            .before(&block, terminator);
        let value = rebind(op.result(0).expect("the op was built with a result").into());
        self.scopes[scope].undefined.insert(name, value);
        value
    }
}

/// The type of a node's result: that declared for its name, or that of the node.
fn result_type<'m>(
    node: &'m Node,
    index: usize,
    declared: &HashMap<&str, &'m Type>,
) -> Option<&'m Type> {
    let name = node.outputs.get(index).filter(|name| !name.is_empty())?;
    let own = || node.output_types.get(index).and_then(|value| value.ty.as_ref());
    declared.get(name.as_str()).copied().or_else(own)
}

fn name_of_sparse(sparse: &SparseTensor) -> &str {
    sparse.values.as_ref().and_then(|values| values.name.as_deref()).unwrap_or_default()
}

/// The indices of omitted inputs.
fn absent<'c>(context: &'c Context, node: &Node) -> Option<Attribute<'c>> {
    let places = node.inputs.iter().enumerate().filter(|(_, name)| name.is_empty());
    let places: Vec<i64> = places.map(|(index, _)| index as i64).collect();
    (!places.is_empty()).then(|| attr::i64s(context, &places))
}

fn arg_counts<'c>(context: &'c Context, node: &Node) -> Option<Attribute<'c>> {
    let counts: Vec<i64> = node.arg_counts.iter().copied().map(i64::from).collect();
    (!counts.is_empty()).then(|| attr::i64s(context, &counts))
}

fn quantization<'c>(context: &'c Context, quantization: &Quantization) -> Attribute<'c> {
    let mut fields = Dictionary::new(context);
    fields.text("tensor", quantization.tensor.as_ref());
    fields.maybe("parameters", entries(context, &quantization.parameters));
    fields.finish()
}
