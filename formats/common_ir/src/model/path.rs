//! Paths of items: `graph.node[3].attribute[axis]`.

use std::fmt;

/// A path in a module: a list of steps linked to the root, formatted only when displayed.
///
/// The steps are: `graph` or `function[i]` or `operator[i]` or `import[i]` or `opset[i]` or
/// `metadata.name` and so on from the root; from a graph or function `input[i]`, `output[i]`,
/// `value[i]`, `initializer[i]`, `sparse_initializer[i]`, `node[i]`, `attribute[name]`; from a node
/// `input[i]`, `output[i]`, `attribute[name]`, `arg_count[i]`, `control_input[i]`,
/// `input_type[i]`, `output_type[i]`; from an attribute the field that holds its value, as
/// [`super::AttributeKind::field`] names it (`g`, `graphs[1]`, `t`); from an operator
/// `signature[i]`, then `input[i]`, `output[i]`, `attribute[i]`; from a value `type`,
/// `shape.dim[i]`, `doc`.
#[derive(Clone, Copy, Debug)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Index(&'p str, usize),
    Key(&'p str, &'p str),
}

impl<'p> Path<'p> {
    /// The whole module.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };
    /// Its graph.
    pub const GRAPH: Path<'static> = Path { parent: None, step: Step::Field("graph") };

    /// A single item: `graph`, `type`.
    pub fn field(&'p self, name: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// An item of a list: `node[3]`.
    pub fn index(&'p self, name: &'p str, index: usize) -> Path<'p> {
        Path { parent: Some(self), step: Step::Index(name, index) }
    }

    /// A named item of a list: `attribute[axis]`.
    pub fn key(&'p self, name: &'p str, key: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Key(name, key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut dot = "";
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            dot = if matches!(parent.step, Step::Root) { "" } else { "." };
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => write!(f, "{dot}{name}"),
            Step::Index(name, index) => write!(f, "{dot}{name}[{index}]"),
            Step::Key(name, key) => write!(f, "{dot}{name}[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_as_paths() {
        let node = Path::GRAPH.index("node", 3);
        assert_eq!(node.key("attribute", "axis").to_string(), "graph.node[3].attribute[axis]");
        assert_eq!(Path::ROOT.index("function", 0).to_string(), "function[0]");
    }
}
