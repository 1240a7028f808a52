//! Imports the text of a file to ops.
use super::{
    nested::{
        AS, Container, ID, KEYS, Nested, OTHERS, SINGLE, is_attribute, is_whole, under, usual,
    },
    values::{pairs, to_attribute},
};
use irc_diag::{Sink, Source};
use irc_gemini_format::{FileKind, tree};
use irc_json::{At, Json, Member, Node, Value};
use irc_mlir::{
    Attribute, Block, BlockLike, BlockRef, Context, Location, OpSpec, Operation, OperationRef,
    attr, region_of,
};

/// Appends the op of a valid file to a block. Locations hold the JSON
/// path and the position in the file.
///
/// Returns `None`, after diagnostics, if the text is not JSON.
pub fn import<'c: 'a, 'a>(
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    source: &Source,
    kind: FileKind,
    sink: &mut Sink,
) -> Option<OperationRef<'c, 'a>> {
    let lines = source.lines();
    let place = |node: &Node<'_>, at: &At<'_>| {
        let (line, column) = lines.line_column(node.span().start);
        let place = Location::new(context, source.name(), line, column);
        Location::name(context, &at.to_string(), place)
    };
    append(context, block, source, kind, &place, sink)
}

/// Appends the op of a generated file, with one location for all ops: for passes
/// that create a [`Schedule`](irc_gemini_format::schedule::Schedule).
///
/// # Panics
/// If the text is not JSON.
pub fn build<'c: 'a, 'a>(
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    text: &str,
    kind: FileKind,
    location: Location<'c>,
) -> OperationRef<'c, 'a> {
    let source = Source::new("", text);
    let place = |_: &Node<'_>, at: &At<'_>| Location::name(context, &at.to_string(), location);
    append(context, block, &source, kind, &place, &mut Sink::new()).expect("generated JSON")
}

type Place<'p, 'c> = &'p dyn Fn(&Node<'_>, &At<'_>) -> Location<'c>;

fn append<'c: 'a, 'a>(
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    source: &Source,
    kind: FileKind,
    place: Place<'_, 'c>,
    sink: &mut Sink,
) -> Option<OperationRef<'c, 'a>> {
    context.get_or_load_dialect("gemini");
    let tree = tree(source, sink)?;
    let importer = Importer { context, place };
    let name = match kind {
        FileKind::Schedule => "gemini.schedule",
        FileKind::Frontend => "gemini.frontend",
    };
    Some(block.append_operation(importer.object(name, &tree, &At::ROOT, &[])))
}

/// A builder of ops from objects.
struct Importer<'p, 'c> {
    context: &'c Context,
    place: Place<'p, 'c>,
}

impl<'c> Importer<'_, 'c> {
    /// The op of an object, with these additional attributes.
    fn object(
        &self,
        name: &str,
        node: &Node<'_>,
        at: &At<'_>,
        beside: &[(&str, Attribute<'c>)],
    ) -> Operation<'c> {
        let context = self.context;
        let mut spec = OpSpec::new(context, name, (self.place)(node, at));
        for (name, value) in beside {
            spec = spec.attr(name, *value);
        }
        let (body, mut others) = (Block::new(&[]), vec![]);
        let members = members_of(node);
        for member in members {
            let (key, at) = (&*member.key, at.key(&member.key));
            if self.nest(name, member, &at, &body) {
                continue;
            }
            let value = Json::of(&member.value);
            match is_attribute(key) {
                true => spec = spec.attr(key, to_attribute(context, &value)),
                false => others.push((key.into(), value)),
            }
        }
        if !others.is_empty() {
            spec = spec.attr(OTHERS, pairs(context, &others));
        }
        if !members.is_sorted_by(|a, b| a.key < b.key) {
            let keys: Vec<_> =
                members.iter().map(|member| attr::string(context, &member.key)).collect();
            spec = spec.attr(KEYS, attr::array(context, &keys));
        }
        match is_whole(name) {
            true => spec.region(region_of(body)).build(),
            false => spec.build(),
        }
    }

    /// Appends the ops of the value of a key to a block; returns false if it is an attribute.
    fn nest(&self, parent: &str, member: &Member<'_>, at: &At<'_>, body: &Block<'c>) -> bool {
        let (key, value) = (&*member.key, &member.value);
        let core = key.parse::<u32>().ok().filter(|core| core.to_string() == key);
        match (parent, core, under(parent, key)) {
            ("gemini.schedule", Some(core), _) => self.core(core, value, at, body),
            ("gemini.frontend", ..) => {
                let id = [(ID, attr::string(self.context, key))];
                is_object(value) && append_to(body, self.object("gemini.layer", value, at, &id))
            }
            (_, _, Some(nested)) => self.nested(nested, value, at, body),
            _ => false,
        }
    }

    fn core(&self, id: u32, value: &Node<'_>, at: &At<'_>, body: &Block<'c>) -> bool {
        let Some(workloads) = objects(value) else { return false };
        let block = Block::new(&[]);
        for (index, workload) in workloads.iter().enumerate() {
            let op = self.object("gemini.workload", workload, &at.index(index), &[]);
            block.append_operation(op);
        }
        let spec = OpSpec::new(self.context, "gemini.core", (self.place)(value, at))
            .attr(ID, attr::i64(self.context, id.into()))
            .region(region_of(block));
        append_to(body, spec.build())
    }

    fn nested(&self, nested: &Nested, value: &Node<'_>, at: &At<'_>, body: &Block<'c>) -> bool {
        let Nested { parent, key, child, container } = *nested;
        let context = self.context;
        let mut beside = vec![];
        if usual(parent, child).is_none_or(|usual| usual.key != key) {
            beside.push((AS, attr::string(context, key)));
        }
        match container {
            Container::Alone => {
                is_object(value) && append_to(body, self.object(child, value, at, &beside))
            }
            Container::List if is_object(value) => {
                beside.push((SINGLE, attr::unit(context)));
                append_to(body, self.object(child, value, at, &beside))
            }
            Container::List => {
                let Some(elements) = objects(value).filter(|all| !all.is_empty()) else {
                    return false;
                };
                for (index, element) in elements.iter().enumerate() {
                    append_to(body, self.object(child, element, &at.index(index), &beside));
                }
                true
            }
            Container::Map => {
                let members = members_of(value);
                if members.is_empty() || !members.iter().all(|member| is_object(&member.value)) {
                    return false;
                }
                for Member { key, value, .. } in members {
                    let id = (ID, attr::string(context, key));
                    let beside: Vec<_> = beside.iter().copied().chain([id]).collect();
                    append_to(body, self.object(child, value, &at.key(key), &beside));
                }
                true
            }
        }
    }
}

fn members_of<'n, 't>(node: &'n Node<'t>) -> &'n [Member<'t>] {
    match &node.value {
        Value::Object(members) => members,
        _ => &[],
    }
}

fn is_object(node: &Node<'_>) -> bool {
    matches!(node.value, Value::Object(_))
}

/// The elements of a list of objects.
fn objects<'n, 't>(node: &'n Node<'t>) -> Option<&'n [Node<'t>]> {
    match &node.value {
        Value::Array(elements) if elements.iter().all(is_object) => Some(elements),
        _ => None,
    }
}

fn append_to<'c>(block: &Block<'c>, op: Operation<'c>) -> bool {
    block.append_operation(op);
    true
}
