//! Finite automata over bytes, and their text in the metadata of compiled programs.
//!
//! The text is one word for each state, the start first; targets are numbers of states:
//!
//! | word | state |
//! |---|---|
//! | `61-7a>1,c3-c3>2` | goes on with a byte in one of the ranges, in hexadecimal, ascending; `-` is none |
//! | `\|1\|2` | goes on with each of the states |
//! | `b>1` | goes on where an assertion holds: `A` `z` `^` `$` `b` `B` |
//! | `match` | accepts |

use std::fmt;

/// Maximum number of states.
pub const MAX_STATES: usize = 1 << 16;

/// A nondeterministic automaton, whose start is the first state. Every target is one of its states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automaton {
    states: Vec<State>,
}

/// A state of an automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Goes on with a byte in one of these ranges, which are ascending and disjoint.
    Bytes(Vec<Transition>),
    /// Goes on with each of these states.
    Split(Vec<usize>),
    /// Goes on where an assertion holds.
    Look(Look, usize),
    /// Accepts.
    Match,
}

/// From a range of bytes, both ends inclusive, to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The first byte.
    pub first: u8,
    /// The last byte.
    pub last: u8,
    /// The state.
    pub to: usize,
}

/// An assertion about a position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
    /// The start of a line.
    StartLine,
    /// The end of a line.
    EndLine,
    /// Between a character of words, of ASCII, and another or none.
    Boundary,
    /// Anywhere else.
    NoBoundary,
}

impl Look {
    const ALL: [Self; 6] =
        [Self::Start, Self::End, Self::StartLine, Self::EndLine, Self::Boundary, Self::NoBoundary];

    const fn name(self) -> u8 {
        match self {
            Self::Start => b'A',
            Self::End => b'z',
            Self::StartLine => b'^',
            Self::EndLine => b'$',
            Self::Boundary => b'b',
            Self::NoBoundary => b'B',
        }
    }

    /// Whether the assertion holds before the byte at a position.
    pub fn holds(self, text: &[u8], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| text.get(at)).copied();
        let after = text.get(at).copied();
        let is_word =
            |byte: Option<u8>| byte.is_some_and(|it| it.is_ascii_alphanumeric() || it == b'_');
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::StartLine => before.is_none_or(|byte| byte == b'\n'),
            Self::EndLine => after.is_none_or(|byte| byte == b'\n'),
            Self::Boundary => is_word(before) != is_word(after),
            Self::NoBoundary => is_word(before) == is_word(after),
        }
    }
}

impl Automaton {
    /// An automaton with these states, the start first; `None` without any or with more than [`MAX_STATES`], if a
    /// target is none of them, or ranges are not ascending.
    pub fn new(states: Vec<State>) -> Option<Self> {
        let count = states.len();
        let is_sound = count <= MAX_STATES && states.iter().all(|state| state.is_sound(count));
        (count > 0 && is_sound).then_some(Self { states })
    }

    /// Reads the text of an automaton; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let mut states = vec![];
        for word in text.split(' ').take(MAX_STATES + 1) {
            states.push(State::read(word)?);
        }
        Self::new(states)
    }

    /// The states, the start first.
    pub fn states(&self) -> &[State] {
        &self.states
    }
}

impl State {
    /// The state that a byte leads to.
    pub fn after(&self, byte: u8) -> Option<usize> {
        let Self::Bytes(ranges) = self else { return None };
        let at = ranges.partition_point(|range| range.last < byte);
        ranges.get(at).filter(|range| range.first <= byte).map(|range| range.to)
    }

    /// Whether it is a state among so many, with ascending ranges.
    fn is_sound(&self, states: usize) -> bool {
        match self {
            Self::Bytes(ranges) => {
                let mut next = 0;
                ranges.iter().all(|range| {
                    let is_ordered = next <= u16::from(range.first) && range.first <= range.last;
                    next = u16::from(range.last) + 1;
                    is_ordered && range.to < states
                })
            }
            Self::Split(targets) => targets.iter().all(|to| *to < states),
            Self::Look(_, to) => *to < states,
            Self::Match => true,
        }
    }

    fn read(word: &str) -> Option<Self> {
        match word {
            "match" => return Some(Self::Match),
            "-" => return Some(Self::Bytes(vec![])),
            _ => {}
        }
        if let Some(word) = word.strip_prefix('|') {
            let mut targets = vec![];
            for to in word.split('|') {
                targets.push(to.parse().ok()?);
            }
            return Some(Self::Split(targets));
        }
        if let [name, b'>', ..] = word.as_bytes() {
            let look = Look::ALL.iter().find(|look| look.name() == *name)?;
            return Some(Self::Look(*look, word[2..].parse().ok()?));
        }
        let mut ranges = vec![];
        for range in word.split(',') {
            ranges.push(Transition::read(range)?);
        }
        Some(Self::Bytes(ranges))
    }
}

impl Transition {
    fn read(text: &str) -> Option<Self> {
        let (range, to) = text.split_once('>')?;
        let (first, last) = range.split_once('-')?;
        let byte = |text| u8::from_str_radix(text, 16).ok();
        Some(Self { first: byte(first)?, last: byte(last)?, to: to.parse().ok()? })
    }
}

impl fmt::Display for Automaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, state) in self.states.iter().enumerate() {
            if number > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{state}")?;
        }
        Ok(())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(ranges) if ranges.is_empty() => f.write_str("-"),
            Self::Bytes(ranges) => {
                for (number, Transition { first, last, to }) in ranges.iter().enumerate() {
                    let comma = if number > 0 { "," } else { "" };
                    write!(f, "{comma}{first:02x}-{last:02x}>{to}")?;
                }
                Ok(())
            }
            Self::Split(targets) => targets.iter().try_for_each(|to| write!(f, "|{to}")),
            Self::Look(look, to) => write!(f, "{}>{to}", char::from(look.name())),
            Self::Match => f.write_str("match"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automata_are_read_and_written() {
        for text in ["match", "-", "|1|2 61-7a>0,c3-c3>2 A>3 match", "b>1 B>2 ^>3 $>4 z>5 match"] {
            assert_eq!(Automaton::read(text).expect("an automaton").to_string(), text);
        }
    }

    #[test]
    fn invalid_automata_are_rejected() {
        let long = vec!["match"; MAX_STATES + 1].join(" ");
        for text in [
            "",
            " ",
            "|",
            "|1",
            "61-7a>1",
            "7a-61>0",
            "61-63>0,63-64>0",
            "61>0",
            "x>0",
            "b>-1",
            "61-100>0",
            "|99999999999999999999",
            "match  match",
            "\u{e9}-\u{e9}>0",
            &long,
        ] {
            assert!(Automaton::read(text).is_none(), "{text:.20}");
        }
    }

    #[test]
    fn changed_automata_are_read_or_rejected() {
        let text = "|1|2 61-7a>1,c3-c3>2 A>3 match";
        for at in 0..text.len() {
            for byte in "0 9|->,amz\u{7f}".chars() {
                let changed = format!("{}{byte}{}", &text[..at], &text[at + 1..]);
                let Some(automaton) = Automaton::read(&changed) else { continue };
                assert_eq!(Automaton::read(&automaton.to_string()).as_ref(), Some(&automaton));
                let found = crate::search::Search::new(&automaton).find(b"xaz\xc3", 0);
                assert!(found.is_none_or(|found| found.end <= 4));
            }
        }
    }
}
