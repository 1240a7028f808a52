//! The attributes `tl.*`, by which passes of the compiler communicate: on functions, their
//! arguments and results, and ops.
//!
//! They are defined in `dialects/tl/tl.td`, which documents each and checks its type. This module builds
//! and reads them. All properties of a kernel are one attribute, [`KernelInfo`], and those of a
//! program are [`ProgramInfo`].
mod kernel;
mod schedule;

use irc_executor::code::Keeps;
use irc_mlir::{
    Attribute, AttributeValue, Context, Key, OperationRef, attr,
    melior::ir::attribute::{DictionaryAttribute, IntegerAttribute},
    read,
};
use irc_packing::{Extension, Packing, Panels, Quad, TILES, Winograd};

pub use kernel::{
    BLOCK, Blocks, Columns, KernelInfo, LOOPS, POOL, Phases, TASK, is_loops, launcher, part_of,
};
pub use schedule::{Algorithm, Schedule};

/// On a kernel: a function that launches call.
pub const KERNEL: Key<KernelInfo> = Key::new("tl.kernel");
/// On a kernel that runs in blocks of items.
pub const BLOCKS: Key<Blocks> = Key::new("tl.blocks");
/// Element strides of an argument or result of a kernel; without it, elements are row-major.
pub const STRIDES: Key<Vec<i64>> = Key::new("tl.strides");
/// Marks a result of a kernel whose memory may hold values that the kernel reads.
pub const OVERWRITES: Key<()> = Key::new("tl.overwrites");
/// Marks a function written at the tensor level: a program, or a function that one calls.
pub const GRAPH: Key<()> = Key::new("tl.graph");
/// On a program.
pub const PROGRAM: Key<ProgramInfo> = Key::new("tl.program");
/// On a program: its strings by handle, each as [`irc_tensor::escape`] writes it.
pub const STRINGS: Key<Vec<String>> = Key::new("tl.strings");
/// The name of an argument or result.
pub const NAME: Key<String> = Key::new("tl.name");
/// Marks an argument that the caller preserves from one call to the next.
pub const PRESERVED: Key<()> = Key::new("tl.preserved");
/// On a result of a program: the name of the argument that it may be in the memory of.
pub const UPDATES: Key<String> = Key::new("tl.updates");
/// The number of the constant that an argument represents.
pub const WEIGHT: Key<i64> = Key::new("tl.weight");
/// The elements of that constant; an elements attribute of any kind.
pub const VALUE: &str = "tl.value";
/// On a program whose memory is planned: the bytes of its constants, at the offsets in [`ProgramInfo`]; an
/// elements attribute.
pub const CONSTANTS: &str = "tl.constants";
/// On the program of an ARK plan for a GPU: the first line of its PTX, which describes it.
pub const DESCRIPTION: Key<String> = Key::new("tl.description");
/// On a kernel of a model for a GPU: the number of operands that it only reads, and the bytes of each operand.
pub const ACCESSES: Key<Vec<i64>> = Key::new("tl.accesses");
/// On a kernel of a model for a GPU: the number of blocks that have a part of its work, if it is known.
pub const WORKERS: Key<i64> = Key::new("tl.workers");
/// On a module whose kernels are written for a GPU: its compute capability, such as 90.
pub const CAPABILITY: Key<i64> = Key::new("tl.capability");
/// Marks a `linalg.generic` whose reduction must not be reordered.
pub const ORDERED: Key<()> = Key::new("tl.ordered");
/// On a `linalg.generic`: the offsets in its result of the tensor that it extracts from; all other elements
/// are those of its operand.
pub const PADS: Key<Vec<i64>> = Key::new("tl.pads");
/// Marks a `linalg.generic` whose elements are four bytes of its operand each, the first in the lowest bits.
pub const QUADS: Key<()> = Key::new("tl.quads");
/// On a `linalg.generic` that sums products of bytes, four to an element: the operand whose bytes are unsigned; those of
/// the other are signed.
pub const DOTS: Key<i64> = Key::new("tl.dots");
/// On a `linalg.generic` that computes floats from integers of a few bits, packed along the last dimension of the bytes
/// that it extracts from first, with a scale and possibly a zero point for each block of them: the bits of an integer, and
/// the number of them in a block.
pub const CODES: Key<Vec<i64>> = Key::new("tl.codes");
/// On a `linalg.generic` that computes the floats that rows of `i8` stand for, with the scale of each block of a row, which it
/// extracts: the number of integers in a block.
pub const QUANTISED: Key<i64> = Key::new("tl.quantised");
/// Marks an op of `math` whose operand is at most zero.
pub const NONPOSITIVE: Key<()> = Key::new("tl.nonpositive");
/// Marks a division whose divisor is at least 1.
pub const AT_LEAST_ONE: Key<()> = Key::new("tl.at_least_one");
/// On an `arith.maximumf`: whether a NaN may be ignored, because everything that depends on the maximum depends
/// on a sum over the same elements too.
pub const IGNORES_NAN: Key<()> = Key::new("tl.ignores_nan");
/// On a launch: the values of its kernel's symbols.
pub const SIZES: Key<Vec<String>> = Key::new("sizes");

