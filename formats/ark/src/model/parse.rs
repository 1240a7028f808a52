//! Parses text into a [`Model`], with a location for every diagnostic.

use std::collections::BTreeSet;

use irc_diag::{Diagnostic, Sink, Source};
use irc_json::{At, Object, Reader, place_in};

use super::canonical::Lines;
use super::origin::Origin;
use super::validate::{self, Edges};
use super::{Model, Node, Op, canonical, read};
use crate::json::{self, FORMAT, OpPlace, accepted, check_keys, integers};

/// Options of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Unknown keys are errors rather than notes.
    pub strict: bool,
    /// Validate the semantics too, not only the syntax.
    pub validate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { strict: false, validate: true }
    }
}

/// A model and the locations of its nodes in the file from which it was read.
///
/// They are separate so that an edit that only moves nodes yields an equal model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Document {
    /// The model.
    pub model: Model,
    /// One origin for each node of the model.
    pub origins: Vec<Origin>,
}

impl Document {
    /// JSON path in the file for a path of the model: they differ for files of older
    /// generations, whose nodes may have several ops.
    pub fn source_path(&self, path: &str) -> String {
        let node = path.strip_prefix("$.Nodes[").and_then(|rest| rest.split_once(']'));
        let Some((index, rest)) = node else { return path.into() };
        let origin = index.parse().ok().and_then(|index: usize| self.origins.get(index));
        match (origin.map(|origin| origin.place), rest.strip_prefix(".Op")) {
            (Some(place), Some(tail)) if tail.is_empty() || tail.starts_with(['.', '[']) => {
                format!("{place}{tail}")
            }
            (Some(OpPlace::NodeOps(node, _)), _) => format!("$.Nodes[{node}]{rest}"),
            _ => path.into(),
        }
    }
}

/// Reads a model file; every diagnostic goes to `sink`.
///
/// Returns `None` if there was an error. Files of other generations of the format are converted
/// to the current form, with a warning for each deviation.
pub fn parse(source: &Source, options: &Options, sink: &mut Sink) -> Option<Document> {
    if let Some(document) = parse_canonical(source, options) {
        return Some(document);
    }
    let before = sink.error_count();
    let tree = json::tree(source, sink)?;
    let document = read_document(&tree, source.text(), options, sink);
    document.filter(|_| sink.error_count() == before)
}

/// Reads a file that was written by ARK and has no errors.
fn parse_canonical(source: &Source, options: &Options) -> Option<Document> {
    let (model, origins) = canonical::read(source.text())?;
    if source.invalid_utf8().is_some() {
        return None;
    }
    let sound = !options.validate || validate::validate(&model).is_empty();
    sound.then_some(Document { model, origins })
}

/// The readable parts of a node.
struct PartialNode {
    edges: Option<Edges>,
    ops: Vec<(OpPlace, Option<Op>)>,
    offset: usize,
    len: usize,
}

fn read_document(
    tree: &irc_json::Node<'_>,
    text: &str,
    options: &Options,
    sink: &mut Sink,
) -> Option<Document> {
    let mut reader = Reader::new(sink, &FORMAT, options.strict);
    let object = reader.object(tree, &At::ROOT)?;
    check_keys(&mut reader, &object, &["Rank", "WorldSize", "Nodes"]);
    let rank = rank(&mut reader, &object, "Rank");
    let world_size = rank_count(&mut reader, &object);
    let nodes = nodes(&mut reader, &object);
    if options.validate {
        let mut found = check(rank.zip(world_size), nodes.as_deref().unwrap_or_default());
        found.iter_mut().for_each(|diagnostic| place_in(tree, diagnostic));
        // An invalid number has been reported; its placeholder has no meaning.
        let reported =
            sink.diagnostics().iter().filter(|diagnostic| diagnostic.code == FORMAT.non_finite);
        let reported: BTreeSet<usize> = reported.filter_map(start).collect();
        found.retain(|diagnostic| start(diagnostic).is_none_or(|start| !reported.contains(&start)));
        sink.extend(found);
    }
    let (nodes, origins) = flatten(nodes?, text)?;
    Some(Document { model: Model { rank: rank?, world_size: world_size?, nodes }, origins })
}

fn start(diagnostic: &Diagnostic) -> Option<usize> {
    diagnostic.primary_span().map(|span| span.start)
}

fn rank(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &'static str) -> Option<i64> {
    let value = reader.required(object, key)?;
    reader.integer(value, &object.at.key(key), "an integer")
}

