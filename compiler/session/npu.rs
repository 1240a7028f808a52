//! The queries from a model to a program of the NPU: `imported → npu_layers → npu_tree → npu_schedule → npu_program`.
use super::{
    Session,
    database::{Input, Observed},
    error::{Error, QueryError},
    queries,
};
use irc_diag::{Diagnostic, Sink, Source, counted};
use irc_gemini_format::{FileKind, schedule::Schedule};
use irc_npu::{Fingerprint, Program};
use irc_npu_cost::{Evaluation, Machine, Model as CostModel, Network, Objective, Tree, parse};
use irc_npu_lower::{
    Boundary, Division, Goal, LayerFacts, LayerNumbers, Layers, Pieces, Report, Scheduled, Target,
    divide, fingerprint, known_layers, layers, numbers, program, schedule, stated_splits,
};
use irc_npu_schedule::{Options as Search, Segment, Splits, explain_tree};

use std::sync::Arc;

/// How a model is scheduled for an NPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NpuOptions {
    /// The NPU.
    pub target: Target,
    /// Images at once; those of the model's inputs if `None`.
    pub batch: Option<u64>,
    /// What the schedule minimises.
    pub goal: Goal,
    /// The tree; a search finds one if `None`.
    pub tree: Option<NpuTree>,
}

impl From<Target> for NpuOptions {
    fn from(target: Target) -> Self {
        Self { target, batch: None, goal: Goal::default(), tree: None }
    }
}

/// A resource allocation tree in SET's text form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NpuTree {
    /// The name of its file.
    pub name: String,
    /// Its text.
    pub text: Arc<str>,
}

/// A scheduled model.
#[derive(Clone, Debug)]
pub struct NpuModel {
    /// The layers that are scheduled: those of the model, or pieces of them.
    pub layers: Arc<Layers>,
    /// The pieces.
    pub splits: Splits,
    /// What is known of each of these layers beside its shape.
    pub facts: Vec<LayerFacts>,
    /// The machine.
    pub machine: Machine,
    /// The tree, by the options.
    pub tree: Tree,
    /// The objective that selects the mappings of layers to cores.
    pub mappings: Objective,
    /// Its cost.
    pub evaluation: Evaluation,
    /// The same, by segments and layers.
    pub report: Report,
    /// Why the segments of the report are as they are.
    pub segments: Vec<Segment>,
}

/// Options as a key.
#[salsa::interned(debug)]
pub struct NpuKey<'db> {
    #[returns(ref)]
    pub options: NpuOptions,
}

/// The pieces into which layers are split as a key.
#[salsa::interned(debug)]
pub struct SplitsKey<'db> {
    #[returns(ref)]
    pub splits: Splits,
}

/// An error in the model's file, or in that of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum NpuError {
    /// In the model.
    Model(QueryError),
    /// In the tree.
    Tree(Vec<Diagnostic>),
}

impl From<QueryError> for NpuError {
    fn from(error: QueryError) -> Self {
        Self::Model(error)
    }
}

/// The layers of a model.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_layers(db: &dyn salsa::Database, input: Input) -> Result<Arc<Layers>, QueryError> {
    let found = layers(&queries::imported(db, input)?.graph);
    found.map(Arc::new).map_err(|found| located(db, input, found))
}

/// The layers of a model in pieces.
#[salsa::tracked(returns(clone), no_eq)]
fn npu_pieces<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    key: SplitsKey<'db>,
) -> Result<Arc<Pieces>, QueryError> {
    let pieces = npu_layers(db, input)?.pieces(key.splits(db));
    pieces.map(Arc::new).map_err(|error| QueryError::found(vec![*error]))
}

/// The layers of a model, of which some are in pieces.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_layers_in_pieces<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    key: SplitsKey<'db>,
) -> Result<Arc<Layers>, QueryError> {
    match key.splits(db).is_empty() {
        true => npu_layers(db, input),
        false => npu_pieces(db, input, key).map(|pieces| pieces.layers.clone()),
    }
}

