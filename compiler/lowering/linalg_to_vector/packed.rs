//! Constants that a kernel takes in packed order.
//!
//! If the `#tl.kernel` of a function lists `constants`, the kernel may choose the order of the elements
//! of these arguments, which have no other readers. `packed` of the lowered function describes the
//! packing of those it takes packed; such an argument is a `memref` of the packed elements. The caller
//! packs them once, when it is compiled.
use super::{
    codegen::Codegen,
    kernel::{Operand, Origin, TensorId},
};
use crate::attributes::Packing;
use crate::kernel::emit::{Buffer, Emit};

/// The packed elements of an operand, if the kernel may choose its order; `packing.argument` is
/// ignored.
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

/// The number of times a tensor is read.
fn readers(cg: &Codegen<'_, '_>, tensor: TensorId) -> usize {
    let stages = cg.kernel.stages.iter().flat_map(|stage| {
        let inits = stage.outputs.iter().map(|output| output.init.tensor);
        let inputs = stage.inputs.iter().map(|input| input.tensor);
        inputs.chain(inits).chain(stage.gathered.iter().copied())
    });
    let results = cg.kernel.results.iter().map(|result| result.tensor);
    stages.chain(results).filter(|read| *read == tensor).count()
}