/// On a launch or call: the node that it computes, for programs without locations. On a kernel that only checks: what it
/// requires.
pub const ORIGIN: Key<String> = Key::new("tl.origin");

/// The linkage of a function once it is in the `llvm` dialect, which defines this attribute.
pub const LINKAGE: &str = "llvm.linkage";

/// How a program is linked, and its interface: `#tl.program`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Appended to the names of its entry point and metadata.
    pub suffix: String,
    /// Whether it is a part of others: equal ones are merged by the linker.
    pub shared: bool,
    /// The offset of each argument in the constants of the library, or -1; empty if they are not linked.
    pub weight_offsets: Vec<i64>,
    /// The interface of a planned program, as JSON.
    pub metadata: Option<String>,
}

impl ProgramInfo {
    /// The properties of a program; the default if it has no attribute.
    pub fn of(function: &OperationRef<'_, '_>) -> Self {
        PROGRAM.read(function).unwrap_or_default()
    }
}

/// The attributes of each argument (`arg_attrs`) or result (`res_attrs`) of a function.
pub fn dictionaries<'c: 'a, 'a>(
    function: &OperationRef<'c, 'a>,
    name: &str,
) -> Vec<Option<DictionaryAttribute<'c>>> {
    let elements = read::elements(function, name).unwrap_or_default().into_iter();
    elements.map(|dictionary| DictionaryAttribute::try_from(dictionary).ok()).collect()
}

impl AttributeValue for ProgramInfo {
    type Given<'v> = &'v Self;

    fn encode<'c>(context: &'c Context, program: &Self) -> Attribute<'c> {
        let text = Text::new("program")
            .maybe("suffix", (!program.suffix.is_empty()).then(|| quoted(&program.suffix)))
            .flag("shared", program.shared)
            .list("weight_offsets", &program.weight_offsets)
            .maybe("metadata", program.metadata.as_deref().map(quoted));
        attr::parse(context, &text.text())
    }

    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        let fields = Fields::of(attribute, "program")?;
        Some(Self {
            suffix: fields.text("suffix").unwrap_or_default(),
            shared: fields.has("shared"),
            weight_offsets: fields.numbers("weight_offsets")?,
            metadata: fields.text("metadata"),
        })
    }
}

impl AttributeValue for KernelInfo {
    type Given<'v> = &'v Self;

    fn encode<'c>(context: &'c Context, kernel: &Self) -> Attribute<'c> {
        attr::parse(context, &kernel_text(kernel))
    }

    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        let fields = Fields::of(attribute, "kernel")?;
        let packed = fields.elements("packed")?.into_iter().map(packing_of);
        let operands = fields.indices("kept_arguments")?;
        let kept = fields.number("kept_bytes").map(i64::cast_unsigned);
        Some(Self {
            kind: fields.text("kind").unwrap_or_default(),
            constants: fields.indices("constants")?,
            small: fields.indices("small")?,
            cached: fields.has("cached"),
            keeps: fields.has("keeps"),
            entry: fields.text("entry"),
            rows: fields.number("rows"),
            columns: fields.number("columns"),
            parameters: vec![],
            symbols: fields.texts("symbols")?,
            workspace_bytes: fields.number("workspace_bytes").map(i64::cast_unsigned),
            scalar: fields.text("scalar"),
            phases: phases_of(&fields)?,
            schedule: schedule_of(&fields)?,
            packed: packed.collect::<Option<_>>()?,
            kept: kept.map(|bytes| Keeps { bytes, operands }),
        })
    }
}

impl AttributeValue for Blocks {
    type Given<'v> = &'v Self;

    fn encode<'c>(context: &'c Context, blocks: &Self) -> Attribute<'c> {
        let text = Text::new("blocks")
            .field("callee", &quoted(&blocks.callee))
            .field("items", &blocks.items.to_string())
            .field("counts", &quoted_list(&blocks.counts))
            .field("bytes", &quoted_list(&blocks.bytes))
            .field("cycles", &blocks.cycles.to_string())
            .maybe("columns", blocks.columns.as_ref().map(columns_text));
        attr::parse(context, &text.text())
    }

    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        let fields = Fields::of(attribute, "blocks")?;
        Some(Self {
            callee: fields.text("callee")?,
            items: fields.number("items")?,
            counts: fields.texts("counts")?,
            bytes: fields.texts("bytes")?,
            cycles: fields.number("cycles")?,
            columns: match fields.get("columns") {
                Some(columns) => Some(columns_of(columns)?),
                None => None,
            },
        })
    }
}