/// The model as steps for the host and an NPU.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_division(db: &dyn salsa::Database, input: Input) -> Result<Arc<Division>, QueryError> {
    let found = divide(&queries::imported(db, input)?.graph);
    found.map(Arc::new).map_err(|found| located(db, input, found))
}

/// The values of a quantised model on an NPU.
#[derive(Clone, Debug)]
pub struct NpuValues {
    /// The layers of the model, or pieces of them.
    pub layers: Arc<Layers>,
    /// The pieces.
    pub splits: Splits,
    /// What each of them computes.
    pub numbers: Arc<Vec<LayerNumbers>>,
    /// Its inputs and outputs.
    pub boundary: Boundary,
}

impl NpuValues {
    /// What programs of `images` at once contain of the model.
    pub fn fingerprint(&self, images: u64) -> Fingerprint {
        fingerprint(&self.layers, &self.splits, &self.numbers, images)
    }
}

/// What the layers of a quantised model compute.
#[salsa::tracked(returns(clone), no_eq)]
fn npu_numbers(
    db: &dyn salsa::Database,
    input: Input,
) -> Result<Arc<Vec<LayerNumbers>>, QueryError> {
    let layers = npu_layers(db, input)?;
    let found = numbers(&queries::imported(db, input)?.graph, &layers);
    found.map(Arc::new).map_err(|found| located(db, input, found))
}

/// The values of a quantised model, of whose layers some are in pieces.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_values<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    key: SplitsKey<'db>,
) -> Result<Arc<NpuValues>, QueryError> {
    let imported = queries::imported(db, input)?;
    let graph = &imported.graph;
    let whole = npu_layers(db, input)?;
    let splits = key.splits(db);
    let mut numbers = npu_numbers(db, input)?;
    if !splits.is_empty() {
        let pieces = npu_pieces(db, input, key)?;
        let found = pieces.numbers(graph, &whole, &numbers);
        numbers = Arc::new(found.map_err(|found| located(db, input, vec![found]))?);
    }
    let layers = npu_layers_in_pieces(db, input, key)?;
    let boundary = Boundary::new(graph, &layers, &numbers);
    Ok(Arc::new(NpuValues { layers, splits: splits.clone(), numbers, boundary }))
}

/// The scheduled model.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_tree<'db>(
    db: &'db dyn Observed,
    input: Input,
    key: NpuKey<'db>,
) -> Result<Arc<NpuModel>, NpuError> {
    let options = key.options(db);
    let machine = options.target.machine();
    let machine = machine.map_err(|message| QueryError::at("npu-target", message))?;
    let found = npu_layers(db, input)?;
    let batch = options.batch.unwrap_or(found.images);
    let objective = options.goal.objective();
    let failed = |error: Box<Diagnostic>| NpuError::Model(of_layer(db, input, &found, *error));
    let Some(text) = &options.tree else {
        let observer = db.search_observer();
        let progress = |progress| observer.iter().for_each(|observer| observer(progress));
        let search = Search { objective, progress: Some(&progress), ..Search::default() };
        let made = irc_npu_schedule::schedule(&found.network, &machine, batch, &search);
        let made = made.map_err(failed)?;
        let key = SplitsKey::new(db, made.splits.clone());
        let layers = npu_layers_in_pieces(db, input, key)?;
        let mappings = made.mappings;
        let report = Report::new(&made.network, &machine, mappings, &made.tree, &made.evaluation);
        return Ok(Arc::new(NpuModel {
            report: report.map_err(failed)?,
            mappings,
            facts: layers.facts(),
            layers,
            splits: made.splits,
            machine,
            tree: made.tree,
            evaluation: made.evaluation,
            segments: made.segments,
        }));
    };
    let of_tree = |error: Box<Diagnostic>| NpuError::Tree(vec![*error]);
    let splits = stated_splits(text.text.split_whitespace(), &found.network);
    let key = SplitsKey::new(db, splits.clone());
    // A tree of other pieces has a layer that the network does not have.
    let (layers, splits) = match npu_layers_in_pieces(db, input, key) {
        Ok(layers) => (layers, splits),
        Err(_) => (found.clone(), Splits::default()),
    };
    let network = &layers.network;
    let tree = tree_of(text, network)?;
    if options.batch.is_some_and(|batch| batch != tree.batch) {
        let message = format!("the tree is for {}, not for {batch}", counted(tree.batch, "image"));
        return Err(NpuError::Tree(vec![Diagnostic::error("npu-batch", message)]));
    }
    let mut model = CostModel::new(network, &machine, objective).map_err(failed)?;
    let evaluation = model.evaluate(&tree).map_err(of_tree)?;
    let report = Report::new(network, &machine, objective, &tree, &evaluation);
    let segments = explain_tree(network, &machine, objective, &tree).map_err(of_tree)?;
    Ok(Arc::new(NpuModel {
        report: report.map_err(of_tree)?,
        mappings: objective,
        facts: layers.facts(),
        layers,
        splits,
        machine,
        tree,
        evaluation,
        segments,
    }))
}

