//! Constants that a kernel takes in the order in which it reads them.
//!
//! A function whose `#tl.kernel` lists `constants` lets the kernel say in which order it
//! wants the elements of these arguments, which nothing else reads. Of those it takes packed,
//! `packed` of the lowered function says how; the argument is then a `memref` of the packed
//! elements. The caller packs them, once, when it is compiled.
use super::{
    codegen::Codegen,
    kernel::{Operand, Origin, TensorId},
};
use crate::attributes::Packing;
use crate::kernel::emit::{Buffer, Emit};

/// The packed elements of an operand, if the kernel may say how it wants them; `packing` need not say which
/// argument it is.
pub fn take<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    operand: &Operand,
    packing: Packing,
) -> Option<Buffer<'c, 'a>> {
    let tensor = operand.tensor;
    let Origin::Argument(argument) = cg.kernel.tensors[tensor].origin else { return None };
    let memref =
        *cg.constants.iter().find(|(index, _)| *index == argument).map(|(_, value)| value)?;
    if readers(cg, tensor) != 1 {
        return None;
    }
    let packing = Packing { argument, ..packing };
    cg.packed.push(packing);
    let element = cg.kernel.tensors[tensor].element;
    Some(super::flat_view(e, memref, packing.elements(), element))
}

/// How often a tensor is read.
fn readers(cg: &Codegen<'_, '_>, tensor: TensorId) -> usize {
    let stages = cg.kernel.stages.iter().flat_map(|stage| {
        let inits = stage.outputs.iter().map(|output| output.init.tensor);
        let inputs = stage.inputs.iter().map(|input| input.tensor);
        inputs.chain(inits).chain(stage.gathered.iter().copied())
    });
    let results = cg.kernel.results.iter().map(|result| result.tensor);
    stages.chain(results).filter(|read| *read == tensor).count()
}
