//! Fetches documents from servers, with a cache in a folder.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::Files;
use bytes::Bytes;
use ureq::tls::{RootCerts, TlsConfig};

/// Options of fetching.
///
/// A document is fetched once: remove its file from the cache to fetch it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Folder of the cache, with a file for each URL named by the URL's hash.
    pub cache: PathBuf,
    /// Time limit for one document.
    pub timeout: Duration,
}

/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: u32 = 4;

impl Fetch {
    /// Fetches into a folder, with a limit of 30 seconds per document.
    pub fn into_folder(cache: impl Into<PathBuf>) -> Self {
        Self { cache: cache.into(), timeout: Duration::from_secs(30) }
    }

    /// The document of a URL, of at most so many bytes.
    pub(super) fn get(
        &self,
        url: &str,
        max_bytes: u64,
        files: &dyn Files,
    ) -> Result<Bytes, String> {
        let path = self.cache.join(format!("{}.lib", blake3::hash(url.as_bytes()).to_hex()));
        if let Ok(bytes) = files.read(&path) {
            return Ok(bytes);
        }
        let bytes = self.fetch(url, max_bytes)?;
        // A failure to write the cache is ignored.
        let _ = files.keep(&path, &bytes);
        Ok(bytes.into())
    }

    fn fetch(&self, url: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
        // The roots that the system trusts.
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(self.timeout))
            .max_redirects(MAX_REDIRECTS)
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let response = agent.get(url).call().map_err(|error| error.to_string())?;
        let mut bytes = vec![];
        let mut body = response.into_body().into_reader().take(max_bytes + 1);
        body.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > max_bytes {
            return Err(format!("it has more than {max_bytes} bytes"));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryFiles;

    #[test]
    fn the_cache_may_be_in_memory() {
        let url = "https://example.invalid/a.onnx";
        let name = format!("cache/{}.lib", blake3::hash(url.as_bytes()).to_hex());
        let files = MemoryFiles::new().with(name, "abc");
        let found = Fetch::into_folder("cache").get(url, 10, &files).expect("a cached document");
        assert_eq!(found, "abc");
    }
}
