//! Objects that contain only data.
use super::CodegenError;
pub use object::SymbolScope;
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind,
    write::{Object, StandardSection, Symbol, SymbolSection},
};

/// An object whose one symbol is constant bytes, aligned to `alignment`.
///
/// # Errors
/// If the object cannot be written.
pub fn data_object(
    name: &str,
    bytes: &[u8],
    alignment: u64,
    scope: SymbolScope,
) -> Result<Vec<u8>, CodegenError> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.section_id(StandardSection::ReadOnlyData);
    // Not copied, as weights may be large.
    object.set_section_data(section, bytes, alignment);
    object.add_symbol(Symbol {
        name: name.into(),
        value: 0,
        size: bytes.len() as u64,
        kind: SymbolKind::Data,
        scope,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    // Without this section, linkers make the stack of the program executable.
    object.add_section(vec![], b".note.GNU-stack".to_vec(), SectionKind::Linker);
    object.write().map_err(|error| CodegenError::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object as _, ObjectSection, SectionFlags, read::File};

    #[test]
    fn constants_do_not_make_the_stack_executable() {
        let bytes = data_object("x", &[1, 2], 2, SymbolScope::Linkage).expect("an object");
        let object = File::parse(&*bytes).expect("an object");
        let section = object.section_by_name(".note.GNU-stack").expect("the mark");
        assert!(matches!(section.flags(), SectionFlags::Elf { sh_flags: 0 }));
    }
}
