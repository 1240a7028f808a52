//! Writes models in ARK's own layout: two spaces per level, tensors and arguments on one line.

use std::fmt::{Display, Write};

use irc_json::write_string;

use super::number::write_float;
use super::{Arg, Buffer, Model, Node, Op, Tensor};

/// A text buffer; formatting into it cannot fail.
#[derive(Default)]
pub(crate) struct Text(pub String);

impl Text {
    /// Appends text.
    pub fn raw(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    /// Appends a printable value.
    pub fn put(&mut self, value: impl Display) -> &mut Self {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    /// Appends a quoted string.
    pub fn string(&mut self, text: &str) -> &mut Self {
        write_string(&mut self.0, text);
        self
    }

    /// Starts a line with an indentation of `depth` levels.
    pub fn line(&mut self, depth: usize) -> &mut Self {
        self.0.push('\n');
        self.0.extend(std::iter::repeat_n("  ", depth));
        self
    }

    /// Appends `"key": ` on a line of its own.
    pub fn key(&mut self, depth: usize, key: &str) -> &mut Self {
        self.line(depth).string(key).raw(": ")
    }

    /// Appends numbers in brackets on one line.
    pub fn numbers<T: Display>(&mut self, numbers: &[T]) -> &mut Self {
        self.raw("[");
        for (index, number) in numbers.iter().enumerate() {
            self.raw(if index == 0 { "" } else { "," }).put(number);
        }
        self.raw("]")
    }

    /// Appends elements in brackets, each on a new line; `[]` if there are none.
    pub fn block<T>(
        &mut self,
        depth: usize,
        brackets: [&str; 2],
        elements: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.raw(brackets[0]);
        let mut any = false;
        for element in elements {
            self.raw(if any { "," } else { "" }).line(depth + 1);
            write(self, element);
            any = true;
        }
        if any {
            self.line(depth);
        }
        self.raw(brackets[1])
    }
}

/// The model as ARK writes it, byte for byte.
pub fn write(model: &Model) -> String {
    let mut text = Text::default();
    text.raw("{").key(1, "Rank").put(model.rank);
    text.raw(",").key(1, "WorldSize").put(model.world_size);
    text.raw(",").key(1, "Nodes").block(1, ["[", "]"], &model.nodes, node);
    text.raw("\n}\n");
    text.0
}

fn node(text: &mut Text, node: &Node) {
    text.raw("{").key(3, "Id").put(node.id);
    text.raw(",").key(3, "ProducerNodeIds").numbers(&node.producers);
    text.raw(",").key(3, "ConsumerNodeIds").numbers(&node.consumers);
    text.raw(",").key(3, "Op");
    op(text, 3, &node.op, |_| {});
    text.line(2).raw("}");
}

/// Appends an op whose braces are indented by `depth` levels; `extra` appends further keys.
pub(crate) fn op(text: &mut Text, depth: usize, op: &Op, extra: impl FnOnce(&mut Text)) {
    text.raw("{").key(depth + 1, "Type").string(op.kind.name());
    text.raw(",").key(depth + 1, "Name").string(&op.name);
    text.raw(",").key(depth + 1, "IsVirtual").put(op.is_virtual);
    let lists =
        [("ReadTensors", &op.reads), ("WriteTensors", &op.writes), ("ResultTensors", &op.results)];
    for (key, tensors) in lists {
        text.raw(",").key(depth + 1, key).block(depth + 1, ["[", "]"], tensors, tensor);
    }
    text.raw(",").key(depth + 1, "Args").block(
        depth + 1,
        ["{", "}"],
        &op.args,
        |text, (key, arg)| {
            text.string(key).raw(": ");
            argument(text, arg);
        },
    );
    extra(text);
    text.line(depth).raw("}");
}

fn tensor(text: &mut Text, tensor: &Tensor) {
    text.raw("{\"Id\":").put(tensor.id);
    text.raw(",\"DataType\":\"").put(tensor.dtype);
    text.raw("\",\"Shape\":").numbers(&tensor.shape);
    text.raw(",\"Strides\":").numbers(&tensor.strides);
    text.raw(",\"Offsets\":").numbers(&tensor.offsets);
    text.raw(",\"PaddedShape\":").numbers(&tensor.padded_shape);
    text.raw(",\"Buffer\":");
    buffer(text, &tensor.buffer);
    text.raw("}");
}

fn buffer(text: &mut Text, buffer: &Buffer) {
    text.raw("{\"Id\":").put(buffer.id).raw(",\"Rank\":").put(buffer.rank);
    text.raw(",\"SendTags\":");
    tags(text, &buffer.send_tags);
    text.raw(",\"RecvTags\":");
    tags(text, &buffer.recv_tags);
    text.raw("}");
}

fn tags(text: &mut Text, tags: &[[i64; 2]]) {
    text.raw("[");
    for (index, tag) in tags.iter().enumerate() {
        text.raw(if index == 0 { "" } else { "," }).numbers(tag);
    }
    text.raw("]");
}

fn argument(text: &mut Text, arg: &Arg) {
    text.raw("{\"").raw(arg.kind().name()).raw("\":");
    match arg {
        Arg::Int(value) => {
            text.put(value);
        }
        Arg::Int64(value) => {
            text.put(value);
        }
        Arg::Uint32(value) => {
            text.put(value);
        }
        Arg::Uint64(value) => {
            text.put(value);
        }
        Arg::Bool(value) => {
            text.put(value);
        }
        Arg::Float(value) => write_float(&mut text.0, value.0),
        Arg::Dims(dims) => {
            text.numbers(dims);
        }
        Arg::Tensor(value) => tensor(text, value),
        Arg::Offset { buffer_id, value } => {
            text.raw("{\"BufferId\":").put(buffer_id).raw(",\"Value\":").put(value).raw("}");
        }
    }
    text.raw("}");
}
