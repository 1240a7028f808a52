//! The interface of a compiled model: named buffers with types, and a workspace.
use irc_diag::Sink;
use irc_json::{At, Format, Node, Object, Reader};
use irc_mlf::params::index;
use irc_tensor::{DType, Strings, TensorType, unescape};
use serde::Serialize;

/// The inputs, outputs and workspace of a compiled model, in the order of its entry's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// The buffers that the caller provides.
    pub inputs: Vec<Port>,
    /// The buffers that the model writes.
    pub outputs: Vec<Port>,
    /// Bytes of scratch memory that the caller provides, aligned to 64.
    pub workspace_bytes: u64,
    /// Bytes of memory for each thread of a run on several, aligned to 64.
    #[serde(skip_serializing_if = "is_zero")]
    pub thread_bytes: u64,
    /// Processor features that the code uses, by LLVM's names.
    pub requires: Vec<String>,
    /// The calling convention: 0 is `irc_run`; [`Interface::SIZED`] is `irc_run_sized`, for models
    /// whose sizes depend on their inputs; [`Interface::CALLS`] is the same with a host that applies
    /// functions; [`Interface::KERNEL`] is a kernel for a GPU.
    #[serde(skip_serializing_if = "is_zero")]
    pub convention: u32,
    /// The messages of checks that may end a run, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The strings whose handles the model's constants hold, by handle, each as [`irc_tensor::escape`]
    /// writes it. Other strings have other handles, which the caller assigns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strings: Vec<String>,
    /// The error message if a large workspace cannot be allocated, which names its largest part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_message: Option<String>,
    /// The functions that the model applies through its host, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<HostCall>,
}

/// A function of the host: see [`irc_host::Function`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostCall {
    /// Its name.
    pub name: String,
    /// Its arguments beside strings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The automata of the regular expressions among the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub automata: Vec<String>,
}

/// A named buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The name in `.npz` files.
    pub name: String,
    /// The element type by its host name: `f32`, `bf16`, `u8`, …
    pub dtype: String,
    /// Extents, outermost first; -1 for an extent that is known only at run time.
    pub shape: Vec<i64>,
    /// For an input: whether the model writes some of it before reading it. The contents are preserved
    /// where nothing is written; random inputs leave it zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub preserved: bool,
    /// If an extent is unknown: all extents, as expressions of named sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// For an input that is a constant of the model: its number among the constants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
    /// For an output: the input whose memory it may be in. It has the elements of the input, of which some are replaced;
    /// if both are in the same memory, only these are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<String>,
}

