//! Caches of keys and values in buffers with room for more tokens.
//!
//! A model returns the keys and values of all tokens so far as `Concat(past, new)`, which copies the past. With room behind
//! the past, the program instead replaces the rows after the past in the buffer, so that the input and the output can be in
//! one memory. A symbolic number of past tokens becomes an input of the dimension's name, as the extent of the buffer no
//! longer states it.
use super::Imported;
use irc_diag::Diagnostic;
use irc_tl::{
    Check, Comparison, Compute, DType, Dim, Graph, Node, NodeKind, Op, Relation, Scalar, Symbol,
    SymbolSource, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// A cache: an input, and an output of its elements with new ones behind them.
struct Cache {
    /// The node that concatenates.
    node: usize,
    past: ValueId,
    axis: usize,
    /// The tokens before.
    length: Dim,
    output: usize,
}

impl Imported {
    /// Inputs that are numbers of past tokens, as the extents of caches with room do not state them.
    pub fn token_counts(&self) -> BTreeSet<String> {
        let graph = &self.graph;
        let is_stated = |(name, value): &&(String, ValueId)| {
            let source = SymbolSource::Element(*value, 0);
            graph.symbols.iter().any(|symbol| *symbol.name == **name && symbol.source == source)
        };
        let scalars = graph.inputs.iter().filter(|(_, value)| graph.ty(*value).rank() == 0);
        scalars.filter(is_stated).map(|(name, _)| name.clone()).collect()
    }

    /// Gives the caches of the program room for so many tokens, a number or a symbol.
    ///
    /// # Errors
    /// `import-cache` if there is no cache, or not enough room, or if a name is in use.
    pub(crate) fn extend_caches(&mut self, capacity: &Dim) -> Result<(), Vec<Diagnostic>> {
        let extended = extend(&mut self.graph, capacity);
        extended.map_err(|message| vec![Diagnostic::error("import-cache", message)])
    }
}

fn extend(graph: &mut Graph, capacity: &Dim) -> Result<(), String> {
    let caches = caches(graph);
    if caches.is_empty() {
        return Err(
            "the model has no cache: expected an output that is an input with new tokens behind it"
                .to_owned(),
        );
    }
    if let Dim::Symbolic(_) = capacity
        && let Some(used) =
            graph.symbols.iter().find(|symbol| Dim::symbol(&symbol.name) == *capacity)
    {
        return Err(format!(
            "expected a new name of the room of caches, but '{}' is a size",
            used.name
        ));
    }
    for cache in &caches {
        let all = graph.types[graph.nodes[cache.node].results[0].0].dims[cache.axis].clone();
        if let (Some(all), Some(room)) = (all.known(), capacity.known())
            && all > room
        {
            let name = &graph.outputs[cache.output].0;
            return Err(format!(
                "output '{name}': expected room for at least {all} tokens, found {room}"
            ));
        }
        graph.types[cache.past.0].dims[cache.axis] = capacity.clone();
        let message = "expected a cache with room for all tokens".to_owned();
        let fits = (all, capacity.clone());
        if fits.0.known().is_none() || fits.1.known().is_none() {
            let (left, right) = fits;
            let check = Check { left, right, relation: Relation::AtMost, message };
            if graph.checks.last() != Some(&check) {
                graph.checks.push(check);
            }
        }
    }
    if let Some(name) = capacity.symbols().first() {
        let source = SymbolSource::Extent(caches[0].past, caches[0].axis);
        graph.symbols.insert(0, Symbol { name: name.clone(), source });
    }
    let pasts: BTreeSet<ValueId> = caches.iter().map(|cache| cache.past).collect();
    state_lengths(graph, &pasts)?;
    let by_node: BTreeMap<usize, &Cache> = caches.iter().map(|cache| (cache.node, cache)).collect();
    let nodes = std::mem::take(&mut graph.nodes);
    for (number, node) in nodes.into_iter().enumerate() {
        match by_node.get(&number) {
            None => graph.nodes.push(node),
            Some(cache) => replace(graph, cache, node, capacity),
        }
    }
    Ok(())
}

/// Makes an input of each symbol that was the extent of a cache, and is no longer.
fn state_lengths(graph: &mut Graph, pasts: &BTreeSet<ValueId>) -> Result<(), String> {
    for at in 0..graph.symbols.len() {
        let Symbol { name, source } = graph.symbols[at].clone();
        let SymbolSource::Extent(value, axis) = source else { continue };
        if !pasts.contains(&value) || graph.types[value.0].dims[axis] == Dim::symbol(&name) {
            continue;
        }
        if graph.inputs.iter().any(|(input, _)| **input == *name) {
            return Err(format!(
                "expected no input '{name}', as the number of past tokens becomes one"
            ));
        }
        let input = ValueId(graph.types.len());
        graph.types.push(Type::new(DType::I64, Vec::<Dim>::new()));
        graph.inputs.push((name.to_string(), input));
        graph.symbols[at].source = SymbolSource::Element(input, 0);
        let (left, right) = (0.into(), Dim::symbol(&name));
        let message = format!("input '{name}': expected a number of past tokens, found {{right}}");
        graph.checks.push(Check { left, right, relation: Relation::AtMost, message });
    }
    Ok(())
}

/// Adds the nodes that replace a concatenation: the buffer with the new tokens, and the tokens so far.
fn replace(graph: &mut Graph, cache: &Cache, mut node: Node, capacity: &Dim) {
    let all = node.results[0];
    let ty = graph.types[all.0].clone();
    let mut dims = ty.dims.clone();
    dims[cache.axis] = capacity.clone();
    let loops: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    let size = |dim: &Dim| dim.known().map_or_else(|| Scalar::Size(dim.clone()), Scalar::index);
    let token = || Scalar::Loop(cache.axis);
    let is_new = token().ge(size(&cache.length)).and(token().lt(size(&ty.dims[cache.axis])));
    let mut at = loops.clone();
    at[cache.axis] = token() - size(&cache.length);
    let body = is_new.select(Scalar::load(1, at), Scalar::load(0, loops.clone()));
    let buffer = ValueId(graph.types.len());
    graph.types.push(Type::new(ty.dtype, dims.clone()));
    node.kind = NodeKind::Op(Op::compute(Compute::map(dims, body)));
    node.results = vec![buffer];
    let first = match ty.known() {
        Some(known) => Op::Slice { offsets: vec![0; known.shape.len()], sizes: known.shape },
        None => Op::compute(Compute::map(ty.dims, Scalar::load(0, loops))),
    };
    let origin = node.origin.clone();
    graph.nodes.push(node);
    let (kind, operands, results) = (NodeKind::Op(first), vec![buffer], vec![all]);
    graph.nodes.push(Node { kind, operands, results, origin });
    graph.outputs[cache.output].1 = buffer;
}

/// The caches of a program: inputs that only a concatenation with new tokens reads, which is an output.
fn caches(graph: &Graph) -> Vec<Cache> {
    let mut reads: BTreeMap<ValueId, usize> = BTreeMap::new();
    let returned = graph.outputs.iter().map(|(_, value)| value);
    for value in graph.nodes.iter().flat_map(|node| &node.operands).chain(returned) {
        *reads.entry(*value).or_default() += 1;
    }
    let inputs: BTreeSet<ValueId> = graph.inputs.iter().map(|(_, value)| *value).collect();
    let mut outputs = BTreeMap::new();
    for (number, (_, value)) in graph.outputs.iter().enumerate().rev() {
        outputs.insert(*value, number);
    }
    let of_node = |(number, node): (usize, &Node)| {
        let ([past, _], [all]) = (&node.operands[..], &node.results[..]) else { return None };
        let NodeKind::Op(Op::Compute(compute)) = &node.kind else { return None };
        let output = *outputs.get(all)?;
        let is_cache = inputs.contains(past) && reads[past] == 1;
        let (axis, length) = concatenation(compute, graph.ty(*past)).filter(|_| is_cache)?;
        Some(Cache { node: number, past: *past, axis, length, output })
    };
    graph.nodes.iter().enumerate().filter_map(of_node).collect()
}

/// The axis along which a general op concatenates an operand of a type with another one, and its extent there.
fn concatenation(compute: &Compute, past: &Type) -> Option<(usize, Dim)> {
    let Scalar::Select(parts) = &compute.body else { return None };
    let [Scalar::Compare(Comparison::Lt, token, length), old, new] = &**parts else { return None };
    let Scalar::Loop(axis) = **token else { return None };
    let own = past.dims.get(axis)?;
    let is_length = match &**length {
        Scalar::Int(known, _) => own.is(*known),
        Scalar::Size(size) => size == own,
        _ => false,
    };
    let loops: Vec<Scalar> = (0..compute.dims.len()).map(Scalar::Loop).collect();
    let mut at = loops.clone();
    at[axis] = Scalar::Loop(axis) - (**length).clone();
    let is_concatenation = compute.reduction.is_none()
        && *old == Scalar::load(0, loops)
        && *new == Scalar::load(1, at);
    let others = past.dims.iter().zip(&compute.dims).enumerate();
    let is_same = others.into_iter().all(|(dim, (own, dims))| dim == axis || own == dims);
    (is_length && is_concatenation && is_same).then(|| (axis, own.clone()))
}
