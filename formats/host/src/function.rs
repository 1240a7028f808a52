//! The functions and their signatures.

use crate::image::NO_IMAGES;
use crate::{FunctionError, Pattern, PixelFormat, Splitter};
use irc_tensor::DType;

/// The extents of the result of a [`Function`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extents {
    /// Those of the operands, which are equal: the function is applied to each element.
    OfOperands,
    /// These.
    Known(&'static [i64]),
    /// Those that the program states, as many as this: they are checked.
    Stated(usize),
}

/// What a host computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// One string after another.
    Concat,
    /// The number of parts of a string, an `i64`.
    CountParts(Splitter),
    /// The part of a string with an index, an `i64`; empty if there is none.
    Part(Splitter),
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
    /// Whether a whole string matches a regular expression.
    Matches(Box<Pattern>),
    /// A number of this type as a string.
    Format(DType),
    /// The number of this type that a string begins with.
    Parse(DType),
    /// The height and width of the image in the bytes of a file; 0 if it cannot be decoded.
    ImageSize(PixelFormat),
    /// The pixels of the image in the bytes of a file: rows, columns, channels.
    Pixels(PixelFormat),
}

impl Function {
    /// The name in the IR and in the metadata of compiled programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Concat => "concat",
            Self::CountParts(_) => "count_parts",
            Self::Part(_) => "part",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::Matches(_) => "matches",
            Self::Format(_) => "format",
            Self::Parse(_) => "parse",
            Self::ImageSize(_) => "image_size",
            Self::Pixels(_) => "pixels",
        }
    }

    /// The arguments beside the name: texts, delimiters among them as [`irc_tensor::escape`] writes them. Expressions stand
    /// there as they are written.
    pub fn arguments(&self) -> Vec<String> {
        match self {
            Self::Concat | Self::Lower | Self::Upper => vec![],
            Self::ImageSize(format) | Self::Pixels(format) => vec![format.name().to_owned()],
            Self::CountParts(splitter) | Self::Part(splitter) => splitter.arguments(),
            Self::Matches(pattern) => vec![pattern.text().to_owned()],
            Self::Format(dtype) | Self::Parse(dtype) => vec![dtype.name().to_owned()],
        }
    }

    /// The automata of the expressions among the arguments, in their order.
    pub fn automata(&self) -> Vec<String> {
        let patterns = match self {
            Self::Matches(pattern) => std::slice::from_ref(&**pattern),
            Self::CountParts(splitter) | Self::Part(splitter) => splitter.patterns(),
            _ => &[],
        };
        patterns.iter().map(|pattern| pattern.automaton().to_string()).collect()
    }

    /// A function that matches an expression.
    ///
    /// # Errors
    /// An expression that is invalid, too large or not supported.
    pub fn matches(pattern: &str) -> Result<Self, String> {
        Pattern::new(pattern).map(|pattern| Self::Matches(Box::new(pattern)))
    }

    /// The function with a name and arguments, whose expressions are compiled.
    ///
    /// # Errors
    /// An unknown name; arguments that are not those of the function; without the cargo feature
    /// `compile-regex`, any expression.
    pub fn read(name: &str, arguments: &[String]) -> Result<Self, String> {
        Self::read_with(name, arguments, &mut Pattern::new)
    }

    /// The function with a name, arguments, and the automata of the expressions among them.
    ///
    /// # Errors
    /// An unknown name; arguments that are not those of the function; more or fewer automata than
    /// expressions.
    pub fn read_compiled(
        name: &str,
        arguments: &[String],
        automata: &[String],
    ) -> Result<Self, String> {
        let mut rest = automata.iter();
        let function = Self::read_with(name, arguments, &mut |text| {
            let pattern = rest.next().and_then(|automaton| Pattern::compiled(text, automaton));
            pattern.ok_or_else(|| "expected an automaton for each expression".to_owned())
        })?;
        match rest.next() {
            None => Ok(function),
            Some(_) => Err("expected as many automata as expressions".to_owned()),
        }
    }

    fn read_with(
        name: &str,
        arguments: &[String],
        pattern: &mut dyn FnMut(&str) -> Result<Pattern, String>,
    ) -> Result<Self, String> {
        match (name, arguments) {
            ("concat", []) => Ok(Self::Concat),
            ("lower", []) => Ok(Self::Lower),
            ("upper", []) => Ok(Self::Upper),
            ("image_size", [format]) => pixel_format(format).map(Self::ImageSize),
            ("pixels", [format]) => pixel_format(format).map(Self::Pixels),
            ("count_parts", arguments) => Splitter::read(arguments, pattern).map(Self::CountParts),
            ("part", arguments) => Splitter::read(arguments, pattern).map(Self::Part),
            ("matches", [text]) => pattern(text).map(|pattern| Self::Matches(Box::new(pattern))),
            ("format", [dtype]) => number(dtype).map(Self::Format),
            ("parse", [dtype]) => number(dtype).map(Self::Parse),
            (name, arguments) => {
                let count = arguments.len();
                Err(format!("expected a function of hosts, found '{name}' with {count} arguments"))
            }
        }
    }

    /// The element types of the operands.
    pub fn operands(&self) -> Vec<DType> {
        match self {
            Self::Concat => vec![DType::String; 2],
            Self::Part(_) => vec![DType::String, DType::I64],
            Self::Format(dtype) => vec![*dtype],
            Self::ImageSize(_) | Self::Pixels(_) => vec![DType::U8],
            Self::CountParts(_) | Self::Lower | Self::Upper | Self::Matches(_) | Self::Parse(_) => {
                vec![DType::String]
            }
        }
    }

    /// The element type of the result.
    pub const fn result(&self) -> DType {
        match self {
            Self::Concat | Self::Part(_) | Self::Lower | Self::Upper | Self::Format(_) => {
                DType::String
            }
            Self::CountParts(_) | Self::ImageSize(_) => DType::I64,
            Self::Pixels(_) => DType::U8,
            Self::Matches(_) => DType::Bool,
            Self::Parse(dtype) => *dtype,
        }
    }

    /// The extents of the result.
    pub const fn extents(&self) -> Extents {
        match self {
            Self::ImageSize(_) => Extents::Known(&[2]),
            Self::Pixels(_) => Extents::Stated(3),
            _ => Extents::OfOperands,
        }
    }

    /// Checks the element types of operands.
    ///
    /// # Errors
    /// [`FunctionError::Operands`].
    pub fn expect(&self, found: &[DType]) -> Result<(), FunctionError> {
        let expected = self.operands();
        if expected == found {
            return Ok(());
        }
        let names =
            |types: &[DType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        let (expected, found) = (names(&expected), names(found));
        Err(FunctionError::Operands { function: self.name(), expected, found })
    }
}

/// A pixel format, in a build that decodes images.
fn pixel_format(name: &str) -> Result<PixelFormat, String> {
    match cfg!(feature = "images") {
        true => PixelFormat::named(name),
        false => Err(NO_IMAGES.to_owned()),
    }
}

fn number(name: &str) -> Result<DType, String> {
    let dtype: DType = name.parse()?;
    if dtype == DType::String {
        return Err("expected a type of numbers, found string".to_owned());
    }
    Ok(dtype)
}
