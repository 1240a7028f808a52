//! External data: elements in other files, mapped and confined to the model's folder.
//!
//! Models are untrusted: the paths in them must not reach files outside of the folder, neither by `..`
//! or absolute paths, nor through symbolic or hard links.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use sha1::{Digest, Sha1};

use crate::model::{self, External, Module, Tensor, TensorData};
use crate::{FileError, Files};

/// The part of a file that a tensor refers to.
struct FileRange {
    file: String,
    begin: u64,
    end: u64,
    name: String,
    path: String,
}

/// Maps the files that tensors refer to, and sets each tensor's bytes.
pub(super) fn resolve(module: &mut Module, folder: &Path, files: &dyn Files, sink: &mut Sink) {
    let (open, digests) = (BTreeMap::new(), BTreeMap::new());
    let mut files = OpenFiles { files, folder, root: None, open, digests };
    let mut taken = vec![];
    module.visit_tensors_mut(&mut |tensor, at| {
        let expected = tensor.count().ok().and_then(|count| tensor.element.bytes_of(count));
        let Tensor { name, data: TensorData::External(external), .. } = tensor else { return };
        if external.location.is_empty() {
            return; // Reported by the reader.
        }
        let name = name.clone().unwrap_or_default();
        match files.bytes(external, expected) {
            Ok(bytes) => {
                let (begin, path) = (external.offset, at.to_string());
                let (end, file) = (begin + bytes.len() as u64, external.location.clone());
                taken.push(FileRange { file, begin, end, name, path });
                external.bytes = Some(bytes);
            }
            Err(rejection) => sink.push(rejection.diagnostic(&name, at)),
        }
    });
    check_overlap(taken, sink);
}

/// The reason why a tensor has no valid elements.
#[derive(Clone)]
struct ExternalError {
    code: &'static str,
    message: String,
    help: Option<&'static str>,
}

impl ExternalError {
    fn new(message: String) -> Self {
        Self { code: "cir-external", message, help: None }
    }

    /// A diagnostic for a path that may leave the folder.
    fn path(location: &str, what: &str) -> Self {
        let message = format!("`{location}` {what}");
        Self { code: "cir-external-path", message, help: None }
    }

    fn diagnostic(self, name: &str, at: &model::Path<'_>) -> Diagnostic {
        let message = format!("external data of tensor `{name}`: {}", self.message);
        let diagnostic = Diagnostic::error(self.code, message).path(at.to_string());
        self.help.into_iter().fold(diagnostic, Diagnostic::help)
    }
}

/// The open files of a folder.
struct OpenFiles<'f> {
    files: &'f dyn Files,
    folder: &'f Path,
    /// The folder without links.
    root: Option<PathBuf>,
    open: BTreeMap<String, Result<Bytes, ExternalError>>,
    /// SHA1 digests, in hexadecimal, of those files whose tensors state one.
    digests: BTreeMap<String, String>,
}

impl OpenFiles<'_> {
    fn bytes(
        &mut self,
        external: &External,
        expected: Option<u64>,
    ) -> Result<Bytes, ExternalError> {
        let location = &external.location;
        if !self.open.contains_key(location) {
            let opened = self.map(location);
            self.open.insert(location.clone(), opened);
        }
        let file = self.open[location].clone()?;
        self.verify(external, &file)?;
        range(&file, external, expected)
    }

    /// Compares a file with the SHA1 digest that a tensor may state: of the whole file, according to ONNX's
    /// specification of external data. Each file is hashed once.
    fn verify(&mut self, external: &External, file: &Bytes) -> Result<(), ExternalError> {
        let stated = external.others.iter().find(|(key, _)| key == "checksum");
        let Some((_, stated)) = stated else { return Ok(()) };
        let digest = || Sha1::digest(file).iter().map(|byte| format!("{byte:02x}")).collect();
        let location = &external.location;
        let found = self.digests.entry(location.clone()).or_insert_with(digest);
        if stated.eq_ignore_ascii_case(found) {
            return Ok(());
        }
        let message =
            format!("`checksum` is {stated}, but the SHA1 digest of `{location}` is {found}");
        let help = Some("the file was changed since the model was written");
        Err(ExternalError { code: "cir-external-checksum", message, help })
    }

    fn map(&mut self, location: &str) -> Result<Bytes, ExternalError> {
        let cannot = |error: std::io::Error| {
            ExternalError::new(format!("cannot read `{location}`: {error}"))
        };
        let root = match &self.root {
            Some(root) => root.clone(),
            None => self.files.folder(self.folder).map_err(cannot)?,
        };
        self.root = Some(root.clone());
        let read = self.files.read_within(&root, Path::new(location));
        read.map(|(_, bytes)| bytes).map_err(|error| match error {
            FileError::Unreadable(error) => cannot(error),
            error => ExternalError {
                help: error.help(),
                ..ExternalError::path(location, &error.to_string())
            },
        })
    }
}

/// The range of the file that a tensor refers to: of the stated length, or of the size of the tensor.
fn range(file: &Bytes, external: &External, expected: Option<u64>) -> Result<Bytes, ExternalError> {
    let (size, begin) = (file.len() as u64, external.offset);
    let error = |message: String| Err(ExternalError::new(message));
    let length = match (external.length, expected) {
        (Some(length), Some(expected)) if length != expected => {
            return error(format!("`length` is {length}, but its sizes need {expected} bytes"));
        }
        (Some(length), _) | (None, Some(length)) => length,
        (None, None) => size.saturating_sub(begin),
    };
    let end = begin.checked_add(length).filter(|end| *end <= size);
    let Some(end) = end else {
        let location = &external.location;
        return error(format!(
            "{length} bytes at offset {begin} exceed `{location}`, which has {size}"
        ));
    };
    Ok(file.slice(begin as usize..end as usize))
}

/// Tensors may share the same bytes, but must not overlap partially.
fn check_overlap(mut taken: Vec<FileRange>, sink: &mut Sink) {
    taken.sort_by(|a, b| (&a.file, a.begin, a.end).cmp(&(&b.file, b.begin, b.end)));
    let mut widest: Option<&FileRange> = None;
    for next in &taken {
        let before = widest.filter(|before| before.file == next.file);
        if let Some(before) = before
            && next.begin < before.end
            && (next.begin, next.end) != (before.begin, before.end)
            && next.begin < next.end
        {
            let FileRange { file, begin, end, name, path } = next;
            let message = format!(
                "external data of tensor `{name}`: bytes {begin} to {end} of `{file}` overlap \
                 those of tensor `{}`, {} to {}",
                before.name, before.begin, before.end
            );
            let diagnostic = Diagnostic::error("cir-external-overlap", message).path(path.clone());
            sink.push(diagnostic.related(before.path.clone(), "the other tensor"));
        }
        if before.is_none_or(|before| next.end > before.end) {
            widest = Some(next);
        }
    }
}
