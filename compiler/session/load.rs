//! Loads libraries from memory.
use irc_runtime::RunError;
use std::path::Path;

/// Loads a library from a temporary file, which is deleted afterwards.
pub(crate) fn with_file<T>(
    library: &[u8],
    load: impl FnOnce(&Path) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let unwritable = |error: std::io::Error| RunError::Load {
        path: std::env::temp_dir(),
        reason: error.to_string(),
    };
    let folder = tempfile::tempdir().map_err(unwritable)?;
    let path = folder.path().join("model.so");
    std::fs::write(&path, library).map_err(unwritable)?;
    load(&path)
}
