//! Programs: instructions with their origins and tokens.

use std::{
    fmt,
    ops::{Deref, Range},
    str::FromStr,
};

use crate::{Engines, Op};

/// The origin of an instruction in the schedule; the machine does not see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Layer of the frontend for which it runs.
    pub slyr: i32,
    /// Layers of the frontend whose data it moves.
    pub clyr: Numbers,
    /// Fusion group for which it runs.
    pub s_flyr: i32,
    /// Fusion groups whose data it moves.
    pub c_flyr: Numbers,
    /// Workload for which it runs.
    pub wkl: i32,
    /// Tile within the workload; -1 if none.
    pub tile: i32,
}

impl Default for Origin {
    /// No origin: each field is -1 or empty.
    fn default() -> Self {
        let none = Numbers::default;
        Self { slyr: -1, clyr: none(), s_flyr: -1, c_flyr: none(), wkl: -1, tile: -1 }
    }
}

/// Numbers of layers or of groups. Most lists are empty, and take no more than a pointer.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Numbers(Option<Box<List>>);

/// A list that is not empty.
#[derive(Clone, PartialEq, Eq)]
struct List(Box<[u32]>);

impl Deref for Numbers {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.0.as_ref().map_or(&[], |list| &list.0)
    }
}

impl From<Vec<u32>> for Numbers {
    fn from(numbers: Vec<u32>) -> Self {
        Self((!numbers.is_empty()).then(|| Box::new(List(numbers.into()))))
    }
}

impl FromIterator<u32> for Numbers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        numbers.into_iter().collect::<Vec<_>>().into()
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Tokens that an instruction waits for before it starts and signals when it has ended.
///
/// There is one queue of tokens for every ordered pair of engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Engines from which it takes a token (`Prev_Insts`).
    pub prev: Engines,
    /// Engines to which it gives a token (`Next_Insts`).
    pub next: Engines,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The operation.
    pub op: Op,
    /// The origin.
    pub origin: Origin,
    /// Tokens; none for instructions that only write registers.
    pub tokens: Tokens,
}

impl Instruction {
    /// An instruction without tokens.
    pub fn new(op: impl Into<Op>, origin: Origin) -> Self {
        Self { op: op.into(), origin, tokens: Tokens::default() }
    }
}

/// The instructions of one core, in the order in which they are issued.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Core {
    /// Number of the core, used by instructions that send and receive.
    pub id: u32,
    /// Instructions in program order.
    pub code: Vec<Instruction>,
}

/// A program: one list of instructions per core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Cores by ascending number.
    pub cores: Vec<Core>,
    /// The model whose numbers its instructions contain, if they are those of a model.
    pub model: Option<Fingerprint>,
    /// Which part of a model it computes, if the host computes the rest.
    pub part: Option<Part>,
}

/// A part of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number in the order in which parts run, from 1.
    pub number: u32,
    /// How many there are.
    pub count: u32,
}

impl fmt::Display for Part {
    /// `1 of 3`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.count)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = text.split_once(" of ").and_then(|(number, count)| {
            Some(Self { number: number.parse().ok()?, count: count.parse().ok()? })
        });
        let found = found.filter(|part| (1..=part.count).contains(&part.number));
        found.ok_or_else(|| "expected a number and the count, as in 1 of 3".into())
    }
}

/// What a program contains of a model: how many images, and hashes of the rest. Weights are not part of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Images at once.
    pub images: u64,
    /// Names, shapes, windows and operands of all layers.
    pub layers: u64,
    /// Signs, factors, zero points and functions of all layers.
    pub numbers: u64,
    /// Which layers are split into pieces, if any: printable ASCII, as in `3:256,512;7:64`.
    pub splits: Option<String>,
    /// How the model was quantised, if it was when the program was compiled: words of printable ASCII, separated by commas.
    pub calibration: Option<String>,
}

/// Most bytes of [`Fingerprint::splits`] and of [`Fingerprint::calibration`].
const MAX_WORDS: [usize; 2] = [1 << 20, 255];

impl Fingerprint {
    /// `splits=…` and `calibration=…`, those of them that it has, each after a space.
    pub(crate) fn words(&self) -> String {
        let words = [("splits", &self.splits), ("calibration", &self.calibration)];
        let stated = words.into_iter().filter_map(|(key, word)| Some((key, word.as_ref()?)));
        stated.map(|(key, word)| format!(" {key}={word}")).collect()
    }

    /// Reads [`Self::words`] into a fingerprint without any.
    pub(crate) fn with_words(mut self, text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().peekable();
        let places = [("splits=", &mut self.splits), ("calibration=", &mut self.calibration)];
        for ((key, place), most) in places.into_iter().zip(MAX_WORDS) {
            if let Some(word) = words.peek().and_then(|word| word.strip_prefix(key)) {
                let is_valid = (1..=most).contains(&word.len())
                    && word.bytes().all(|byte| byte.is_ascii_graphic());
                *place = is_valid.then(|| Some(word.to_owned()))?;
                words.next();
            }
        }
        words.next().is_none().then_some(self)
    }
}

impl fmt::Display for Fingerprint {
    /// `images=1 layers=0123456789abcdef numbers=fedcba9876543210`, and perhaps `splits=…` and `calibration=…`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { images, layers, numbers, .. } = self;
        write!(f, "images={images} layers={layers:016x} numbers={numbers:016x}{}", self.words())
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rest = text;
        let mut number = |key: &str, radix: u32| {
            let trimmed = rest.trim_start();
            let (word, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
            rest = after;
            let value = word.strip_prefix(key)?.strip_prefix('=')?;
            u64::from_str_radix(value, radix).ok()
        };
        let all = [number("images", 10), number("layers", 16), number("numbers", 16)];
        let found = match all {
            [Some(images), Some(layers), Some(numbers)] => {
                Self { images, layers, numbers, splits: None, calibration: None }.with_words(rest)
            }
            _ => None,
        };
        found.ok_or_else(|| {
            "expected images=N layers=HEX numbers=HEX, and perhaps splits=TEXT and calibration=TEXT"
                .into()
        })
    }
}

impl Program {
    /// The program of a single core, number 0.
    pub fn single(code: Vec<Instruction>) -> Self {
        Self { cores: vec![Core { id: 0, code }], ..Self::default() }
    }

    /// Number of instructions of all cores.
    pub fn len(&self) -> usize {
        self.cores.iter().map(|core| core.code.len()).sum()
    }

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Ranges of the instructions of a program in its text: by index of the core, by instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(pub Vec<Vec<Range<usize>>>);

impl Spans {
    /// Byte range of an instruction.
    pub fn get(&self, core: usize, index: usize) -> Option<Range<usize>> {
        self.0.get(core)?.get(index).cloned()
    }
}

/// The time of an instruction, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Time {
    /// First cycle.
    pub start: u64,
    /// First cycle after it.
    pub end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of 256 cores have tens of millions of instructions.
    #[test]
    fn an_instruction_takes_few_bytes() {
        assert!(size_of::<Instruction>() <= 128, "{} bytes", size_of::<Instruction>());
    }

    #[test]
    fn a_list_has_its_numbers() {
        let list: Numbers = [3, 1].into_iter().collect();
        assert_eq!((&*list, list.clone()), (&[3, 1][..], vec![3, 1].into()));
        assert_eq!((Numbers::from(vec![]), Numbers::default().len()), (Numbers::default(), 0));
    }
}
