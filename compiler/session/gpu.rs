//! Libraries and archives with a kernel for a GPU.
use super::{ArchiveOptions, Compiled, Error, archive_of_kernel};
use crate::{
    Interface,
    codegen::{CodegenError, SymbolScope, data_object, link_library},
};
use irc_diag::Source;
use irc_mlf::Contents;
use irc_runtime::GpuProgram;
use irc_tensor::ALIGNMENT;
use std::collections::BTreeMap;

/// The objects of a library with a kernel, by name: its interface, its PTX and its constants.
///
/// # Errors
/// If an object cannot be written.
pub(crate) fn objects(program: &GpuProgram) -> Result<Vec<(String, Vec<u8>)>, CodegenError> {
    let interface = interface(program);
    let ended = |text: &str| [text.as_bytes(), &[0]].concat();
    let constants = Some(program.constants.to_vec()).filter(|bytes| !bytes.is_empty());
    let parts = [
        ("irc_metadata", Some(ended(&interface.to_json())), 1),
        ("irc_kernel", Some(ended(&program.text)), 1),
        ("irc_constants", constants, ALIGNMENT as u64),
    ];
    let made = parts.into_iter().filter_map(|(name, bytes, alignment)| {
        let object = data_object(name, &bytes?, alignment, SymbolScope::Dynamic);
        Some(object.map(|object| (name.to_owned(), object)))
    });
    made.collect()
}

/// The interface of a library with a kernel.
fn interface(program: &GpuProgram) -> Interface {
    Interface { convention: Interface::KERNEL, ..program.kernel.interface.clone() }
}

/// A shared library with the kernel of PTX of [`Model::emit`](crate::Model::emit) or
/// [`PlanFile::ptx`](crate::session::PlanFile::ptx), which irc's runtime runs on a GPU.
///
/// # Errors
/// PTX that irc has not written, or no linker.
pub fn library(source: &Source, ptx: &[u8]) -> Result<Compiled, Error> {
    compiled(ptx).map_err(|error| Error::new(source.clone(), error.into()))
}

/// As [`library`], without the model for diagnostics.
pub(crate) fn compiled(ptx: &[u8]) -> Result<Compiled, CodegenError> {
    let program = program(ptx)?;
    let objects = objects(&program)?;
    let objects = objects.iter().map(|(name, object)| (name.clone(), object.as_slice()));
    let library = link_library(objects)?.bytes;
    Ok(Compiled { library, interface: interface(&program), constants: vec![] })
}

/// The contents of an archive with such a kernel, for [`irc_mlf::build`]. Other clients than irc's runtime report that its
/// code is for a GPU.
///
/// # Errors
/// As [`library`]; inputs and outputs that clients of archives do not have.
pub fn archive(source: &Source, ptx: &[u8], options: &ArchiveOptions) -> Result<Contents, Error> {
    let contents = program(ptx).map_err(Into::into);
    let contents =
        contents.and_then(|program| archive_of_kernel(&program, BTreeMap::new(), options));
    contents.map_err(|error| Error::new(source.clone(), error))
}

/// The kernel of PTX that irc has written.
pub(crate) fn program(ptx: &[u8]) -> Result<GpuProgram, CodegenError> {
    GpuProgram::from_ptx(&String::from_utf8_lossy(ptx)).map_err(CodegenError::new)
}
