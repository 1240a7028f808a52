//! Locates items of a module in its file.
//!
//! Modules carry no positions. A path is resolved in the file itself, in any encoding:
//! [`Tree`] is the interface that the encodings share, [`names`] maps names of the model to those of
//! the schemas.

mod json;
mod names;
mod text;
mod wire;

use std::borrow::Cow;
use std::ops::Range;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::{Encoding, Form, schema};

pub(crate) use json::excess as json_excess;
pub(crate) use text::{excess as text_excess, names as text_names};
pub(crate) use wire::{excess as wire_excess, explain, unknown_fields};

/// A file as nested fields.
trait Tree {
    /// A message or a value in it.
    type Node<'t>: Clone
    where
        Self: 't;
    /// The outermost message.
    fn root(&self) -> Self::Node<'_>;
    /// The values of a field, in order.
    fn children<'t>(
        &'t self,
        node: &Self::Node<'t>,
        field: &FieldDescriptor,
    ) -> Vec<Self::Node<'t>>;
    /// One of the values of a field, or their number.
    fn child<'t>(
        &'t self,
        node: &Self::Node<'t>,
        field: &FieldDescriptor,
        index: usize,
    ) -> Result<Self::Node<'t>, usize> {
        let children = self.children(node, field);
        let count = children.len();
        children.into_iter().nth(index).ok_or(count)
    }
    /// The bytes of a node.
    fn span(&self, node: &Self::Node<'_>) -> Range<usize>;
    /// The value of a node that is a string.
    fn text<'t>(&'t self, node: &Self::Node<'t>) -> Option<Cow<'t, str>>;
}

