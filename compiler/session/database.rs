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

/// Called from time to time by a search, on the thread that started it.
pub type SearchObserver = Arc<dyn Fn(irc_npu_schedule::Progress) + Send + Sync>;

/// A database whose searches are observed.
#[salsa::db]
pub trait Observed: salsa::Database {
    /// The observer, if there is one. It does not change results.
    fn search_observer(&self) -> Option<SearchObserver>;
}

/// The storage of the session.
#[salsa::db]
#[derive(Clone)]
pub struct Database {
    storage: salsa::Storage<Self>,
    executed: Arc<Mutex<Vec<String>>>,
    search_observer: Arc<Mutex<Option<SearchObserver>>>,
}

#[salsa::db]
impl salsa::Database for Database {}

#[salsa::db]
impl Observed for Database {
    fn search_observer(&self) -> Option<SearchObserver> {
        self.search_observer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

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
        Self { storage, executed, search_observer: Arc::default() }
    }
}

impl Database {
    /// Has an observer of searches.
    pub fn observe_search(&self, observer: SearchObserver) {
        let mut current = self.search_observer.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(observer);
    }

    /// Returns and clears the log of executed queries.
    pub fn take_executed(&self) -> Vec<String> {
        std::mem::take(&mut self.executed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
