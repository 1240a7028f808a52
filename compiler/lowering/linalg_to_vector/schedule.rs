//! Orders the stages of a kernel: products with their epilogues, and nests of the other stages between them.
use super::{
    codegen::Codegen,
    contraction::{Contraction, Factors},
    direct_conv::{self, DirectConv},
    error::Result,
    kernel::{Origin, TensorId},
    matmul::{self, Matmul, emit_matmul},
    padding::Padding,
    pass::{Pass, runs_in_vectors},
    quads,
    rows::{emit_nest, plan_nests},
    windows::Windows,
    winograd::{self, Winograd},
};
use crate::attributes::Algorithm;
use crate::kernel::emit::Emit;
use std::collections::BTreeMap;

/// Emits every stage at the end of the block of `e`.
///
/// # Errors
/// At an op that has no schedule.
pub fn emit_stages<'c: 'a, 'a>(cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) -> Result<()> {
    let plan = plan(cg, e);
    let mut own: BTreeMap<usize, Vec<Padding>> = BTreeMap::new();
    for padding in plan.paddings {
        let reads =
            |step: &Step| step.product.as_ref().is_some_and(|it| it.alone_reads(cg, &padding));
        match plan.steps.iter().position(reads) {
            Some(step) => own.entry(step).or_default().push(padding),
            None => cg.phase(e, &[padding.stage], |cg, e| padding.emit(cg, e, false))?,
        }
    }
    for (number, Step { rows, product }) in plan.steps.into_iter().enumerate() {
        for nest in plan_nests(cg, &rows) {
            cg.phase(e, &nest.stages, |cg, e| emit_nest(cg, e, &nest))?;
        }
        let Some(product) = product else { continue };
        let stages = [&[product.stage()], product.epilogue()].concat();
        let paddings = own.remove(&number).unwrap_or_default();
        cg.phase(e, &stages, |cg, e| {
            paddings.iter().try_for_each(|padding| padding.emit(cg, e, true))?;
            match &product {
                Product::Matmul(matmul) => emit_matmul(cg, e, matmul),
                Product::Winograd(matmul, winograd) => winograd::emit(cg, e, matmul, winograd),
                Product::Direct(conv) => direct_conv::emit(cg, e, conv),
            }
        })?;
    }
    Ok(())
}

/// The order of the stages.
struct Plan<'c, 'a> {
    /// Arguments that are copied with zeros around them, before everything else.
    paddings: Vec<Padding<'c, 'a>>,
    steps: Vec<Step<'c, 'a>>,
}

/// The stages before a product, and the product, which the last step lacks.
#[derive(Default)]
struct Step<'c, 'a> {
    rows: Vec<usize>,
    product: Option<Product<'c, 'a>>,
}

/// Sums of products, with the elementwise stages that run on them before they are stored.
enum Product<'c, 'a> {
    Matmul(Matmul<'c, 'a>),
    /// The matmul of a convolution, and how it is computed by Winograd's algorithm.
    Winograd(Matmul<'c, 'a>, Winograd),
    Direct(DirectConv<'c, 'a>),
}

impl Product<'_, '_> {
    fn stage(&self) -> usize {
        match self {
            Self::Matmul(matmul) | Self::Winograd(matmul, _) => matmul.product.stage,
            Self::Direct(conv) => conv.stage,
        }
    }

    fn epilogue(&self) -> &[usize] {
        match self {
            Self::Matmul(matmul) | Self::Winograd(matmul, _) => &matmul.epilogue,
            Self::Direct(conv) => &conv.epilogue,
        }
    }

    /// Whether a padding is read by the product and nothing else.
    fn alone_reads(&self, cg: &Codegen<'_, '_>, padding: &Padding<'_, '_>) -> bool {
        let windows = match self {
            Self::Matmul(matmul) | Self::Winograd(matmul, _) => matmul.windows.as_ref(),
            Self::Direct(_) => None,
        };
        let copied = windows.map(|windows| windows.stage);
        let readers: Vec<usize> = copied.into_iter().chain([self.stage()]).collect();
        !cg.is_result(padding.result) && !cg.read_by_other(padding.result, &readers)
    }

    /// Adds a stage to the epilogue, in program order.
    fn insert(&mut self, stage: usize) {
        let epilogue = match self {
            Self::Matmul(matmul) | Self::Winograd(matmul, _) => &mut matmul.epilogue,
            Self::Direct(conv) => &mut conv.epilogue,
        };
        epilogue.insert(epilogue.partition_point(|earlier| *earlier < stage), stage);
    }
}

