//! The processor features that machine code uses, from its instructions.
//!
//! All code is decoded, from the symbol of each function to the next. Constants that a code generator puts
//! after the instructions of a function, as Cranelift does, are decoded like instructions, so the result is an
//! upper bound. It never exceeds the features of the target, with which it is intersected.
use super::CodegenError;
use crate::interface::Interface;
use iced_x86::{CpuidFeature, Decoder, DecoderOptions};
use object::{Architecture, File, Object, ObjectSection, ObjectSymbol, SectionKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// Prefix of the symbols of model metadata.
const METADATA: &str = "irc_metadata";

/// The features that the code of an object or library uses, by plain name; `None` for an architecture other
/// than x86-64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFeatures(Option<BTreeSet<String>>);

impl UsedFeatures {
    /// Those among `possible`, the features of the target.
    pub fn among(&self, possible: Vec<String>) -> Vec<String> {
        let is_used =
            |name: &String| self.0.as_ref().is_none_or(|used| used.contains(&plain(name)));
        possible.into_iter().filter(is_used).collect()
    }
}

/// Restricts the features that the metadata in an object or library require, which are those of the target, to
/// those that its code uses. Returns these.
///
/// # Errors
/// The file cannot be read.
pub fn restrict_metadata(file: &mut [u8]) -> Result<UsedFeatures, CodegenError> {
    let used = UsedFeatures(decode(&File::parse(&*file)?)?);
    for (place, text) in restricted_metadata(file, &used)? {
        let (start, rest) = file[place].split_at_mut(text.len());
        start.copy_from_slice(text.as_bytes());
        rest.fill(0);
    }
    Ok(used)
}

/// The ranges of metadata in a file, and their new text, which is never longer than its range.
fn restricted_metadata(
    file: &[u8],
    used: &UsedFeatures,
) -> Result<Vec<(Range<usize>, String)>, CodegenError> {
    let object = File::parse(file)?;
    let offsets = object.symbols().filter_map(|symbol| offset(&object, &symbol));
    let mut found = vec![];
    for start in offsets {
        let text = file[start..].split(|byte| *byte == 0).next().unwrap_or_default();
        let wrong = |error| CodegenError::new(format!("metadata of a model: {error}"));
        let mut interface = Interface::from_json(&String::from_utf8_lossy(text)).map_err(wrong)?;
        interface.requires = used.among(interface.requires);
        found.push((start..start + text.len(), interface.to_json()));
    }
    Ok(found)
}

/// The file offset of a symbol, if it is metadata.
fn offset<'d>(object: &File<'d>, symbol: &impl ObjectSymbol<'d>) -> Option<usize> {
    symbol.name().ok().filter(|name| name.starts_with(METADATA))?;
    let section = object.section_by_index(symbol.section_index()?).ok()?;
    let (start, _) = section.file_range()?;
    usize::try_from(start + symbol.address().checked_sub(section.address())?).ok()
}

/// The features that code uses, by plain name; `None` for an architecture other than x86-64.
fn decode(object: &File<'_>) -> Result<Option<BTreeSet<String>>, CodegenError> {
    if object.architecture() != Architecture::X86_64 {
        return Ok(None);
    }
    let mut starts: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for symbol in object.symbols() {
        if let Some(section) = symbol.section_index() {
            starts.entry(section.0).or_default().insert(symbol.address());
        }
    }
    let mut used = BTreeSet::new();
    for section in object.sections().filter(|section| section.kind() == SectionKind::Text) {
        let mut rest = section.data()?;
        let mut begin = section.address();
        for end in starts.remove(&section.index().0).unwrap_or_default() {
            let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX);
            let (function, others) = rest.split_at(length.min(rest.len()));
            add_features(function, &mut used);
            (rest, begin) = (others, end.max(begin));
        }
        add_features(rest, &mut used);
    }
    Ok(Some(used.into_iter().map(|feature| name(&feature)).collect()))
}