impl Port {
    /// The element type; `None` if it is unknown.
    pub fn element_type(&self) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == self.dtype)
    }

    /// Whether a tensor has the port's type, as far as the type is known.
    pub fn takes(&self, ty: &TensorType) -> bool {
        let fits = |(expected, found): (&i64, &i64)| *expected < 0 || expected == found;
        ty.dtype.name() == self.dtype
            && ty.shape.len() == self.shape.len()
            && self.shape.iter().zip(&ty.shape).all(fits)
    }

    /// The type as shown in messages: `f32[N,4]`.
    pub fn type_text(&self) -> String {
        let known = self.shape.iter().map(i64::to_string);
        let sizes: Vec<_> =
            if self.sizes.is_empty() { known.collect() } else { self.sizes.clone() };
        format!("{}[{}]", self.dtype, sizes.join(","))
    }

    /// The name and a shape as `--shape` takes them, with 1 for unknown extents: `x=1x4`.
    pub fn example_shape(&self) -> String {
        let extents: Vec<_> = self
            .shape
            .iter()
            .map(|extent| if *extent < 0 { 1 } else { *extent }.to_string())
            .collect();
        format!("{}={}", self.name, extents.join("x"))
    }

    /// The buffer's type; `None` if the element type or an extent is unknown.
    pub fn tensor_type(&self) -> Option<TensorType> {
        let dtype = self.element_type()?;
        if self.shape.iter().any(|extent| *extent < 0) {
            return None;
        }
        Some(TensorType { dtype, shape: self.shape.clone() })
    }
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Interface {
    /// The calling convention of models whose sizes depend on their inputs.
    pub const SIZED: u32 = 1;

    /// The calling convention of models that apply functions of their hosts.
    pub const CALLS: u32 = 2;

    /// The calling convention of models that are a kernel for a GPU, with static sizes.
    pub const KERNEL: u32 = 3;

    /// Whether the model allocates its outputs through a host: sizes depend on the inputs, or functions
    /// of the host are applied.
    pub fn is_sized(&self) -> bool {
        self.convention == Self::SIZED || self.convention == Self::CALLS
    }

    /// For each output, the input that it may be in the memory of, by number.
    pub fn updates(&self) -> Vec<Option<usize>> {
        let inputs = self.inputs.iter().enumerate();
        let numbers = index(inputs.map(|(number, port)| (&*port.name, number)));
        let updated = |port: &Port| numbers.get(port.updates.as_deref()?).copied();
        self.outputs.iter().map(updated).collect()
    }

    /// The functions of the host, by number.
    ///
    /// # Errors
    /// An unknown function; an invalid automaton.
    pub fn functions(&self) -> Result<Vec<irc_host::Function>, String> {
        let function = |HostCall { name, arguments, automata }: &HostCall| {
            irc_host::Function::read_compiled(name, arguments, automata)
        };
        self.calls.iter().map(function).collect()
    }

    /// The table of the strings of the model's constants.
    ///
    /// # Errors
    /// A string that is not escaped correctly, or occurs twice.
    pub fn string_table(&self) -> Result<Strings, String> {
        let mut strings = Strings::default();
        for (handle, text) in self.strings.iter().enumerate() {
            let bytes = unescape(text)
                .ok_or_else(|| format!("string {handle} is not escaped: '{text}'"))?;
            if strings.intern(&bytes) != handle as i64 {
                return Err(format!("string {handle} occurs twice: '{text}'"));
            }
        }
        Ok(strings)
    }

    /// The interface as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads an interface from JSON; unknown keys are ignored.
    ///
    /// # Errors
    /// The first defect of the text, with its location.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut sink = Sink::new();
        let tree = irc_json::tree(text, &FORMAT, &mut sink);
        let read =
            |tree| interface_of(&mut Reader::new(&mut sink, &FORMAT, false), &tree, &At::ROOT);
        let interface = tree.and_then(read);
        let Some(found) = sink.diagnostics().first() else {
            return interface.ok_or_else(String::new);
        };
        let place = found.path.as_deref().unwrap_or("$");
        Err(format!("{} at {place} of its metadata", found.message))
    }
}

/// The names of diagnostics in the metadata of a library; only their messages are shown.
static FORMAT: Format = Format { file: "metadata", ..Format::of("metadata") };

/// The interface in a JSON object.
pub(crate) fn interface_of(r: &mut Reader<'_>, tree: &Node<'_>, at: &At<'_>) -> Option<Interface> {
    let object = r.object(tree, at)?;
    let [inputs, outputs] = ["inputs", "outputs"].map(|key| {
        let ports = r.required(&object, key)?;
        r.list(ports, &object.at.key(key), port)
    });
    r.required(&object, "workspace_bytes")?;
    Some(Interface {
        inputs: inputs?,
        outputs: outputs?,
        workspace_bytes: number(r, &object, "workspace_bytes")?.unwrap_or_default(),
        thread_bytes: number(r, &object, "thread_bytes")?.unwrap_or_default(),
        requires: texts(r, &object, "requires")?,
        convention: number(r, &object, "convention")?.unwrap_or_default(),
        checks: texts(r, &object, "checks")?,
        strings: texts(r, &object, "strings")?,
        workspace_message: match object.get("workspace_message") {
            Some(text) => Some(r.string(text, &object.at.key("workspace_message"))?.to_owned()),
            None => None,
        },
        calls: match object.get("calls") {
            Some(value) => r.list(value, &object.at.key("calls"), host_call)?,
            None => vec![],
        },
    })
}

