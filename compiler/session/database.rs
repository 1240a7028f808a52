//! The salsa database: one input per file, and a log of what was executed.
use crate::import::{FrontEnd, InputFile, Parsed};
use irc_diag::Source;
use std::sync::{Arc, Mutex, PoisonError};

/// What the user gave.
#[salsa::input]
pub struct Input {
    /// The file or program.
    #[returns(ref)]
    pub contents: Contents,
}

/// What an input is.
#[derive(Clone)]
pub enum Contents {
    /// A file of a format that becomes a graph.
    File(&'static FrontEnd, Arc<InputFile>),
    /// A program that is a graph already.
    Program(Parsed),
    /// The text of an ARK plan.
    Plan(Source),
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
