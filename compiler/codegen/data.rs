//! Objects that contain only data.
use super::CodegenError;
use object::{
    Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope,
    write::{Object, StandardSection, Symbol, SymbolSection},
};

/// An object whose one symbol is constant bytes, aligned to `alignment`, and visible only to other objects
/// of the library.
///
/// # Errors
/// If the object cannot be written.
pub fn data_object(name: &str, bytes: &[u8], alignment: u64) -> Result<Vec<u8>, CodegenError> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.section_id(StandardSection::ReadOnlyData);
    let value = object.append_section_data(section, bytes, alignment);
    object.add_symbol(Symbol {
        name: name.into(),
        value,
        size: bytes.len() as u64,
        kind: SymbolKind::Data,
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    object.write().map_err(|error| CodegenError::new(error.to_string()))
}
