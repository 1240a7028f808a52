//! The memory of the caller that inputs and outputs are bound to, and whether a run may use it.
use crate::Interface;
use std::collections::BinaryHeap;

/// Bound memory: the addresses of its first byte and of the one after the last, and the number of the port.
type Span = (usize, usize, usize);

/// The bound memory of a context.
pub struct Spans {
    /// By port: inputs, then outputs.
    bound: Vec<Option<(usize, usize)>>,
    inputs: usize,
    /// For each input, the output that may be in its memory.
    updated: Vec<Option<usize>>,
    /// Room for those of all ports.
    sorted: Vec<Span>,
    is_checked: bool,
}

impl Spans {
    /// Nothing bound.
    pub fn new(interface: &Interface) -> Self {
        let inputs = interface.inputs.len();
        let count = inputs + interface.outputs.len();
        let sorted = Vec::with_capacity(count);
        let mut updated = vec![None; inputs];
        for (output, input) in interface.updates().into_iter().enumerate() {
            if let Some(input) = input {
                updated[input] = Some(inputs + output);
            }
        }
        Self { bound: vec![None; count], inputs, updated, sorted, is_checked: true }
    }

    /// Binds a port to so many bytes, or to none.
    pub fn bind(&mut self, port: usize, memory: Option<(*const u8, usize)>) {
        self.bound[port] = memory.map(|(start, bytes)| (start as usize, start as usize + bytes));
        self.is_checked = false;
    }

    /// The memory of a port: its address and its bytes.
    pub fn of(&self, port: usize) -> Option<(usize, usize)> {
        self.bound[port].map(|(start, end)| (start, end - start))
    }

    /// An output, and another port whose memory it overlaps: there is none unless it is exactly that of the input whose
    /// elements it replaces. Allocates nothing.
    pub fn conflict(&mut self) -> Option<(usize, usize)> {
        if self.is_checked {
            return None;
        }
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        for (port, bound) in self.bound.iter().enumerate() {
            let Some((start, end)) = *bound else { continue };
            // An input in the memory of the output that updates it is part of that.
            let updated = self.updated.get(port).copied().flatten();
            if start < end && updated.is_none_or(|output| self.bound[output] != *bound) {
                sorted.push((start, end, port));
            }
        }
        // Sorts in place; its code is smaller than that of `sort`.
        let sorted = BinaryHeap::from(sorted).into_sorted_vec();
        let found = overlapping(&sorted, self.inputs);
        self.sorted = sorted;
        self.is_checked = found.is_none();
        found
    }
}

/// An output that overlaps another port, of spans in the order of addresses.
fn overlapping(sorted: &[Span], inputs: usize) -> Option<(usize, usize)> {
    let mut furthest: [Option<(usize, usize)>; 2] = [None; 2];
    for (start, end, port) in sorted {
        let is_output = *port >= inputs;
        for (kind, before) in furthest.iter().enumerate() {
            let overlaps = before.filter(|(reach, _)| reach > start && (is_output || kind == 1));
            if let Some((_, other)) = overlaps {
                return Some(if is_output { (*port, other) } else { (other, *port) });
            }
        }
        let reach = &mut furthest[usize::from(is_output)];
        *reach = (*reach).max(Some((*end, *port)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Port;

    /// The conflict of three inputs and two outputs, of which the first updates input 0, at these addresses.
    fn conflict(spans: [(usize, usize); 5]) -> Option<(usize, usize)> {
        let port = |name: &str| Port { name: name.into(), ..Port::default() };
        let updating = Port { updates: Some("a".into()), ..port("d") };
        let interface = Interface {
            inputs: vec![port("a"), port("b"), port("c")],
            outputs: vec![updating, port("e")],
            ..Interface::default()
        };
        let mut own = Spans::new(&interface);
        for (port, (start, bytes)) in spans.into_iter().enumerate() {
            own.bind(port, Some((start as *const u8, bytes)));
        }
        own.conflict()
    }

    #[test]
    fn inputs_share_memory_and_an_update_is_in_that_of_its_input() {
        assert_eq!(conflict([(64, 64), (128, 64), (128, 32), (192, 64), (256, 64)]), None);
        assert_eq!(conflict([(64, 64), (128, 64), (128, 64), (64, 64), (256, 64)]), None);
    }

    #[test]
    fn other_overlaps_are_found() {
        let apart = [(64, 64), (128, 64), (192, 64), (256, 64), (320, 64)];
        for (port, memory, found) in [
            (4, (64, 64), (4, 0)),
            (3, (64, 128), (3, 0)),
            (3, (96, 32), (3, 0)),
            (4, (256, 64), (4, 3)),
            (1, (256, 256), (3, 1)),
        ] {
            let mut spans = apart;
            spans[port] = memory;
            let overlap = conflict(spans).expect("an overlap");
            assert_eq!(overlap, found, "port {port} at {memory:?}");
        }
        // An input beside the one that is updated.
        assert_eq!(conflict([(64, 64), (64, 64), (192, 64), (64, 64), (320, 64)]), Some((3, 1)));
    }
}