/// The text of `#tl.columns`.
fn columns_text(columns: &Columns) -> String {
    Text::new("columns")
        .field("callee", &quoted(&columns.callee))
        .field("items", &columns.items.to_string())
        .field("count", &quoted(&columns.count))
        .field("bytes", &format!("{:?}", columns.bytes))
        .field("copied", &quoted_list(&columns.copied))
        .maybe("causal", columns.causal.as_deref().map(quoted))
        .text()
}

fn columns_of(attribute: Attribute<'_>) -> Option<Columns> {
    let fields = Fields::of(attribute, "columns")?;
    Some(Columns {
        callee: fields.text("callee")?,
        items: fields.number("items")?,
        count: fields.text("count")?,
        bytes: fields.numbers("bytes")?,
        copied: fields.texts("copied")?,
        causal: fields.text("causal"),
    })
}

/// The choices of a kernel's schedule.
fn schedule_of(fields: &Fields<'_>) -> Option<Schedule> {
    Some(Schedule {
        algorithm: match fields.text("algorithm") {
            Some(name) => Some(Algorithm::from_name(&name)?),
            None => None,
        },
        rows: fields.number("tile_rows"),
        depth: fields.number("tile_depth"),
    })
}

/// The phases of a kernel; `None` inside if it has none.
fn phases_of(fields: &Fields<'_>) -> Option<Option<Phases>> {
    let parts = fields.numbers("parts")?;
    let part_bytes = fields.number("part_bytes").unwrap_or_default().cast_unsigned();
    let cycles = fields.texts("cycles")?;
    Some((!parts.is_empty()).then_some(Phases { parts, cycles, part_bytes }))
}

/// The text of `#tl.kernel`.
pub fn kernel_text(kernel: &KernelInfo) -> String {
    let packed: Vec<String> = kernel.packed.iter().map(packing_text).collect();
    let (kept, phases, schedule) = (kernel.kept.as_ref(), kernel.phases.as_ref(), kernel.schedule);
    let cycles = phases.map(|phases| &phases.cycles).filter(|cycles| !cycles.is_empty());
    Text::new("kernel")
        .maybe("kind", (!kernel.kind.is_empty()).then(|| quoted(&kernel.kind)))
        .list("constants", &kernel.constants)
        .list("small", &kernel.small)
        .flag("cached", kernel.cached)
        .flag("keeps", kernel.keeps)
        .maybe("scalar", kernel.scalar.as_deref().map(quoted))
        .maybe("entry", kernel.entry.as_deref().map(quoted))
        .maybe("rows", kernel.rows.map(|rows| rows.to_string()))
        .maybe("columns", kernel.columns.map(|columns| columns.to_string()))
        .maybe("symbols", (!kernel.symbols.is_empty()).then(|| quoted_list(&kernel.symbols)))
        .maybe("workspace_bytes", kernel.workspace_bytes.map(|bytes| bytes.to_string()))
        .list("parts", phases.map_or(&[], |phases| &phases.parts))
        .maybe("cycles", cycles.map(|cycles| quoted_list(cycles)))
        .maybe("part_bytes", phases.map(|phases| phases.part_bytes.to_string()))
        .maybe("algorithm", schedule.algorithm.map(|algorithm| quoted(algorithm.name())))
        .maybe("tile_rows", schedule.rows.map(|rows| rows.to_string()))
        .maybe("tile_depth", schedule.depth.map(|depth| depth.to_string()))
        .maybe("packed", (!packed.is_empty()).then(|| format!("[{}]", packed.join(", "))))
        .maybe("kept_bytes", kept.map(|kept| kept.bytes.to_string()))
        .list("kept_arguments", kept.map_or(&[], |kept| &kept.operands))
        .text()
}

