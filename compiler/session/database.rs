//! The salsa database: one input per file, and a log of executed queries.
use crate::import::{FrontEnd, InputFile, Parsed};
use irc_diag::Source;
use std::sync::{Arc, Mutex, PoisonError};

/// An input of the user.
#[salsa::input]
pub struct Input {
    /// The file or program.
    #[returns(ref)]
    pub contents: Contents,
}

/// The contents of an input.
#[derive(Clone)]
pub enum Contents {
    /// A file of a format that can be imported as a graph.
    File(&'static FrontEnd, Arc<InputFile>),
    /// A program that already is a graph.
    Program(Parsed),
    /// The text of an ARK plan.
    Plan(Source),
}

/// The storage of the session.
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
    /// Returns and clears the log of executed queries.
    pub fn take_executed(&self) -> Vec<String> {
        std::mem::take(&mut self.executed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
