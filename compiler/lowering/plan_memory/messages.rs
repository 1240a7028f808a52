//! The messages with which a program may end, numbered for its host.
use super::{
    function::{extent_message, output_message, overflow_message},
    homes::{Home, Homes, Purpose},
    program::{Function, Step, Value, call_message, node},
    sizes,
    symbols::{Schedule, extents},
};
use crate::lowering::emit_entry::host;
use irc_mlir::OperationRef;
use irc_runtime::Interface;
use std::collections::BTreeMap;

/// The messages of a program.
#[derive(Default)]
pub struct Messages {
    /// The messages, by number.
    pub texts: Vec<String>,
    numbers: BTreeMap<String, usize>,
    /// Per function: the messages for memory that cannot be allocated.
    memory: BTreeMap<String, BTreeMap<Purpose, usize>>,
}

impl Messages {
    /// The messages of a program whose sizes depend on symbols.
    pub fn new(
        functions: &[Function<'_, '_>],
        (schedules, homes): (&[Schedule], &[Homes]),
        interface: &Interface,
    ) -> Self {
        let mut this = Self::default();
        for message in [host::OUT_OF_MEMORY, host::ITERATIONS, host::ELEMENTS] {
            this.add(message.to_owned());
        }
        let main = &functions[functions.len() - 1];
        let first = extents(&main.types[..main.inputs]);
        for (input, ty) in main.types[..main.inputs].iter().enumerate() {
            for (axis, dim) in ty.dims.iter().enumerate() {
                this.add(extent_message(&interface.inputs, &first, (input, axis), dim));
            }
        }
        for (port, value) in interface.outputs.iter().zip(&main.results) {
            this.add(output_message(&port.name, &main.types[*value]));
        }
        let dims = functions.iter().flat_map(|function| &function.types).flat_map(|ty| &ty.dims);
        for dim in dims.filter(|dim| sizes::may_overflow(dim)) {
            this.add(overflow_message(dim));
        }
        for (step, op) in functions.iter().flat_map(|function| &function.steps) {
            match step {
                Step::Check { message, .. } => this.add(message.clone()),
                Step::Host { function, .. } => this.add(call_message(function, *op)),
                _ => continue,
            };
        }
        for ((function, schedule), homes) in functions.iter().zip(schedules).zip(homes) {
            let producers = Producers::of(function, schedule);
            let purposes = allocated(function, homes).into_iter();
            let texts = purposes.map(|purpose| (purpose, producers.message(purpose)));
            let numbers = texts.map(|(purpose, text)| (purpose, this.add(text))).collect();
            this.memory.insert(function.name.clone(), numbers);
        }
        this
    }

    fn add(&mut self, text: String) -> usize {
        let next = self.texts.len();
        let number = *self.numbers.entry(text.clone()).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }

    /// The number of a message.
    pub fn number(&self, text: &str) -> usize {
        match self.numbers.get(text) {
            Some(number) => *number,
            None => unreachable!("every message is collected before"),
        }
    }

    /// The number of the message for memory of a function that cannot be allocated.
    pub fn memory(&self, function: &str, purpose: Purpose) -> usize {
        let known = self.memory.get(function).and_then(|numbers| numbers.get(&purpose));
        known.copied().unwrap_or_else(|| self.number(host::OUT_OF_MEMORY))
    }
}

/// What a function requests memory for from its host: values with memory of their own, results, those that
/// determine the sizes of slots, and the largest part of the workspace.
fn allocated(function: &Function<'_, '_>, homes: &Homes) -> Vec<Purpose> {
    let own = homes.homes.iter().enumerate().filter(|(_, home)| **home == Home::Own);
    let own = own.map(|(value, _)| value).chain(function.results.iter().copied());
    let slots = homes.slots.iter().flat_map(|slot| slot.bytes.values().copied());
    let largest = homes.largest.map(|(purpose, _)| purpose);
    own.chain(slots).map(Purpose::Value).chain(largest).collect()
}

/// The error message for a workspace that cannot be allocated: its largest part.
pub fn workspace_message(
    function: &Function<'_, '_>,
    schedule: &Schedule,
    homes: &Homes,
) -> Option<String> {
    let (purpose, bytes) = homes.largest?;
    let message = Producers::of(function, schedule).message(purpose);
    Some(format!("{message}, {bytes} bytes"))
}

/// The ops that compute the values of a function.
struct Producers<'f, 'c, 'a> {
    function: &'f Function<'c, 'a>,
    schedule: &'f Schedule,
    ops: BTreeMap<Value, OperationRef<'c, 'a>>,
}

impl<'f, 'c: 'a, 'a> Producers<'f, 'c, 'a> {
    fn of(function: &'f Function<'c, 'a>, schedule: &'f Schedule) -> Self {
        let mut ops = BTreeMap::new();
        for (step, op) in &function.steps {
            ops.extend(step.results().into_iter().map(|value| (value, *op)));
        }
        Self { function, schedule, ops }
    }

    /// The error message for memory that cannot be allocated, with the node that needs it.
    fn message(&self, purpose: Purpose) -> String {
        let (op, text) = match purpose {
            Purpose::Value(value) => {
                let text = format!("the bytes of {}", self.function.types[value]);
                (self.ops.get(&value), text)
            }
            Purpose::Spare(position, _)
            | Purpose::Scratch(position)
            | Purpose::Counter(position) => {
                let (_, op) = &self.function.steps[self.schedule.order[position]];
                (Some(op), "its intermediate values".to_owned())
            }
        };
        let node = op.map(|op| node(*op)).unwrap_or_default();
        format!("{node}expected memory for {text}")
    }
}