/// The text of `#tl.packing` or `#tl.winograd`.
fn packing_text(packing: &Packing) -> String {
    match packing {
        Packing::Panels(panels) => {
            let Panels {
                argument,
                offset,
                along,
                across,
                rows,
                columns,
                depth,
                panel,
                lanes,
                quads,
            } = panels;
            let quads = quads.map_or(String::new(), |Quad { rows, bytes, extension }| {
                let extended = extension.map_or("", |extension| match extension {
                    Extension::Zero => ", extended = \"zero\"",
                    Extension::Sign => ", extended = \"sign\"",
                });
                format!(", quads = {rows}, bytes = {bytes}{extended}")
            });
            format!(
                "#tl.packing<argument = {argument}, offset = {offset}, along = {along}, across = {across}, \
                 rows = {rows}, columns = {columns}, depth = {depth}, panel = {panel}, lanes = {lanes}{quads}>"
            )
        }
        Packing::Winograd(winograd) => {
            let Winograd { argument, filters, channels, panel, tile, small_panel } = winograd;
            let small =
                small_panel.map_or(String::new(), |panel| format!(", small_panel = {panel}"));
            format!(
                "#tl.winograd<argument = {argument}, filters = {filters}, channels = {channels}, panel = {panel}, \
                 tile = {tile}{small}>"
            )
        }
    }
}

fn packing_of(attribute: Attribute<'_>) -> Option<Packing> {
    if let Some(fields) = Fields::of(attribute, "winograd") {
        return Some(Packing::Winograd(Winograd {
            argument: usize::try_from(fields.number("argument")?).ok()?,
            filters: fields.number("filters")?,
            channels: fields.number("channels")?,
            panel: fields.number("panel")?,
            tile: fields.number("tile").filter(|tile| TILES.contains(tile))?,
            small_panel: match fields.number("small_panel") {
                Some(..=0) => return None,
                panel => panel,
            },
        }));
    }
    let fields = Fields::of(attribute, "packing")?;
    Some(Packing::Panels(Panels {
        argument: usize::try_from(fields.number("argument")?).ok()?,
        offset: fields.number("offset")?,
        along: fields.number("along")?,
        across: fields.number("across")?,
        rows: fields.number("rows")?,
        columns: fields.number("columns")?,
        depth: fields.number("depth")?,
        panel: fields.number("panel")?,
        lanes: fields.number("lanes")?,
        quads: match (fields.number("quads"), fields.number("bytes")) {
            (Some(rows @ 1..), Some(bytes @ 1..=4)) => {
                let extension = match fields.text("extended").as_deref() {
                    None => None,
                    Some("zero") => Some(Extension::Zero),
                    Some("sign") => Some(Extension::Sign),
                    Some(_) => return None,
                };
                Some(Quad { rows, bytes, extension })
            }
            (None, None) => None,
            _ => return None,
        },
    }))
}

/// Writes an attribute of fields, `#tl.NAME<FIELD = VALUE, ...>`.
struct Text {
    name: &'static str,
    fields: Vec<String>,
}

impl Text {
    fn new(name: &'static str) -> Self {
        Self { name, fields: vec![] }
    }

    fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push(format!("{name} = {value}"));
        self
    }

    fn maybe(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.field(name, &value),
            None => self,
        }
    }

    fn flag(self, name: &str, value: bool) -> Self {
        if value { self.field(name, "unit") } else { self }
    }

    /// A list of numbers, omitted if it is empty.
    fn list<T: std::fmt::Debug>(self, name: &str, values: &[T]) -> Self {
        self.maybe(name, (!values.is_empty()).then(|| format!("{values:?}")))
    }

    fn text(self) -> String {
        match &self.fields[..] {
            [] => format!("#tl.{}", self.name),
            fields => format!("#tl.{}<{}>", self.name, fields.join(", ")),
        }
    }
}

/// Reads an attribute of fields, whose text between `<` and `>` is that of a dictionary.
struct Fields<'c>(DictionaryAttribute<'c>);

impl<'c> Fields<'c> {
    /// The fields of a `#tl.NAME`; `None` for other attributes.
    fn of(attribute: Attribute<'c>, name: &str) -> Option<Self> {
        let text = attribute.to_string();
        let fields = text.strip_prefix("#tl.")?.strip_prefix(name)?;
        let fields = match fields {
            "" => "",
            fields => fields.strip_prefix('<')?.strip_suffix('>')?,
        };
        let dictionary = read::parse_like(attribute, &format!("{{{fields}}}"))?;
        DictionaryAttribute::try_from(dictionary).ok().map(Self)
    }

    fn get(&self, name: &str) -> Option<Attribute<'c>> {
        self.0.element_by_name(name)
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn text(&self, name: &str) -> Option<String> {
        irc_mlir::string_value(self.get(name)?)
    }

    fn number(&self, name: &str) -> Option<i64> {
        number(self.get(name)?)
    }

