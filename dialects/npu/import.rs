//! Imports a program to ops.
use super::fields::to_attribute;
use crate::attributes::dictionary;
use irc_mlir::{
    Attribute, Block, BlockLike, BlockRef, Context, Location, OpSpec, OperationRef, attr, region_of,
};
use irc_npu::{Core, Engines, Instruction, Origin, Program};

/// The locations of instructions: by index of the core and of the instruction.
pub type Sources<'s, 'c> = &'s dyn Fn(usize, usize) -> Location<'c>;

/// Appends the `npu.program` of a program to a block.
pub fn build<'c: 'a, 'a>(
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    program: &Program,
    location: Location<'c>,
    sources: Sources<'_, 'c>,
) -> OperationRef<'c, 'a> {
    context.get_or_load_dialect("npu");
    let body = Block::new(&[]);
    for (place, core) in program.cores.iter().enumerate() {
        body.append_operation(
            core_op(context, core, location, &|index| sources(place, index)).build(),
        );
    }
    let mut spec = OpSpec::new(context, "npu.program", location);
    if let Some(model) = &program.model {
        spec = spec.attr("model", attr::string(context, &model.to_string()));
    }
    spec.region(region_of(body)).append(&block)
}

fn core_op<'c>(
    context: &'c Context,
    core: &Core,
    location: Location<'c>,
    source: &dyn Fn(usize) -> Location<'c>,
) -> OpSpec<'c> {
    let body = Block::new(&[]);
    for (index, instruction) in core.code.iter().enumerate() {
        body.append_operation(instruction_op(context, instruction, source(index)).build());
    }
    OpSpec::new(context, "npu.core", location)
        .attr("id", attr::i64(context, core.id.into()))
        .region(region_of(body))
}

fn instruction_op<'c>(
    context: &'c Context,
    instruction: &Instruction,
    location: Location<'c>,
) -> OpSpec<'c> {
    let Instruction { op, origin, tokens } = instruction;
    let mut spec = OpSpec::new(context, &format!("npu.{}", op.name()), location);
    for (key, value) in op.fields() {
        spec = spec.attr(key, to_attribute(context, &value));
    }
    spec.maybe_attr("origin", origin_attribute(context, origin))
        .maybe_attr("prev", engines(context, tokens.prev))
        .maybe_attr("next", engines(context, tokens.next))
}

fn engines(context: &Context, engines: Engines) -> Option<Attribute<'_>> {
    let names: Vec<_> = engines.iter().map(|engine| attr::string(context, engine.name())).collect();
    (!names.is_empty()).then(|| attr::array(context, &names))
}

/// The attribute of an origin; `None` if all of it is absent.
fn origin_attribute<'c>(context: &'c Context, origin: &Origin) -> Option<Attribute<'c>> {
    let Origin { slyr, clyr, s_flyr, c_flyr, wkl, tile } = origin;
    let mut entries = vec![];
    for (key, value) in [("slyr", slyr), ("s_flyr", s_flyr), ("wkl", wkl), ("tile", tile)] {
        if *value != -1 {
            entries.push((key, attr::i64(context, (*value).into())));
        }
    }
    for (key, list) in [("clyr", clyr), ("c_flyr", c_flyr)] {
        if !list.is_empty() {
            let list: Vec<i64> = list.iter().copied().map(i64::from).collect();
            entries.push((key, attr::i64s(context, &list)));
        }
    }
    (!entries.is_empty()).then(|| dictionary(context, entries))
}