fn tree_of(text: &NpuTree, network: &Network) -> Result<Tree, NpuError> {
    let mut sink = Sink::new();
    let tree = parse(&Source::new(&text.name, &*text.text), network, &mut sink);
    tree.ok_or_else(|| NpuError::Tree(sink.into_diagnostics()))
}

/// The schedule of a model.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_schedule<'db>(
    db: &'db dyn Observed,
    input: Input,
    key: NpuKey<'db>,
) -> Result<Arc<Schedule>, NpuError> {
    let model = npu_tree(db, input, key)?;
    let of = Scheduled {
        network: &model.layers.network,
        facts: &model.facts,
        machine: &model.machine,
        target: Some(&key.options(db).target),
        tree: &model.tree,
        evaluation: &model.evaluation,
        objective: model.mappings,
    };
    let made = schedule(&of).map_err(|error| QueryError::found(vec![*error]))?;
    Ok(Arc::new(made))
}

/// The program of a model.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_program<'db>(
    db: &'db dyn Observed,
    input: Input,
    key: NpuKey<'db>,
) -> Result<Arc<Program>, NpuError> {
    let model = npu_tree(db, input, key)?;
    let schedule = npu_schedule(db, input, key)?;
    // Of other models than quantised ones, programs have placeholder constants.
    let values = npu_values(db, input, SplitsKey::new(db, model.splits.clone())).ok();
    let numbers = values.iter().flat_map(|values| values.numbers.iter());
    let arithmetic: Vec<_> = numbers.map(|layer| layer.arithmetic).collect();
    let own = values.map(|values| values.fingerprint(model.tree.batch));
    let known = known_layers(&model.layers.network, &model.facts, &arithmetic);
    let made = program(&schedule, None, &known);
    let made = made.map(|program| Arc::new(Program { model: own, ..program }));
    made.map_err(|found| {
        let imported = queries::imported(db, input);
        let place = |one: irc_npu_emit::FileDiagnostic| {
            let workload = workload_of(&schedule, &one);
            let layer = workload.and_then(|name| model.layers.network.find(name));
            let diagnostic = Diagnostic { path: None, ..one.diagnostic };
            match (layer, &imported) {
                (Some(layer), Ok(imported)) => {
                    model.layers.locate(&imported.graph, layer, diagnostic)
                }
                _ => diagnostic,
            }
        };
        NpuError::Model(located(db, input, found.into_iter().map(place).collect()))
    })
}

/// A diagnostic of scheduling, at the node of the layer that a note or the message names.
fn of_layer(
    db: &dyn salsa::Database,
    input: Input,
    layers: &Layers,
    error: Diagnostic,
) -> QueryError {
    let named = |text: &String| {
        let name = text.strip_prefix("layer ")?.split([' ', ':']).next()?;
        layers.network.find(name)
    };
    let named = error.notes.iter().chain([&error.message]).find_map(named);
    let Some(layer) = named else { return QueryError::found(vec![error]) };
    match queries::imported(db, input) {
        Ok(imported) => located(db, input, vec![layers.locate(&imported.graph, layer, error)]),
        Err(error) => error,
    }
}