fn rank_count(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<i64> {
    rank(reader, object, "WorldSize")
}

fn nodes(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<Vec<PartialNode>> {
    let value = reader.required(object, "Nodes")?;
    let at = object.at.key("Nodes");
    let elements = reader.array(value, &at)?;
    let read = |(index, value)| node(reader, value, index, &at.index(index));
    Some(elements.iter().enumerate().map(read).collect())
}

fn node(
    reader: &mut Reader<'_>,
    value: &irc_json::Node<'_>,
    index: usize,
    at: &At<'_>,
) -> PartialNode {
    let (offset, len) = (value.span().start, value.span().len());
    let Some(object) = reader.object(value, at) else {
        return PartialNode { edges: None, ops: vec![(OpPlace::Node(index), None)], offset, len };
    };
    check_keys(reader, &object, &["Id", "ProducerNodeIds", "ConsumerNodeIds", "Op", "Ops"]);
    let id = reader
        .required(&object, "Id")
        .and_then(|value| reader.integer(value, &at.key("Id"), "a non-negative integer"));
    let producers = node_ids(reader, &object, "ProducerNodeIds");
    let consumers = node_ids(reader, &object, "ConsumerNodeIds");
    let edges = id.zip(producers).zip(consumers).map(|((id, producers), consumers)| Edges {
        index,
        id,
        producers,
        consumers,
    });
    let ops = ops(reader, &object, index);
    PartialNode { edges, ops, offset, len }
}

fn node_ids(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
) -> Option<Vec<u64>> {
    let value = reader.required(object, key)?;
    integers(reader, value, &object.at.key(key), "a non-negative integer")
}

/// `Op`, or `Ops` of older generations.
fn ops(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    node: usize,
) -> Vec<(OpPlace, Option<Op>)> {
    let Some(list) = object.get("Ops").filter(|_| object.get("Op").is_none()) else {
        let place = OpPlace::Node(node);
        let value = reader.required(object, "Op");
        return vec![(place, value.and_then(|v| read::op(reader, v, &place.at(), &[])))];
    };
    let at = object.at.key("Ops");
    let Some(elements) = reader.array(list, &at) else {
        return vec![(OpPlace::Node(node), None)];
    };
    accepted(reader, "`Ops` is read as a chain of nodes of one op each", list, &at);
    if elements.is_empty() {
        let diagnostic = Diagnostic::error("ark-arity", "a node needs at least one op");
        reader.report(diagnostic, list.span(), &at, "no op here");
        return vec![(OpPlace::Node(node), None)];
    }
    let read = |(index, value)| {
        let place = OpPlace::NodeOps(node, index);
        (place, read::op(reader, value, &place.at(), &[]))
    };
    elements.iter().enumerate().map(read).collect()
}

/// Validates the readable parts.
fn check(ranks: Option<(i64, i64)>, nodes: &[PartialNode]) -> Vec<Diagnostic> {
    let readable = |(place, op): &'_ (OpPlace, Option<Op>)| Some((*place, op.clone()?));
    let ops: Vec<(OpPlace, Op)> = nodes.iter().flat_map(|n| &n.ops).filter_map(readable).collect();
    let ops: Vec<(OpPlace, &Op)> = ops.iter().map(|(place, op)| (*place, op)).collect();
    let edges: Option<Vec<Edges>> = nodes.iter().map(|node| node.edges.clone()).collect();
    validate::check(ranks, &ops, edges.as_deref())
}

/// One node for each op; `None` if any part could not be read.
///
/// A node with several ops becomes a chain: edges into it lead to its first op, edges out of it
/// start at its last. Ids are then renumbered.
fn flatten(partial: Vec<PartialNode>, text: &str) -> Option<(Vec<Node>, Vec<Origin>)> {
    let is_flat = partial.iter().all(|node| node.ops.len() == 1);
    let mut ends = std::collections::BTreeMap::new();
    let mut count = 0;
    for node in &partial {
        let len = node.ops.len() as u64;
        ends.insert(node.edges.as_ref()?.id, (count, count + len - 1));
        count += len;
    }
    let first = |ids: &[u64]| ids.iter().filter_map(|id| ends.get(id)).map(|e| e.0).collect();
    let last = |ids: &[u64]| ids.iter().filter_map(|id| ends.get(id)).map(|e| e.1).collect();
    let mut lines = Lines::new(text);
    let (mut nodes, mut origins) = (vec![], vec![]);
    for PartialNode { edges, ops, offset, len } in partial {
        let Edges { id, producers, consumers, .. } = edges?;
        let (line, column) = lines.advance(offset);
        let count = ops.len();
        for (index, (place, op)) in ops.into_iter().enumerate() {
            origins.push(Origin { place, offset, len, line, column });
            let op = op?;
            if is_flat {
                let (producers, consumers) = (producers.clone(), consumers.clone());
                nodes.push(Node { id, producers, consumers, op });
                continue;
            }
            let id = nodes.len() as u64;
            let producers = if index == 0 { last(&producers) } else { vec![id - 1] };
            let consumers = if index + 1 == count { first(&consumers) } else { vec![id + 1] };
            nodes.push(Node { id, producers, consumers, op });
        }
    }
    Some((nodes, origins))
}
