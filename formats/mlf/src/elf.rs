//! ELF files, of 32 and 64 bits and either byte order: their machine and symbols.
//!
//! Nothing in a file is trusted: offsets and sizes are checked against its bytes, and a table is absent when
//! the file ends before it does. Names are those of the System V ABI, chapters 4 and 5.

use std::fmt;

/// An ELF file.
pub struct Elf<'b> {
    bytes: &'b [u8],
    is_64: bool,
    is_big: bool,
    /// The table of sections.
    sections: Table,
}

/// Entries of one size.
#[derive(Clone, Copy, Default)]
struct Table {
    offset: u64,
    entry: u64,
    count: u64,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object, to be linked.
    Relocatable,
    /// A shared library.
    Shared,
    /// A program, or the memory of one.
    Other,
}

/// What machine code is for: number and size of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    number: u16,
    is_64: bool,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match (self.number, self.is_64) {
            (3, _) => "i386",
            (8, _) => "mips",
            (40, _) => "arm",
            (62, true) => "x86_64",
            (62, false) => "x32",
            (94, _) => "xtensa",
            (183, _) => "aarch64",
            (243, true) => "riscv64",
            (243, false) => "riscv32",
            (number, _) => return write!(f, "machine {number}"),
        };
        f.write_str(name)
    }
}

/// Which symbols of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// Those that linkers see: `SHT_SYMTAB`.
    All = 2,
    /// Those that loaders see: `SHT_DYNSYM`.
    Dynamic = 11,
}

/// What is read of a section.
#[derive(Clone, Copy)]
struct Section {
    kind: u64,
    offset: u64,
    bytes: u64,
    link: u64,
}

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'b> {
    /// Its name.
    pub name: &'b str,
    /// Whether another file has to define it.
    pub is_undefined: bool,
    /// Whether no other file sees it.
    pub is_local: bool,
    /// Whether it is a function.
    pub is_function: bool,
}

const NOT_ELF: &str = "it does not begin as an ELF file does";
const CUT_SHORT: &str = "the file is cut short";
const SYMBOLS: &str = "a table of symbols is not in the file";