/// The layer of the workload that a diagnostic is about.
fn workload_of<'s>(
    schedule: &'s Schedule,
    found: &irc_npu_emit::FileDiagnostic,
) -> Option<&'s str> {
    let path = found.diagnostic.path.as_deref().filter(|_| found.file == FileKind::Schedule)?;
    let is_of = |core: usize, index: usize| {
        let rest = path.strip_prefix(&schedule.workload_path((core, index)));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut all = schedule.workloads();
    let found = all.find(|(core, index, _)| is_of(*core, *index));
    found.map(|(_, _, workload)| workload.layer_name.as_str())
}

/// Diagnostics with paths in the model, located in its file.
fn located(db: &dyn salsa::Database, input: Input, mut found: Vec<Diagnostic>) -> QueryError {
    if let Some(document) = &queries::parsed(db, input).document {
        document.locate(&mut found);
    }
    QueryError::found(found)
}

impl Session {
    /// The layers of an input that an NPU computes, of which some are in pieces.
    pub(crate) fn npu_layers(&self, input: Input, splits: &Splits) -> Result<Arc<Layers>, Error> {
        let key = SplitsKey::new(&self.database, splits.clone());
        let found = npu_layers_in_pieces(&self.database, input, key);
        found.map_err(|error| Error::new(queries::source(&self.database, input), error))
    }

    /// An input as steps for the host and an NPU, with the reasons at their places.
    pub(crate) fn npu_division(
        &self,
        input: Input,
    ) -> Result<(Arc<Division>, Vec<Diagnostic>), Error> {
        let found = npu_division(&self.database, input);
        let found =
            found.map_err(|error| Error::new(queries::source(&self.database, input), error))?;
        let mut reasons = found.reasons.clone();
        if let Some(document) = &queries::parsed(&self.database, input).document {
            document.locate(&mut reasons);
        }
        Ok((found, reasons))
    }

    /// The values of an input on an NPU, of whose layers some are in pieces.
    pub(crate) fn npu_values(
        &self,
        input: Input,
        splits: &Splits,
    ) -> Result<Arc<NpuValues>, Error> {
        let key = SplitsKey::new(&self.database, splits.clone());
        let found = npu_values(&self.database, input, key);
        found.map_err(|error| Error::new(queries::source(&self.database, input), error))
    }

    /// An input, scheduled for an NPU.
    pub(crate) fn npu(&self, input: Input, options: &NpuOptions) -> Result<Arc<NpuModel>, Error> {
        self.npu_query(input, options, npu_tree)
    }

    /// The schedule of an input.
    pub(crate) fn npu_schedule(
        &self,
        input: Input,
        options: &NpuOptions,
    ) -> Result<Arc<Schedule>, Error> {
        self.npu_query(input, options, npu_schedule)
    }

    /// The program of an input.
    pub(crate) fn npu_program(
        &self,
        input: Input,
        options: &NpuOptions,
    ) -> Result<Arc<Program>, Error> {
        self.npu_query(input, options, npu_program)
    }

    fn npu_query<T>(
        &self,
        input: Input,
        options: &NpuOptions,
        query: impl for<'db> FnOnce(&'db dyn Observed, Input, NpuKey<'db>) -> Result<Arc<T>, NpuError>,
    ) -> Result<Arc<T>, Error> {
        let key = NpuKey::new(&self.database, options.clone());
        query(&self.database, input, key).map_err(|error| self.npu_error(input, options, error))
    }

    fn npu_error(&self, input: Input, options: &NpuOptions, error: NpuError) -> Error {
        let source = || queries::source(&self.database, input);
        match (error, &options.tree) {
            (NpuError::Model(error), _) => Error::new(source(), error),
            (NpuError::Tree(found), Some(tree)) => {
                Error::found(Source::new(&tree.name, &*tree.text), found)
            }
            (NpuError::Tree(found), None) => Error::found(source(), found),
        }
    }
}