/// Adds the features that instructions need.
fn add_features(code: &[u8], used: &mut BTreeSet<CpuidFeature>) {
    for instruction in &mut Decoder::new(64, code, DecoderOptions::NONE) {
        used.extend(instruction.cpuid_features());
    }
}

/// The plain name of a feature.
fn name(feature: &CpuidFeature) -> String {
    match feature {
        CpuidFeature::BMI1 => "bmi".to_owned(),
        _ => plain(&format!("{feature:?}")),
    }
}

/// A feature name of LLVM or of the decoder without differences in spelling: `SSE4_1` and `sse4.1`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_runtime::processor::FEATURES;
    use object::{
        BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope,
        write::{Object, StandardSection, Symbol, SymbolSection},
    };

    const RET: u8 = 0xc3;
    /// `vaddps ymm0, ymm0, ymm1`
    const AVX: [u8; 4] = [0xc5, 0xfc, 0x58, 0xc1];
    /// `vfmadd231ps ymm0, ymm1, ymm2`
    const FMA: [u8; 5] = [0xc4, 0xe2, 0x75, 0xb8, 0xc2];

    /// An object with one symbol for each piece of code or text.
    fn object(pieces: &[(&str, StandardSection, &[u8])]) -> Vec<u8> {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        for (name, section, bytes) in pieces {
            let id = object.section_id(*section);
            let value = object.append_section_data(id, bytes, 1);
            let is_code = *section == StandardSection::Text;
            object.add_symbol(Symbol {
                name: name.as_bytes().to_vec(),
                value,
                size: bytes.len() as u64,
                kind: if is_code { SymbolKind::Text } else { SymbolKind::Data },
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(id),
                flags: SymbolFlags::None,
            });
        }
        object.write().expect("an object")
    }

    fn used(functions: &[&'static [u8]]) -> Vec<String> {
        let function = |code: &&'static [u8]| ("f", StandardSection::Text, *code);
        let functions: Vec<_> = functions.iter().map(function).collect();
        let used = restrict_metadata(&mut object(&functions)).expect("features");
        used.among(["avx", "avx2", "fma"].map(str::to_owned).into())
    }

    #[test]
    fn the_decoder_knows_every_feature() {
        let known: BTreeSet<String> =
            CpuidFeature::values().map(|feature| name(&feature)).collect();
        for feature in FEATURES {
            assert!(known.contains(&plain(feature.name)), "{}", feature.name);
        }
    }

    #[test]
    fn code_requires_what_it_uses_and_nothing_else() {
        assert_eq!(used(&[&[RET]]), Vec::<String>::new());
        assert_eq!(used(&[&[RET], &AVX]), ["avx"]);
        assert_eq!(used(&[&FMA, &AVX, &[RET]]), ["avx", "fma"]);
    }

    #[test]
    fn each_function_is_decoded_from_its_start() {
        // The first piece ends in a byte that, with the second, would be another instruction.
        assert_eq!(used(&[&[RET, 0x48, 0xb8], &AVX]), ["avx"]);
    }

    #[test]
    fn metadata_state_what_code_uses() {
        let requires = ["avx", "avx2", "fma"].map(str::to_owned).into();
        let mut interface = Interface { requires, ..Interface::default() };
        let text = interface.to_json() + "\0";
        let pieces = [
            ("irc_run", StandardSection::Text, &AVX[..]),
            ("irc_metadata", StandardSection::ReadOnlyData, text.as_bytes()),
        ];
        let before = object(&pieces);
        let mut after = before.clone();
        let used = restrict_metadata(&mut after).expect("metadata");
        assert_eq!(used.among(vec!["avx2".to_owned(), "avx".to_owned()]), ["avx"]);
        interface.requires = vec!["avx".to_owned()];
        let expected = format!("{:\0<width$}", interface.to_json(), width = text.len());
        let at = before.windows(text.len()).position(|part| part == text.as_bytes());
        let at = at.expect("metadata");
        assert_eq!(String::from_utf8_lossy(&after[at..at + text.len()]), expected);
        after[at..at + text.len()].copy_from_slice(text.as_bytes());
        assert_eq!(after, before);
    }
}