/// An index of a file to resolve many paths.
pub(crate) enum Locator<'a> {
    Wire(wire::Wire<'a>, MessageDescriptor),
    Json(json::Json<'a>, MessageDescriptor),
    Text(text::Text<'a>, MessageDescriptor),
}

impl<'a> Locator<'a> {
    /// `None` if the file does not have that form.
    pub(crate) fn new(bytes: &'a [u8], form: Form) -> Option<Self> {
        let root = schema::message(form.root.message());
        Some(match form.encoding {
            Encoding::Binary => Self::Wire(wire::Wire::new(bytes), root),
            Encoding::Json => {
                Self::Json(json::Json::parse(std::str::from_utf8(bytes).ok()?)?, root)
            }
            Encoding::Text => Self::Text(text::Text::parse(std::str::from_utf8(bytes).ok()?), root),
        })
    }

    /// Byte range of the item at a path, or of the closest ancestor that exists.
    pub(crate) fn locate(&self, path: &str) -> Range<usize> {
        match self {
            Self::Wire(tree, root) => tree.span(&follow(tree, root, path).0),
            Self::Json(tree, root) => tree.span(&follow(tree, root, path).0),
            Self::Text(tree, root) => tree.span(&follow(tree, root, path).0),
        }
    }

    /// The node of the file that contains an item, for messages.
    pub(crate) fn node_of(&self, path: &str) -> Option<String> {
        let start = path.rfind("node[").filter(|at| *at == 0 || path[..*at].ends_with('.'))?;
        let end = start + path[start..].find(']')? + 1;
        let text = |field: &str| self.text(&format!("{}.{field}", &path[..end]));
        let op = text("op").or_else(|| text("op_type")).unwrap_or_default();
        let name = text("name").filter(|name| !name.is_empty())?;
        Some(if op.is_empty() { format!("node `{name}`") } else { format!("node `{name}` ({op})") })
    }

    /// The text at a path, if it exists.
    fn text(&self, path: &str) -> Option<String> {
        match self {
            Self::Wire(tree, root) => text_at(tree, root, path),
            Self::Json(tree, root) => text_at(tree, root, path),
            Self::Text(tree, root) => text_at(tree, root, path),
        }
    }
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step<'p> {
    name: &'p str,
    pick: Selector<'p>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selector<'p> {
    Only,
    Index(usize),
    Key(&'p str),
}

/// The steps of `graph.node[3].attribute[axis]`.
fn steps(path: &str) -> Vec<Step<'_>> {
    let mut rest = path;
    let mut steps = vec![];
    while !rest.is_empty() {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let mut pick = Selector::Only;
        if let Some(inner) = rest.strip_prefix('[') {
            // A name may hold brackets of its own; the one that ends the step comes before a dot.
            let end = inner.find("].").unwrap_or(inner.len().saturating_sub(1));
            let text = inner.get(..end).unwrap_or(inner);
            pick = text.parse().map_or(Selector::Key(text), Selector::Index);
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        steps.push(Step { name, pick });
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    steps
}

/// The item at a path, or the closest ancestor and false.
fn follow<'t, T: Tree>(tree: &'t T, root: &MessageDescriptor, path: &str) -> (T::Node<'t>, bool) {
    let mut here = (tree.root(), Some(root.clone()));
    let steps = steps(path);
    for (index, step) in steps.iter().enumerate() {
        let Some(message) = &here.1 else { return (here.0, false) };
        let next = steps.get(index + 1).map_or("", |step| step.name);
        let mut pick = step.pick;
        let routes = names::routes(message.full_name(), step.name, next);
        let found = routes.iter().find_map(|route| take(tree, &here.0, message, route, &mut pick));
        let Some(found) = found else { return (here.0, false) };
        here = found;
    }
    (here.0, true)
}

fn text_at<T: Tree>(tree: &T, root: &MessageDescriptor, path: &str) -> Option<String> {
    let (node, is_there) = follow(tree, root, path);
    let text = tree.text(&node).filter(|_| is_there)?;
    Some(text.into_owned())
}

/// A node and, unless it is a scalar, its message.
type Place<'t, T> = (<T as Tree>::Node<'t>, Option<MessageDescriptor>);

/// Follows the fields of a route; the pick counts among all routes of a step.
fn take<'t, T: Tree>(
    tree: &'t T,
    node: &T::Node<'t>,
    message: &MessageDescriptor,
    route: &str,
    pick: &mut Selector<'_>,
) -> Option<Place<'t, T>> {
    let mut here = (node.clone(), Some(message.clone()));
    if route.is_empty() {
        return Some(here);
    }
    let (first, last) = route.rsplit_once('/').unwrap_or(("", route));
    for name in first.split('/').filter(|name| !name.is_empty()) {
        let field = here.1?.get_field_by_name(name)?;
        here = (tree.children(&here.0, &field).into_iter().next()?, of_kind(&field));
    }
    let field = here.1?.get_field_by_name(last)?;
    let found = match pick {
        Selector::Only => tree.child(&here.0, &field, 0).ok(),
        Selector::Key(key) => {
            let mut children = tree.children(&here.0, &field).into_iter();
            children.find(|child| is_named(tree, child, &field, key))
        }
        Selector::Index(index) => match tree.child(&here.0, &field, *index) {
            Ok(child) => Some(child),
            Err(count) => {
                *index -= count;
                None
            }
        },
    };
    Some((found?, of_kind(&field)))
}

fn of_kind(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    match field.kind() {
        Kind::Message(message) => Some(message),
        _ => None,
    }
}

/// Whether a string is equal to a text, or a message has that name.
fn is_named<'t, T: Tree>(
    tree: &'t T,
    node: &T::Node<'t>,
    field: &FieldDescriptor,
    key: &str,
) -> bool {
    let Kind::Message(message) = field.kind() else {
        return tree.text(node).is_some_and(|text| text == key);
    };
    let Some(name) = message.get_field_by_name("name") else { return false };
    let names = tree.children(node, &name);
    names.first().and_then(|name| tree.text(name)).is_some_and(|text| text == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_into_steps() {
        let step = |name, pick| Step { name, pick };
        let found = steps("graph.node[3].attribute[a.b].t");
        let expected = [
            step("graph", Selector::Only),
            step("node", Selector::Index(3)),
            step("attribute", Selector::Key("a.b")),
            step("t", Selector::Only),
        ];
        assert_eq!(found, expected);
        assert_eq!(steps("a[b[0]].c")[0], step("a", Selector::Key("b[0]")));
        assert_eq!(steps("a["), [step("a", Selector::Key(""))]);
        assert_eq!(steps(""), []);
    }
}