/// Schedules each stage as early as its operands allow: even slots contain rows, odd slots one product.
fn plan<'c: 'a, 'a>(cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) -> Plan<'c, 'a> {
    let mut slots: Vec<usize> = vec![];
    let mut paddings = vec![];
    // Stages whose elements are those of arguments, or are computed where they are multiplied.
    let mut placed = vec![];
    let mut steps = vec![Step::default()];
    for s in 0..cg.kernel.stages.len() {
        if let Some(padding) = Padding::of(cg, s) {
            paddings.push(padding);
            slots.push(0);
            continue;
        }
        let ready =
            reads(cg, s).filter_map(|tensor| slot_of(cg, tensor, &slots)).max().unwrap_or(0);
        if ready % 2 == 1
            && let Some(product) = &steps[ready / 2].product
        {
            join_loops(cg, s, product.stage());
        }
        let direct = takes(cg, Algorithm::Direct).then(|| DirectConv::of(cg, s, &mut paddings));
        let found = match direct.flatten() {
            Some(conv) => Some(Product::Direct(conv)),
            None => contraction(cg, s).map(|product| {
                let found = of_product(cg, product, &mut paddings);
                if let Product::Matmul(matmul) = &found {
                    placed.extend(place_quads(cg, e, &matmul.product));
                    placed.extend(matmul.product.right_codes(cg).map(|codes| codes.stage));
                    placed.extend(matmul.product.left_bytes(cg).map(|left| left.stage));
                }
                found
            }),
        };
        let slot = if let Some(product) = found {
            let mut step = ready.div_ceil(2);
            while steps.get(step).is_some_and(|step| step.product.is_some()) {
                step += 1;
            }
            grow(&mut steps, step + 1);
            if let Product::Matmul(matmul) | Product::Winograd(matmul, _) = &product
                && let Some(windows) = &matmul.windows
            {
                // They are not copied.
                steps.iter_mut().for_each(|step| step.rows.retain(|row| *row != windows.stage));
            }
            steps[step].product = Some(product);
            2 * step + 1
        } else if ready % 2 == 1
            && let Some(product) = &mut steps[ready / 2].product
            && joins_epilogue(cg, s, product)
        {
            product.insert(s);
            ready
        } else {
            let step = ready.div_ceil(2);
            grow(&mut steps, step);
            steps[step].rows.push(s);
            2 * step
        };
        slots.push(slot);
    }
    steps.iter_mut().for_each(|step| step.rows.retain(|row| !placed.contains(row)));
    sink(cg, &mut steps);
    Plan { paddings, steps }
}

/// Whether a convolution may be computed by an algorithm.
fn takes(cg: &Codegen<'_, '_>, algorithm: Algorithm) -> bool {
    cg.schedule.algorithm.is_none_or(|chosen| chosen == algorithm)
}

/// Moves elementwise stages that only the epilogue of one product reads into it, so that their results stay in registers.
fn sink(cg: &mut Codegen<'_, '_>, steps: &mut [Step<'_, '_>]) {
    for number in (0..steps.len()).rev() {
        // Readers come before what they read.
        for row in steps[number].rows.clone().into_iter().rev() {
            let reader = steps[number..].iter().position(|step| {
                step.product.as_ref().is_some_and(|product| is_read_by(cg, row, product))
            });
            let Some(at) = reader.map(|after| number + after) else { continue };
            let Some(product) = &mut steps[at].product else { continue };
            join_loops(cg, row, product.stage());
            let joins = joins_epilogue(cg, row, product)
                && product.epilogue().iter().all(|stage| meets(cg, *stage, &[row]));
            if joins {
                product.insert(row);
                steps[number].rows.retain(|stage| *stage != row);
            }
        }
    }
}

/// Whether the epilogue of a product, and nothing else, reads what a stage computes.
fn is_read_by(cg: &Codegen<'_, '_>, stage: usize, product: &Product<'_, '_>) -> bool {
    let epilogue = product.epilogue();
    cg.kernel.stages[stage].outputs.iter().all(|output| {
        let is_read =
            epilogue.iter().any(|reader| reads(cg, *reader).any(|it| it == output.tensor));
        is_read && !cg.is_result(output.tensor) && !cg.read_by_other(output.tensor, epilogue)
    })
}

/// The stages of operands that are read in place, or packed when the caller is compiled.
fn place_quads<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    product: &Contraction<'c, 'a>,
) -> Vec<usize> {
    if !matches!(product.factors, Factors::Quads { .. }) {
        return vec![];
    }
    let left = match matmul::packed_left_stage(cg, product) {
        Some(stage) => Some(stage),
        None => quads::place(cg, e, product, &product.a, product.m),
    };
    let right = match quads::packed_stage(cg, product) {
        Some(stage) => Some(stage),
        None => quads::place(cg, e, product, &product.b, None),
    };
    left.into_iter().chain(right).collect()
}