fn host_call(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<HostCall> {
    let object = r.object(value, at)?;
    let name = r.required(&object, "name")?;
    let name = r.string(name, &at.key("name"))?.to_owned();
    let arguments = texts(r, &object, "arguments")?;
    Some(HostCall { name, arguments, automata: texts(r, &object, "automata")? })
}

fn port(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Port> {
    let object = r.object(value, at)?;
    let [name, dtype] = ["name", "dtype"].map(|key| {
        let value = r.required(&object, key)?;
        Some(r.string(value, &at.key(key))?.to_owned())
    });
    let shape = r.required(&object, "shape")?;
    let shape = r.list(shape, &at.key("shape"), |r, value, at| r.integer(value, at, "an extent"));
    let preserved = match object.get("preserved") {
        Some(preserved) => r.boolean(preserved, &at.key("preserved"))?,
        None => false,
    };
    let (sizes, weight) = (texts(r, &object, "sizes")?, number(r, &object, "weight")?);
    let updates = match object.get("updates") {
        Some(input) => Some(r.string(input, &at.key("updates"))?.to_owned()),
        None => None,
    };
    Some(Port { name: name?, dtype: dtype?, shape: shape?, preserved, sizes, weight, updates })
}

/// An optional number.
pub(crate) fn number<T: TryFrom<i128>>(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
) -> Option<Option<T>> {
    match object.get(key) {
        Some(value) => r.integer(value, &object.at.key(key), "a number").map(Some),
        None => Some(None),
    }
}

/// A list of strings; empty if the key is missing.
pub(crate) fn texts(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
) -> Option<Vec<String>> {
    let Some(value) = object.get(key) else { return Some(vec![]) };
    let text =
        |r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>| r.string(value, at).map(str::to_owned);
    r.list(value, &object.at.key(key), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_read_back() {
        let port = |name: &str| Port {
            name: name.into(),
            dtype: "f32".into(),
            shape: vec![2, -1],
            preserved: true,
            sizes: vec!["2".into(), "N".into()],
            weight: Some(3),
            updates: Some("cache".into()),
        };
        let interface = Interface {
            inputs: vec![port("a"), Port { name: "\"b".into(), ..Port::default() }],
            outputs: vec![port("c")],
            workspace_bytes: 64,
            thread_bytes: 128,
            requires: vec!["avx2".into()],
            convention: 1,
            checks: vec!["sizes differ".into()],
            strings: vec!["a".into(), "\\xff".into()],
            workspace_message: Some("the largest value".into()),
            calls: vec![
                HostCall {
                    name: "matches".into(),
                    arguments: vec!["a".into()],
                    automata: vec!["61-61>1 match".into()],
                },
                HostCall { name: "concat".into(), ..HostCall::default() },
            ],
        };
        for interface in [interface, Interface::default()] {
            assert_eq!(Interface::from_json(&interface.to_json()), Ok(interface));
        }
    }

    #[test]
    fn what_is_no_interface_is_rejected() {
        let sound = Interface { inputs: vec![Port::default()], ..Interface::default() }.to_json();
        assert!(Interface::from_json(&sound).is_ok());
        for (old, new) in [
            ("workspace_bytes", "workspace"),
            ("\"inputs\"", "\"input\""),
            ("0", "-1"),
            ("[{", "[7,{"),
            ("}", ""),
        ] {
            let wrong = sound.replacen(old, new, 1);
            assert!(Interface::from_json(&wrong).is_err(), "{wrong}");
        }
        let message = Interface::from_json("{\"inputs\": 1}").expect_err("no list");
        assert_eq!(message, "expected an array, found the number 1 at $.inputs of its metadata");
    }
}