impl<'b> Elf<'b> {
    /// A file with a valid header and a whole table of sections.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &'b [u8]) -> Result<Self, &'static str> {
        let (class, order) = match bytes {
            [0x7f, b'E', b'L', b'F', class @ 1..=2, order @ 1..=2, 1, ..] => (*class, *order),
            _ => return Err(NOT_ELF),
        };
        let (is_64, is_big) = (class == 2, order == 2);
        let mut file = Elf { bytes, is_64, is_big, sections: Table::default() };
        let sections = file.sections().and_then(|table| file.whole(table));
        file.sections = sections.ok_or(CUT_SHORT)?;
        Ok(file)
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self.number(16, 2) {
            Some(1) => Kind::Relocatable,
            Some(3) => Kind::Shared,
            _ => Kind::Other,
        }
    }

    /// What its code is for.
    pub fn machine(&self) -> Machine {
        Machine { number: self.number(18, 2).unwrap_or_default() as u16, is_64: self.is_64 }
    }

    /// Whether everything is there that a loader maps.
    pub fn is_whole(&self) -> bool {
        let segments = self.segments().and_then(|table| self.whole(table));
        let Some(segments) = segments else { return false };
        (0..segments.count).all(|number| {
            let at = segments.offset + number * segments.entry;
            let place = (self.address(at, 4, 8), self.address(at, 16, 32));
            let (Some(offset), Some(bytes)) = place else { return false };
            self.slice(offset, bytes).is_some()
        })
    }

    /// Symbols, in order; none when the file has no such table.
    ///
    /// # Errors
    /// A table is not in the file, or a name is not text.
    pub fn symbols(&self, which: Symbols) -> Result<Vec<Symbol<'b>>, &'static str> {
        let mut sections = (0..self.sections.count).map(|number| self.section(number));
        let is_it = |section: &Option<Section>| section.is_some_and(|it| it.kind == which as u64);
        let Some(section) = sections.find(is_it).flatten() else { return Ok(vec![]) };
        let names = self.section(section.link).filter(|_| section.link < self.sections.count);
        let names = names.and_then(|names| self.slice(names.offset, names.bytes)).ok_or(SYMBOLS)?;
        self.slice(section.offset, section.bytes).ok_or(SYMBOLS)?;
        let entry = if self.is_64 { 24 } else { 16 };
        let mut symbols = vec![];
        // The first is none.
        for number in 1..section.bytes / entry {
            let symbol = self.symbol(section.offset + number * entry, names);
            symbols.push(symbol.ok_or("the name of a symbol cannot be read")?);
        }
        Ok(symbols)
    }

    fn symbol(&self, at: u64, names: &'b [u8]) -> Option<Symbol<'b>> {
        let (info, section) = if self.is_64 { (4, 6) } else { (12, 14) };
        let name = names.get(self.number(at, 4)? as usize..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        let info = self.number(at + info, 1)?;
        Some(Symbol {
            name: std::str::from_utf8(&name[..end]).ok()?,
            is_undefined: self.number(at + section, 2)? == 0,
            is_local: info >> 4 == 0,
            // `STT_FUNC`, and functions that are chosen when they are loaded.
            is_function: matches!(info & 15, 2 | 10),
        })
    }

    fn section(&self, number: u64) -> Option<Section> {
        let at = self.sections.offset.checked_add(number.checked_mul(self.sections.entry)?)?;
        Some(Section {
            kind: self.number(at.checked_add(4)?, 4)?,
            offset: self.address(at, 16, 24)?,
            bytes: self.address(at, 20, 32)?,
            link: self.number(at.checked_add(if self.is_64 { 40 } else { 24 })?, 4)?,
        })
    }

    /// The table of sections that the header names. Of more than 16 bits hold, the first section has the
    /// count.
    fn sections(&self) -> Option<Table> {
        let table = self.table(32, 40, if self.is_64 { 58 } else { 46 })?;
        match (table.offset, table.count) {
            (1.., 0) => Some(Table { count: self.address(table.offset, 20, 32)?, ..table }),
            _ => Some(table),
        }
    }

    /// The table of segments, likewise.
    fn segments(&self) -> Option<Table> {
        let table = self.table(28, 32, if self.is_64 { 54 } else { 42 })?;
        let info = if self.is_64 { 44 } else { 28 };
        match table.count {
            0xffff => {
                let count = self.number(self.sections.offset.checked_add(info)?, 4)?;
                Some(Table { count, ..table })
            }
            _ => Some(table),
        }
    }

    /// A table whose offset the header has at one of two places, by the size of addresses, and the size of
    /// an entry at the third, before their count.
    fn table(&self, offset_32: u64, offset_64: u64, entry: u64) -> Option<Table> {
        let offset = self.address(0, offset_32, offset_64)?;
        let (entry, count) = (self.number(entry, 2)?, self.number(entry + 2, 2)?);
        Some(Table { offset, entry, count: if offset == 0 { 0 } else { count } })
    }

    /// A table all of which is in the file; of entries without a byte there could be any number.
    fn whole(&self, table: Table) -> Option<Table> {
        if table.count > 0 && table.entry == 0 {
            return None;
        }
        self.slice(table.offset, table.entry.checked_mul(table.count)?)?;
        Some(table)
    }

    /// An offset or size at a place after `at`, which depends on the size of addresses.
    fn address(&self, at: u64, place_32: u64, place_64: u64) -> Option<u64> {
        match self.is_64 {
            true => self.number(at.checked_add(place_64)?, 8),
            false => self.number(at.checked_add(place_32)?, 4),
        }
    }

    /// A number of so many bytes.
    fn number(&self, at: u64, size: u64) -> Option<u64> {
        let bytes = self.slice(at, size)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.is_big {
            true => bytes.iter().fold(0, join),
            false => bytes.iter().rev().fold(0, join),
        })
    }

    fn slice(&self, offset: u64, bytes: u64) -> Option<&'b [u8]> {
        let end = usize::try_from(offset.checked_add(bytes)?).ok()?;
        self.bytes.get(usize::try_from(offset).ok()?..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSymbol};

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("a path")).expect("a file")
    }

    #[test]
    fn symbols_are_those_that_another_reader_finds() {
        let bytes = own();
        let other = object::File::parse(&*bytes).expect("a program");
        let own = Elf::parse(&bytes).expect("a program");
        assert!(own.is_whole());
        let symbol = |symbol: object::Symbol<'_, '_>| {
            let name = symbol.name().expect("a name").to_owned();
            let is_function = symbol.kind() == object::SymbolKind::Text;
            (name, symbol.is_undefined(), symbol.is_local(), is_function)
        };
        let all: Vec<_> = other.symbols().map(symbol).collect();
        let dynamic: Vec<_> = other.dynamic_symbols().map(symbol).collect();
        for (which, expected) in [(Symbols::All, all), (Symbols::Dynamic, dynamic)] {
            let found = own.symbols(which).expect("symbols").into_iter();
            let found =
                found.map(|it| (it.name.to_owned(), it.is_undefined, it.is_local, it.is_function));
            assert!(found.eq(expected), "{which:?}");
        }
    }

    #[test]
    fn tables_of_entries_without_a_byte_are_refused() {
        // No count in the header: the first section has it, whatever it is.
        let mut bytes = vec![0; 128];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[40] = 64;
        bytes[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Elf::parse(&bytes).err(), Some(CUT_SHORT));
    }

    #[test]
    fn changed_and_cut_headers_do_no_harm() {
        let whole = own();
        let bytes = [&whole[..256], &whole[whole.len() - 4096..]].concat();
        for at in 0..256 {
            for value in [0, 1, 2, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                for end in [at, bytes.len()] {
                    if let Ok(elf) = Elf::parse(&bytes[..end]) {
                        let _ = (elf.is_whole(), elf.symbols(Symbols::All), elf.machine());
                    }
                }
            }
        }
    }
}
