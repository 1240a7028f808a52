//! Constants that a kernel takes in packed order.
//!
//! If the `#tl.kernel` of a function lists `constants`, the kernel may choose the order of the elements
//! of these arguments, which have no other readers. `packed` of the lowered function describes the
//! packing of those it takes packed; such an argument is a `memref` of the packed elements. The caller
//! packs them once, when it is compiled.
use super::{
    codegen::{Codegen, Place},
    kernel::{Operand, Origin, TensorId, defining_op},
};
use crate::kernel::emit::{Buffer, Emit};
use irc_dialects::tl;
use irc_mlir::Erase;
use irc_packing::Packing;
use melior::ir::r#type::MemRefType;

/// The number of the argument that an operand is, if the kernel may choose its order.
pub fn argument_of(cg: &Codegen<'_, '_>, operand: &Operand) -> Option<usize> {
    let Origin::Argument(argument) = cg.kernel.tensors[operand.tensor].origin else { return None };
    let is_free = cg.constants.iter().any(|(index, _)| *index == argument);
    (is_free && readers(cg, operand.tensor) == 1).then_some(argument)
}

/// The packed elements of an operand, if the kernel may choose its order; `packing` gets the number of the
/// argument.
pub fn take<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    operand: &Operand,
    packing: impl FnOnce(usize) -> Packing,
) -> Option<Buffer<'c, 'a>> {
    let argument = argument_of(cg, operand)?;
    let (_, memref) = *cg.constants.iter().find(|(index, _)| *index == argument)?;
    let packing = packing(argument);
    cg.packed.push(packing);
    // Nothing reads the view of elements as they were, whose type may be another.
    let place = std::mem::replace(&mut cg.places[operand.tensor], Place::Register);
    if let Some(view) = place.buffer().and_then(|buffer| defining_op(buffer.memref)) {
        view.erase();
    }
    let mut element = cg.kernel.tensors[operand.tensor].element;
    if let Some(dtype) = packing.dtype() {
        element = tl::dtype_to_mlir(e.context, dtype);
        let ty = MemRefType::new(element, &[packing.elements()], None, None);
        irc_mlir::set_type(memref, ty.into());
    }
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
