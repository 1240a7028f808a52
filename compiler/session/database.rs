//! The salsa database: one input per file, and a log of what was executed.
use irc_diag::Source;
use std::sync::{Arc, Mutex, PoisonError};

/// A file as the user gave it.
#[salsa::input(debug)]
pub struct SourceFile {
    /// Name and text.
    #[returns(ref)]
    pub source: Source,
}

/// The session's memory.
#[salsa::db]
#[derive(Clone)]
pub struct Database {
    storage: salsa::Storage<Self>,
    executed: Arc<Mutex<Vec<String>>>,
}

#[salsa::db]
impl salsa::Database for Database {}

impl Default for Database {
    fn default() -> Self {
        let executed: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&executed);
        let storage = salsa::Storage::new(Some(Box::new(move |event| {
            if let salsa::EventKind::WillExecute { database_key } = event.kind {
                let text = format!("{database_key:?}");
                let name = text.split('(').next().unwrap_or(&text).to_owned();
                log.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            }
        })));
        Self { storage, executed }
    }
}

impl Database {
    /// What was executed since the last call.
    pub fn take_executed(&self) -> Vec<String> {
        std::mem::take(&mut self.executed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