/// How a product is computed.
fn of_product<'c: 'a, 'a>(
    cg: &Codegen<'c, 'a>,
    product: Contraction<'c, 'a>,
    paddings: &mut [Padding<'_, '_>],
) -> Product<'c, 'a> {
    let epilogue = vec![];
    let windows = Windows::of(cg, &product);
    if takes(cg, Algorithm::Winograd)
        && let Some(found) = &windows
        && let Some(winograd) = Winograd::of(cg, &product, found)
    {
        return Product::Winograd(Matmul { product, windows, epilogue }, winograd);
    }
    if let Some(product) = matmul::transposed(cg, &product) {
        return Product::Matmul(Matmul { product, windows: None, epilogue });
    }
    let windows = windows.and_then(|found| packed(cg, &product, found, paddings));
    Product::Matmul(Matmul { product, windows, epilogue })
}

/// The windows, if panels are packed from the operand. If they are every second element of a padded argument that
/// nothing else reads, the even elements of its rows are placed before the odd ones.
fn packed(
    cg: &Codegen<'_, '_>,
    product: &Contraction<'_, '_>,
    windows: Windows,
    paddings: &mut [Padding<'_, '_>],
) -> Option<Windows> {
    let source = windows.source;
    if !windows.skips_every_second() {
        return windows.are_packed(cg, product).then_some(windows);
    }
    let padding = paddings.iter_mut().find(|padding| padding.result == source)?;
    let windows = windows.of_split_rows(padding.even_length()?);
    if cg.read_by_other(source, &[windows.stage]) || !windows.are_packed(cg, product) {
        return None;
    }
    padding.split_rows();
    Some(windows)
}

fn grow(steps: &mut Vec<Step<'_, '_>>, last: usize) {
    while steps.len() <= last {
        steps.push(Step::default());
    }
}

fn reads<'k>(cg: &'k Codegen<'_, '_>, s: usize) -> impl Iterator<Item = TensorId> + 'k {
    let stage = &cg.kernel.stages[s];
    let inits = stage.outputs.iter().filter(|output| output.reads_init);
    let inits = inits.map(|output| output.init.tensor);
    stage.inputs.iter().map(|input| input.tensor).chain(inits).chain(stage.gathered.iter().copied())
}

fn slot_of(cg: &Codegen<'_, '_>, tensor: TensorId, slots: &[usize]) -> Option<usize> {
    match cg.kernel.tensors[tensor].origin {
        Origin::Stage(stage) => slots.get(stage).copied(),
        _ => None,
    }
}

fn contraction<'c: 'a, 'a>(cg: &Codegen<'c, 'a>, s: usize) -> Option<Contraction<'c, 'a>> {
    let product = Contraction::of(&cg.kernel, s)?;
    let in_memory = |tensor: TensorId| {
        let origin = cg.kernel.tensors[tensor].origin;
        matches!(origin, Origin::Argument(_) | Origin::Stage(_) | Origin::Dense(_))
    };
    let sides = [product.a.operand.tensor, product.b.operand.tensor];
    let init = cg.kernel.stages[s].outputs[0].init.tensor;
    let starts = in_memory(init) || matches!(cg.kernel.tensors[init].origin, Origin::Splat(_));
    (sides.into_iter().all(in_memory) && starts).then_some(product)
}

/// Merges adjacent loops of a stage if they then match the loops of a product, as after a
/// convolution, whose positions are columns of a matrix.
fn join_loops(cg: &mut Codegen<'_, '_>, s: usize, product: usize) {
    let wanted = &cg.kernel.stages[product];
    let wanted = wanted.sizes[..wanted.parallel].to_vec();
    let joined = cg.kernel.stages[s].joined(wanted.len());
    if let Some(joined) = joined.filter(|stage| stage.sizes == wanted) {
        cg.kernel.stages[s] = joined;
    }
}

/// Whether a stage can run on results of the product before they are stored.
fn joins_epilogue(cg: &Codegen<'_, '_>, s: usize, to: &Product<'_, '_>) -> bool {
    let stage = &cg.kernel.stages[s];
    let product = &cg.kernel.stages[to.stage()];
    if stage.reduces()
        || stage.sizes != product.sizes[..product.parallel]
        || !stage.gathered.is_empty()
    {
        return false;
    }
    let group = [&[to.stage()], to.epilogue()].concat();
    let outer = stage.sizes.len() - 1;
    let pass = Pass::after_product(&[s], outer, stage.sizes[outer]);
    let contiguous = stage.outputs.iter().all(|output| output.access.coefs[outer] == 1);
    meets(cg, s, &group) && contiguous && runs_in_vectors(cg, &pass)
}

/// Whether a stage reads the elements that stages of a group compute at the point where these do.
fn meets(cg: &Codegen<'_, '_>, s: usize, group: &[usize]) -> bool {
    let stage = &cg.kernel.stages[s];
    let inits = stage.outputs.iter().filter(|output| output.reads_init).map(|output| &output.init);
    stage.inputs.iter().chain(inits).all(|input| {
        cg.producer(input.tensor, group).is_none_or(|(from, output)| {
            let producer = &cg.kernel.stages[from].outputs;
            let loops = stage.sizes.len();
            producer.len() == 1
                && output.access.offset == input.access.offset
                && output.access.coefs[..loops] == input.access.coefs[..]
        })
    })
}