    /// The elements of a list; empty if the field is absent.
    fn elements(&self, name: &str) -> Option<Vec<Attribute<'c>>> {
        self.get(name).map_or(Some(vec![]), read::array_elements)
    }

    fn numbers(&self, name: &str) -> Option<Vec<i64>> {
        self.elements(name)?.into_iter().map(number).collect()
    }

    fn indices(&self, name: &str) -> Option<Vec<usize>> {
        self.numbers(name)?.into_iter().map(|number| usize::try_from(number).ok()).collect()
    }

    fn texts(&self, name: &str) -> Option<Vec<String>> {
        self.elements(name)?.into_iter().map(irc_mlir::string_value).collect()
    }
}

fn number(attribute: Attribute<'_>) -> Option<i64> {
    Some(IntegerAttribute::try_from(attribute).ok()?.value())
}

fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A string literal that MLIR can parse.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let escaped = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("\\{byte:02X}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_mlir::OperationLike;

    /// Writes a value to a module and reads it back.
    fn round_trip<T>(key: Key<T>, value: T)
    where
        T: for<'v> AttributeValue<Given<'v> = &'v T> + PartialEq + std::fmt::Debug,
    {
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, "").expect("an empty module");
        key.write(module.as_operation(), &value);
        assert!(module.as_operation().verify(), "{key:?} is defined");
        assert_eq!(key.read(&module.as_operation()), Some(value));
    }

    #[test]
    fn what_is_known_of_kernels_and_programs_comes_back() {
        let panels = Panels {
            argument: 1,
            offset: 2,
            along: 3,
            across: 4,
            rows: 5,
            columns: 6,
            depth: 7,
            panel: 8,
            lanes: 9,
            quads: None,
        };
        round_trip(KERNEL, KernelInfo::default());
        round_trip(
            KERNEL,
            KernelInfo {
                kind: "loops".to_owned(),
                constants: vec![1, 2],
                small: vec![2],
                cached: true,
                keeps: true,
                scalar: Some("elements of f64".to_owned()),
                entry: Some("e".to_owned()),
                rows: Some(251),
                columns: Some(1008),
                parameters: vec![],
                symbols: vec!["a \"size\"".to_owned(), "\u{e9}".to_owned()],
                workspace_bytes: Some(0),
                phases: Some(Phases {
                    parts: vec![1, 4],
                    cycles: vec!["3*N".to_owned(), "5".to_owned()],
                    part_bytes: 64,
                }),
                schedule: Schedule {
                    algorithm: Some(Algorithm::Winograd),
                    rows: Some(7),
                    depth: Some(256),
                },
                packed: vec![
                    Packing::Panels(panels),
                    Packing::Panels(Panels {
                        offset: -2,
                        quads: Some(Quad { rows: 9, bytes: 3, extension: None }),
                        ..panels
                    }),
                    Packing::Panels(Panels {
                        quads: Some(Quad { rows: 1, bytes: 4, extension: Some(Extension::Sign) }),
                        ..panels
                    }),
                    Packing::Winograd(Winograd {
                        argument: 2,
                        filters: 3,
                        channels: 4,
                        panel: 5,
                        tile: 2,
                        small_panel: Some(16),
                    }),
                ],
                kept: Some(Keeps { bytes: 64, operands: vec![1] }),
            },
        );
        let (callee, counts) = ("a".to_owned(), vec!["2*N".to_owned(), "3".to_owned()]);
        let bytes = ["4*N", "0", "8", "8"].map(str::to_owned).to_vec();
        let blocks = Blocks { callee, items: 251, counts, bytes, cycles: 5, columns: None };
        round_trip(BLOCKS, blocks.clone());
        let columns = Columns {
            callee: "b".to_owned(),
            items: 1008,
            count: "S".to_owned(),
            bytes: vec![4, 0],
            copied: vec!["0".to_owned(), "4*S".to_owned()],
            causal: Some("P".to_owned()),
        };
        round_trip(BLOCKS, Blocks { columns: Some(columns), ..blocks });
        round_trip(PROGRAM, ProgramInfo::default());
        round_trip(
            PROGRAM,
            ProgramInfo {
                suffix: "_s".to_owned(),
                shared: true,
                weight_offsets: vec![-1, 64],
                metadata: Some("{\"a\": \"b\\n\"}".to_owned()),
            },
        );
    }

    #[test]
    fn an_attribute_of_another_type_is_rejected() {
        let context = irc_dialects::new_context();
        let capture = irc_mlir::Capture::new(&context);
        for text in ["tl.kernel = 1", "tl.strides = [1]", "tl.unknown"] {
            let text = format!("func.func private @f() attributes {{{text}}}");
            assert!(irc_mlir::parse_module(&context, &text).is_none(), "{text}");
        }
        assert!(!capture.take().is_empty());
    }
}
