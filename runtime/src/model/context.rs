//! The state with which one thread runs a model.
use super::{
    Kind, Model, ModelError,
    compiled::{FixedContext, SizedContext, bytes},
    graph::GraphContext,
    options::ContextOptions,
    spans::Spans,
    unknown,
};
use crate::{Pool, Port};
use irc_tensor::ALIGNMENT;
use std::sync::Arc;

/// The memory to run a model with, for one thread at a time.
///
/// Inputs retain their contents between runs; inputs that were never set are zero.
pub struct Context {
    kind: ContextKind,
    /// Number of bytes of inputs, then of outputs; `None` if it depends on the inputs.
    bytes: Vec<Option<usize>>,
    spans: Spans,
    options: ContextOptions,
    // Dropped last: code and parameters belong to the model.
    model: Arc<Model>,
}

enum ContextKind {
    Graph(GraphContext),
    Fixed(FixedContext),
    Sized(SizedContext),
}

/// An input or output, by number.
#[derive(Clone, Copy)]
enum PortIndex {
    Input(usize),
    Output(usize),
}

impl Context {
    /// A context of a model.
    ///
    /// # Errors
    /// [`ModelError::Memory`]; [`ModelError::Library`] if the constants are not in the library, or there is no GPU for a
    /// kernel.
    pub fn new(model: &Arc<Model>, options: &ContextOptions) -> Result<Self, ModelError> {
        let kind = match &model.kind {
            Kind::Graph(graph) => ContextKind::Graph(GraphContext::new(graph, options)?),
            Kind::Compiled(library) if library.interface().is_sized() => {
                ContextKind::Sized(SizedContext::new(library, options)?)
            }
            Kind::Compiled(library) => ContextKind::Fixed(FixedContext::new(library, options)?),
        };
        let interface = model.interface();
        let sizes = match &model.kind {
            Kind::Graph(graph) => graph.port_bytes().into_iter().map(Some).collect(),
            Kind::Compiled(_) => {
                interface.inputs.iter().chain(&interface.outputs).map(bytes).collect()
            }
        };
        let (spans, options) = (Spans::new(interface), options.clone());
        Ok(Context { kind, bytes: sizes, spans, options, model: model.clone() })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Runs later calls on other threads; results do not depend on them.
    ///
    /// # Errors
    /// [`ModelError::Memory`]: the context then keeps its threads.
    pub fn set_pool(&mut self, pool: Arc<dyn Pool>) -> Result<(), ModelError> {
        let options = ContextOptions { pool, ..self.options.clone() };
        match &mut self.kind {
            ContextKind::Graph(context) => context.set_threads(&options),
            ContextKind::Fixed(context) => context.set_threads(&options),
            ContextKind::Sized(context) => context.set_threads(&options),
        }?;
        self.options = options;
        Ok(())
    }

    /// Copies bytes to an input of known size.
    ///
    /// # Errors
    /// [`ModelError::Unknown`]; [`ModelError::Buffer`] if the number of bytes differs.
    pub fn set_input(&mut self, input: usize, bytes: &[u8]) -> Result<(), ModelError> {
        let memory = self.input_mut(input)?;
        if memory.len() != bytes.len() {
            return Err(self.wrong(PortIndex::Input(input), format!("{} bytes", bytes.len())));
        }
        memory.copy_from_slice(bytes);
        Ok(())
    }

    /// Copies bytes to an input with a shape, for models whose sizes depend on their inputs.
    ///
    /// # Errors
    /// [`ModelError::Unknown`]; [`ModelError::Buffer`] if the input does not accept the shape, or the
    /// number of bytes differs.
    pub fn set_input_shaped(
        &mut self,
        input: usize,
        shape: &[i64],
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        self.check_shape(input, shape)?;
        self.spans.bind(input, None);
        let ContextKind::Sized(context) = &mut self.kind else {
            return self.set_input(input, bytes);
        };
        let memory = context.reserve(input, shape)?;
        if memory.len() != bytes.len() {
            return Err(self.wrong(PortIndex::Input(input), format!("{} bytes", bytes.len())));
        }
        memory.copy_from_slice(bytes);
        Ok(())
    }

    /// The context's own memory of an input, to be written in place. This ends a binding of the input.
    ///
    /// # Errors
    /// [`ModelError::Unknown`]; [`ModelError::Buffer`] if its size is unknown.
    pub fn input_mut(&mut self, input: usize) -> Result<&mut [u8], ModelError> {
        let Some(bytes) = self.size(PortIndex::Input(input))? else {
            return Err(self.wrong(PortIndex::Input(input), "no shape".into()));
        };
        self.spans.bind(input, None);
        let memory = match &mut self.kind {
            ContextKind::Graph(context) => {
                context.bind(input, None);
                context.pointer(input)
            }
            ContextKind::Fixed(context) => {
                context.bind(input, None);
                context.pointer(input)
            }
            ContextKind::Sized(context) => {
                let shape = &self.model.interface().inputs[input].shape;
                return context.reserve(input, shape);
            }
        };
        // Safety: the memory belongs to the context, and has the size of the input.
        Ok(unsafe { std::slice::from_raw_parts_mut(memory, bytes) })
    }

    /// Binds an input to memory of the caller, which is read in place. The model does not write there.
    ///
    /// # Errors
    /// [`ModelError::Unknown`]; [`ModelError::Buffer`] if the memory is not aligned to 64, or the
    /// number of bytes differs.
    ///
    /// # Safety
    /// The memory must be valid, and not written to during a run, until the context or the binding ends.
    pub unsafe fn bind_input(
        &mut self,
        input: usize,
        memory: *const u8,
        bytes: usize,
    ) -> Result<(), ModelError> {
        let which = PortIndex::Input(input);
        if self.size(which)?.is_none() {
            return Err(self.wrong(which, "no shape".into()));
        }
        self.check_memory(which, memory, bytes)?;
        self.bind(which, memory.cast_mut(), bytes)
    }

    /// Like [`Context::bind_input`], for models whose sizes depend on their inputs.
    ///
    /// # Errors
    /// As [`Context::bind_input`]; [`ModelError::Buffer`] if the input does not accept the shape.
    ///
    /// # Safety
    /// As [`Context::bind_input`].
    pub unsafe fn bind_input_shaped(
        &mut self,
        input: usize,
        shape: &[i64],
        memory: *const u8,
        bytes: usize,
    ) -> Result<(), ModelError> {
        self.check_shape(input, shape)?;
        let which = PortIndex::Input(input);
        let ContextKind::Sized(context) = &self.kind else {
            self.check_memory(which, memory, bytes)?;
            return self.bind(which, memory.cast_mut(), bytes);
        };
        let expected = context.check(input, shape)?.byte_size().unwrap_or(usize::MAX);
        if expected != bytes {
            return Err(self.wrong(which, format!("{bytes} bytes")));
        }
        self.check_aligned(which, memory)?;
        self.spans.bind(input, Some((memory, bytes)));
        let ContextKind::Sized(context) = &mut self.kind else { return Ok(()) };
        context.bind(input, shape, memory.cast_mut())
    }

    /// Binds an output to memory of the caller. An output with [`Port::updates`] may be bound to the memory of that
    /// input: the run then writes only the elements that it replaces. [`Context::run`] checks that no output otherwise
    /// overlaps an input or another output.
    ///
    /// # Errors
    /// As [`Context::bind_input`]; outputs of models whose sizes depend on their inputs cannot be bound, but for those with
    /// [`Port::updates`].
    ///
    /// # Safety
    /// The memory must be valid, and not accessed elsewhere during a run, until the context or the
    /// binding ends.
    pub unsafe fn bind_output(
        &mut self,
        output: usize,
        memory: *mut u8,
        bytes: usize,
    ) -> Result<(), ModelError> {
        let which = PortIndex::Output(output);
        self.check_memory(which, memory, bytes)?;
        let port = self.port(which);
        if let ContextKind::Sized(_) = self.kind {
            if self.model.interface().outputs[output].updates.is_none() {
                let found = "memory, of a model that makes its outputs itself".to_owned();
                return Err(self.wrong(which, found));
            }
            self.spans.bind(port, Some((memory, bytes)));
            return Ok(());
        }
        self.bind(which, memory, bytes)
    }

    /// Ends the binding of an output: it uses the context's own memory again.
    ///
    /// # Errors
    /// [`ModelError::Unknown`].
    pub fn unbind_output(&mut self, output: usize) -> Result<(), ModelError> {
        self.size(PortIndex::Output(output))?;
        let port = self.port(PortIndex::Output(output));
        self.spans.bind(port, None);
        match &mut self.kind {
            ContextKind::Graph(context) => context.bind(port, None),
            ContextKind::Fixed(context) => context.bind(port, None),
            ContextKind::Sized(_) => {}
        }
        Ok(())
    }

    /// Runs the model. Only models whose sizes depend on their inputs allocate memory.
    ///
    /// # Errors
    /// [`ModelError::Failed`] and [`ModelError::Library`]: the error of the code. The contents of
    /// outputs are then undefined. [`ModelError::Buffer`] if the memory of an output overlaps that of another port, other
    /// than [`Context::bind_output`] allows; the model has not run then.
    pub fn run(&mut self) -> Result<(), ModelError> {
        if let Some((output, other)) = self.spans.conflict() {
            return Err(self.overlap(output, other));
        }
        self.place_outputs()?;
        match &mut self.kind {
            ContextKind::Graph(context) => context.run().map_err(|(step, message)| {
                let node = match &self.model.kind {
                    Kind::Graph(model) => model.node(step),
                    Kind::Compiled(_) => "",
                };
                ModelError::Failed { node: node.to_owned(), message }
            }),
            ContextKind::Fixed(context) => context.run(),
            ContextKind::Sized(context) => context.run(),
        }
    }

    /// The contents of an output after the last run.
    ///
    /// # Errors
    /// [`ModelError::Unknown`]; [`ModelError::Buffer`] if its size is unknown before the first run.
    pub fn output(&self, output: usize) -> Result<&[u8], ModelError> {
        let which = PortIndex::Output(output);
        let size = self.size(which)?;
        let memory = match &self.kind {
            ContextKind::Graph(context) => context.pointer(self.port(which)),
            ContextKind::Fixed(context) => context.pointer(self.port(which)),
            ContextKind::Sized(context) => {
                let found = context.output(output);
                let (_, bytes) = found.ok_or_else(|| self.wrong(which, "no run".into()))?;
                return Ok(bytes);
            }
        };
        let bytes = size.ok_or_else(|| self.wrong(which, "no shape".into()))?;
        // Safety: the memory has the size of the output, and belongs to the context or is bound to it.
        Ok(unsafe { std::slice::from_raw_parts(memory, bytes) })
    }

    /// The extents of an output; if sizes depend on the inputs, those of the last run.
    ///
    /// # Errors
    /// As [`Context::output`].
    pub fn output_shape(&self, output: usize) -> Result<&[i64], ModelError> {
        let which = PortIndex::Output(output);
        self.size(which)?;
        let ContextKind::Sized(context) = &self.kind else {
            return Ok(&self.model.interface().outputs[output].shape);
        };
        let found = context.output(output);
        Ok(found.ok_or_else(|| self.wrong(which, "no run".into()))?.0)
    }

    /// Number of bytes of memory that the context has between runs.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            ContextKind::Graph(context) => context.bytes(),
            ContextKind::Fixed(context) => context.bytes(),
            ContextKind::Sized(context) => context.bytes(),
        }
    }

    /// Maximum number of bytes of workspace that one thread used at once, in multiples of 64; 0 for
    /// libraries, which do not report it.
    pub fn workspace_peak(&mut self) -> usize {
        match &mut self.kind {
            ContextKind::Graph(context) => context.workspace_peak(),
            ContextKind::Fixed(_) | ContextKind::Sized(_) => 0,
        }
    }

    /// The index of an input or output among all ports.
    fn port(&self, which: PortIndex) -> usize {
        match which {
            PortIndex::Input(input) => input,
            PortIndex::Output(output) => self.model.interface().inputs.len() + output,
        }
    }

    fn ports(&self, which: PortIndex) -> (&'static str, &[Port], usize) {
        let interface = self.model.interface();
        match which {
            PortIndex::Input(input) => ("input", &interface.inputs, input),
            PortIndex::Output(output) => ("output", &interface.outputs, output),
        }
    }

    /// Number of bytes of an input or output, if known.
    fn size(&self, which: PortIndex) -> Result<Option<usize>, ModelError> {
        let (kind, ports, number) = self.ports(which);
        if number >= ports.len() {
            return Err(unknown(kind, ports, &number.to_string()));
        }
        Ok(self.bytes[self.port(which)])
    }

    fn wrong(&self, which: PortIndex, found: String) -> ModelError {
        let (kind, ports, number) = self.ports(which);
        let port = &ports[number];
        let expected = match self.bytes[self.port(which)] {
            Some(bytes) => format!("{bytes} bytes, {}", port.type_text()),
            None => port.type_text(),
        };
        ModelError::Buffer { port: format!("{kind} '{}'", port.name), expected, found }
    }

    /// The error of an output in memory of another port.
    fn overlap(&self, output: usize, other: usize) -> ModelError {
        let interface = self.model.interface();
        let inputs = interface.inputs.len();
        let port = &interface.outputs[output - inputs];
        let found = match interface.inputs.get(other) {
            Some(input) => format!("memory that overlaps input '{}'", input.name),
            None => {
                format!("memory that overlaps output '{}'", interface.outputs[other - inputs].name)
            }
        };
        let expected = match &port.updates {
            Some(input) => format!("memory of its own, or all of that of input '{input}'"),
            None => "memory of its own".to_owned(),
        };
        ModelError::Buffer { port: format!("output '{}'", port.name), expected, found }
    }

    /// Places the bound outputs of a model that makes its outputs itself: in the memory of the inputs that they update.
    fn place_outputs(&mut self) -> Result<(), ModelError> {
        let ContextKind::Sized(context) = &mut self.kind else { return Ok(()) };
        let interface = self.model.interface();
        let inputs = interface.inputs.len();
        for (output, port) in interface.outputs.iter().enumerate() {
            let memory = self.spans.of(inputs + output);
            let Some(input) = context.place(output, memory) else { continue };
            if memory.is_some() && memory != self.spans.of(input) {
                let expected =
                    format!("all of the memory of input '{}'", interface.inputs[input].name);
                let found = "other memory".to_owned();
                return Err(ModelError::Buffer {
                    port: format!("output '{}'", port.name),
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    fn check_shape(&self, input: usize, shape: &[i64]) -> Result<(), ModelError> {
        self.size(PortIndex::Input(input))?;
        let port = &self.model.interface().inputs[input];
        let fits = |(expected, found): (&i64, &i64)| *expected < 0 || expected == found;
        if port.shape.len() == shape.len() && port.shape.iter().zip(shape).all(fits) {
            return Ok(());
        }
        Err(self.wrong(PortIndex::Input(input), format!("{}{shape:?}", port.dtype)))
    }

    fn check_memory(
        &self,
        which: PortIndex,
        memory: *const u8,
        bytes: usize,
    ) -> Result<(), ModelError> {
        if self.size(which)?.is_some_and(|expected| expected != bytes) {
            return Err(self.wrong(which, format!("{bytes} bytes")));
        }
        self.check_aligned(which, memory)
    }

    fn check_aligned(&self, which: PortIndex, memory: *const u8) -> Result<(), ModelError> {
        if memory.is_null() || !(memory as usize).is_multiple_of(ALIGNMENT) {
            return Err(
                self.wrong(which, format!("memory at {memory:?}, not aligned to {ALIGNMENT}"))
            );
        }
        Ok(())
    }

    fn bind(&mut self, which: PortIndex, memory: *mut u8, bytes: usize) -> Result<(), ModelError> {
        let port = self.port(which);
        self.spans.bind(port, Some((memory, bytes)));
        match &mut self.kind {
            ContextKind::Graph(context) => context.bind(port, Some(memory)),
            ContextKind::Fixed(context) => context.bind(port, Some(memory)),
            ContextKind::Sized(context) => {
                let shape = &self.model.interface().inputs[port].shape;
                return context.bind(port, shape, memory);
            }
        }
        Ok(())
    }
}
