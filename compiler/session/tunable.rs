//! The kernels whose schedules can be measured, each in a program of its own.
use super::{
    Compiled,
    constants::{self, Place},
    error::{CompileError, QueryError},
    kernel,
    queries::Fused,
};
use crate::{
    attributes::{Algorithm, KERNEL, KernelInfo, Schedule},
    codegen::Target,
    fusion::Kind,
    machine::in_context,
    session::profile,
};
use irc_dialects::tl;
use irc_mlir::{OperationRef, read};
use irc_tensor::Tensor;
use irc_tl::{Constant, DType};
use std::{collections::BTreeMap, sync::Arc};

/// The kernels of a program whose schedules have choices: products and convolutions.
#[derive(Clone, Debug, Default)]
pub struct Tunables {
    /// Those that can be measured.
    pub kernels: Vec<Tunable>,
    /// The symbols of those that cannot, as their sizes are open.
    pub open: Vec<String>,
}

/// A kernel whose schedule has choices.
#[derive(Clone, Debug)]
pub struct Tunable {
    /// Its symbol with the default schedule, which names it in profiles and in a [`Tuning`](super::tuning::Tuning).
    pub symbol: String,
    /// Number of launches in the program; in loops they may be more.
    pub launches: u64,
    /// Whether it is a convolution, which has a choice of algorithms.
    pub is_convolution: bool,
    text: Arc<str>,
}

impl Tunables {
    /// Those of a program of default schedules.
    pub(crate) fn of(fused: &Fused) -> Self {
        let mut found = Self::default();
        for (symbol, text) in &fused.kernels {
            let launches = fused.uses.get(symbol).map_or(1, |used| used.launches);
            match choices_of(text) {
                Some(Choices { is_open: true, .. }) => found.open.push(symbol.clone()),
                Some(Choices { is_convolution, .. }) => found.kernels.push(Tunable {
                    symbol: symbol.clone(),
                    launches,
                    is_convolution,
                    text: text.clone(),
                }),
                None => {}
            }
        }
        found
    }
}

impl Tunable {
    /// Schedules to measure; not all of them lead to other code.
    pub fn candidates(&self) -> Vec<Schedule> {
        let algorithms = match self.is_convolution {
            true => Algorithm::ALL.map(Some).to_vec(),
            false => vec![None],
        };
        let mut found = vec![];
        for algorithm in algorithms {
            let of = Schedule { algorithm, ..Schedule::default() };
            found.push(of);
            found.extend(ROWS.map(|rows| Schedule { rows: Some(rows), ..of }));
            found.extend(DEPTHS.map(|depth| Schedule { depth: Some(depth), ..of }));
        }
        found
    }

    /// A library of a program that launches the kernel once, on random constants.
    pub(crate) fn compile(
        &self,
        schedule: Schedule,
        target: &Target,
    ) -> Result<Compiled, QueryError> {
        let program = in_context(|context| {
            let module = irc_mlir::parse_module(context, &self.text)?;
            let kernel = read::body_ops(module.as_operation()).into_iter().next()?;
            KernelInfo::update(kernel, |info| info.schedule = schedule);
            let text = irc_mlir::to_text_of_valid(&kernel);
            Program::of(kernel, kernel::symbol_of(&text, target), text)
        });
        let program = program.map_err(CompileError::Passes)?;
        let object = Arc::new(kernel::compile_kernel(&program.kernel, target)?);
        let kernels = BTreeMap::from([(program.symbol, object.clone())]);
        let (main, constants) =
            constants::settle(&program.main, program.constants, &kernels, Place::Given)?;
        let main = kernel::with_declarations([&*main], &kernels);
        let glue = kernel::compile_glue(&main, target)?;
        let objects = [(GLUE, &glue.object), (&*object.symbol, &object.object)];
        let objects = objects.map(|(name, object)| (name.to_owned(), object.as_slice()));
        Ok(Compiled { constants, ..Compiled::link(objects, glue.interface)? })
    }
}

/// The name of the object of the function that launches the kernel.
const GLUE: &str = "irc_glue";

/// Rows of tiles to measure.
const ROWS: [i64; 7] = [2, 4, 6, 7, 8, 10, Schedule::MAX_ROWS];

/// Depths of blocks to measure.
const DEPTHS: [i64; 4] = [128, 256, 512, 2048];

/// The choices of a kernel's schedule.
struct Choices {
    is_convolution: bool,
    /// Whether sizes are known only at run time.
    is_open: bool,
}

/// The choices of the kernel with a text; `None` without a product or convolution.
fn choices_of(text: &str) -> Option<Choices> {
    let choices = in_context(|context| {
        let module = irc_mlir::parse_module(context, text)?;
        let kernel = read::body_ops(module.as_operation()).into_iter().next()?;
        let info = KERNEL.read(&kernel)?;
        if info.kind != Kind::Contraction.name() {
            return Some(None);
        }
        let (inputs, results) = read::signature(&kernel)?;
        let is_open = |ty| tl::type_of(ty).ok().is_none_or(|ty: irc_tl::Type| ty.known().is_none());
        Some(Some(Choices {
            is_convolution: profile::is_convolution(kernel),
            is_open: inputs.into_iter().chain(results).any(is_open),
        }))
    });
    choices.ok().flatten()
}

/// A program that launches one kernel.
struct Program {
    main: String,
    symbol: String,
    kernel: String,
    constants: Vec<Constant>,
}

impl Program {
    fn of(kernel: OperationRef<'_, '_>, symbol: String, text: String) -> Option<Self> {
        let info = KERNEL.read(&kernel)?;
        let (inputs, results) = read::signature(&kernel)?;
        let (mut constants, mut parameters, mut operands) = (vec![], vec![], vec![]);
        for (index, ty) in inputs.iter().enumerate() {
            let mut attribute = String::new();
            if info.constants.contains(&index) {
                attribute = format!(" {{tl.weight = {} : i64}}", constants.len());
                let ty = tl::type_of(*ty).ok()?.known()?;
                let random = Tensor::random(ty, index as u64).ok()?;
                constants.push(match info.small.contains(&index) {
                    true => small(&random),
                    false => Constant::of(&random),
                });
            }
            parameters.push(format!("%arg{index}: {ty}{attribute}"));
            operands.push(format!("%arg{index}"));
        }
        let list = |types: &[irc_mlir::Type<'_>]| {
            types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (own, returned, operands) = (list(&inputs), list(&results), operands.join(", "));
        let count = results.len();
        let values = (0..count).map(|index| format!("%results#{index}")).collect::<Vec<_>>();
        let main = format!(
            "func.func @main({}) -> ({returned}) attributes {{tl.graph}} {{\n\
             %results:{count} = tl.launch @{symbol}({operands}) : ({own}) -> ({returned})\n\
             return {} : {returned}\n}}\n",
            parameters.join(", "),
            values.join(", "),
        );
        Some(Self { main, symbol, kernel: text, constants })
    }
}

/// A constant of signed bytes of half their magnitude, which [`KernelInfo::small`] promises.
fn small(random: &Tensor) -> Constant {
    debug_assert_eq!(random.ty().dtype, DType::I8, "small constants are bytes");
    let halves = random.bytes().iter().map(|byte| (byte.cast_signed() / 2).cast_unsigned());
    Constant::new(random.ty().clone(), halves.collect::<Vec<u8>>())
}
