//! The queries from a model to a program of the NPU: `imported → npu_layers → npu_tree → npu_schedule → npu_program`.
use super::{
    Session,
    database::{Input, Observed},
    error::{Error, QueryError},
    queries,
};
use irc_diag::{Diagnostic, Sink, Source, counted};
use irc_gemini_format::{FileKind, schedule::Schedule};
use irc_npu::Program;
use irc_npu_cost::{Evaluation, Machine, Model as CostModel, Network, Tree, parse};
use irc_npu_lower::{
    Boundary, Division, Goal, LayerFacts, LayerNumbers, Layers, Report, Scheduled, Target, divide,
    fingerprint, known_layers, layers, numbers, program, schedule,
};
use irc_npu_schedule::{Options as Search, Segment, Share, explain_tree};
use std::{ops::Range, sync::Arc};

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
    /// The layers of the model.
    pub layers: Arc<Layers>,
    /// The layers that are scheduled: those of the model, or parts of them.
    pub network: Network,
    /// The layer of the model that each of these is, or is a part of.
    pub sources: Vec<usize>,
    /// Its output channels; `None` if it is a partial sum, or a sum of partial sums.
    pub channels: Vec<Option<Range<u64>>>,
    /// What is known of each of these beside its shape.
    pub facts: Vec<LayerFacts>,
    /// The machine.
    pub machine: Machine,
    /// The tree, by the options.
    pub tree: Tree,
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
    let imported = queries::imported(db, input)?;
    layers(&imported.graph).map(Arc::new).map_err(|found| located(db, input, found))
}

/// The model as steps for the host and an NPU.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_division(db: &dyn salsa::Database, input: Input) -> Result<Arc<Division>, QueryError> {
    let imported = queries::imported(db, input)?;
    divide(&imported.graph).map(Arc::new).map_err(|found| located(db, input, found))
}

/// The values of a quantised model on an NPU.
#[derive(Clone, Debug)]
pub struct NpuValues {
    /// The layers of the model.
    pub layers: Arc<Layers>,
    /// What each of them computes.
    pub numbers: Vec<LayerNumbers>,
    /// Its inputs and outputs.
    pub boundary: Boundary,
}

impl NpuModel {
    /// What each scheduled layer computes, of a model whose layers compute `numbers`.
    ///
    /// # Errors
    /// If a layer is divided along its input channels: the sums of its parts are not bytes.
    pub fn numbers(&self, numbers: &[LayerNumbers]) -> Result<Vec<LayerNumbers>, String> {
        let parts = self.sources.iter().zip(&self.channels).enumerate();
        let part = |(index, (source, channels)): (usize, (&usize, &Option<Range<u64>>))| {
            let name = &self.network.nodes()[index].layer.name;
            let found = numbers.get(*source).zip(channels.clone());
            let divided = || format!("layer {name}: a part of a sum, which does not fit in bytes");
            let (numbers, channels) = found.ok_or_else(divided)?;
            let whole = self.layers.network.nodes()[*source].layer.output.channels;
            numbers.part(channels, whole)
        };
        parts.map(part).collect()
    }
}

/// The values of a quantised model.
#[salsa::tracked(returns(clone), no_eq)]
pub fn npu_values(db: &dyn salsa::Database, input: Input) -> Result<Arc<NpuValues>, QueryError> {
    let graph = &queries::imported(db, input)?.graph;
    let layers = npu_layers(db, input)?;
    let numbers = numbers(graph, &layers).map_err(|found| located(db, input, found))?;
    let boundary = Boundary::new(graph, &layers, &numbers);
    Ok(Arc::new(NpuValues { layers, numbers, boundary }))
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
        let sources: Vec<usize> = made.sources.iter().map(|source| source.layer).collect();
        let parts = made.sources.iter();
        let channels =
            parts.map(|part| (part.share == Share::Whole).then(|| part.channels.clone())).collect();
        let report = Report::new(&made.network, &machine, objective, &made.tree, &made.evaluation);
        return Ok(Arc::new(NpuModel {
            report: report.map_err(failed)?,
            facts: found.facts(sources.iter().copied()),
            layers: found,
            network: made.network,
            sources,
            channels,
            machine,
            tree: made.tree,
            evaluation: made.evaluation,
            segments: made.segments,
        }));
    };
    let of_tree = |error: Box<Diagnostic>| NpuError::Tree(vec![*error]);
    let tree = tree_of(text, &found.network)?;
    if options.batch.is_some_and(|batch| batch != tree.batch) {
        let message = format!("the tree is for {}, not for {batch}", counted(tree.batch, "image"));
        return Err(NpuError::Tree(vec![Diagnostic::error("npu-batch", message)]));
    }
    let mut model = CostModel::new(&found.network, &machine, objective).map_err(failed)?;
    let evaluation = model.evaluate(&tree).map_err(of_tree)?;
    let report = Report::new(&found.network, &machine, objective, &tree, &evaluation);
    let sources: Vec<usize> = (0..found.network.nodes().len()).collect();
    let segments = explain_tree(&found.network, &machine, objective, &tree).map_err(of_tree)?;
    Ok(Arc::new(NpuModel {
        report: report.map_err(of_tree)?,
        facts: found.facts(sources.iter().copied()),
        network: found.network.clone(),
        channels: found
            .network
            .nodes()
            .iter()
            .map(|node| Some(0..node.layer.output.channels))
            .collect(),
        layers: found,
        sources,
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
        network: &model.network,
        facts: &model.facts,
        machine: &model.machine,
        target: Some(&key.options(db).target),
        tree: &model.tree,
        evaluation: &model.evaluation,
        objective: key.options(db).goal.objective(),
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
    let values = npu_values(db, input).ok();
    let numbers = values.as_ref().and_then(|values| model.numbers(&values.numbers).ok());
    let own = values.filter(|_| numbers.is_some());
    let own = own.map(|values| fingerprint(&values.layers, &values.numbers, model.tree.batch));
    let numbers = numbers.unwrap_or_default();
    let arithmetic: Vec<_> = numbers.iter().map(|layer| layer.arithmetic).collect();
    let known = known_layers(&model.network, &model.facts, &arithmetic);
    let made = program(&schedule, None, &known);
    let made = made.map(|program| Arc::new(Program { model: own, ..program }));
    made.map_err(|found| {
        let graph = queries::imported(db, input).map(|imported| imported.graph.clone());
        let place = |one: irc_npu_emit::FileDiagnostic| {
            let workload = workload_of(&schedule, &one);
            let layer = workload.and_then(|name| model.network.find(name));
            let diagnostic = Diagnostic { path: None, ..one.diagnostic };
            match (layer, &graph) {
                (Some(layer), Ok(graph)) => {
                    model.layers.locate(graph, model.sources[layer], diagnostic)
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
    let (Some(layer), Ok(imported)) = (named, queries::imported(db, input)) else {
        return QueryError::found(vec![error]);
    };
    located(db, input, vec![layers.locate(&imported.graph, layer, error)])
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
    /// The layers of an input that an NPU computes.
    pub(crate) fn npu_layers(&self, input: Input) -> Result<Arc<Layers>, Error> {
        let found = npu_layers(&self.database, input);
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

    /// The values of an input on an NPU.
    pub(crate) fn npu_values(&self, input: Input) -> Result<Arc<NpuValues>, Error> {
        let found = npu_values(&self.database, input);
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
