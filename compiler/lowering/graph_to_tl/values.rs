//! The elements of constants that are arguments of a program.
use super::weights;
use crate::attributes::{VALUE, WEIGHT};
use irc_dialects::tl;
use irc_mlir::{
    Attribute, Context, OperationRef, attr, elements,
    melior::ir::{Identifier, attribute::DictionaryAttribute},
    read, set_attribute,
};
use irc_tl::{Constant, Graph};

/// Adds the elements of constants next to their numbers, in every function of a module that was written from a graph:
/// then the module stands alone.
pub fn give_values<'c: 'a, 'a>(context: &'c Context, module: OperationRef<'c, 'a>, graph: &Graph) {
    let table = weights(graph);
    if table.is_empty() {
        return;
    }
    for function in read::body_ops(module) {
        let given = read::elements(&function, "arg_attrs").unwrap_or_default();
        let given: Vec<Attribute<'c>> =
            given.into_iter().map(|argument| with_value(context, argument, &table)).collect();
        if !given.is_empty() {
            set_attribute(function, "arg_attrs", attr::array(context, &given));
        }
    }
}

fn with_value<'c>(
    context: &'c Context,
    argument: Attribute<'c>,
    table: &[Constant],
) -> Attribute<'c> {
    let Ok(dictionary) = DictionaryAttribute::try_from(argument) else { return argument };
    let number = WEIGHT.of(dictionary);
    let weight = number.and_then(|number| table.get(usize::try_from(number).ok()?));
    let Some(Constant { ty, bytes, .. }) = weight else { return argument };
    let ty = tl::tensor_type_to_mlir(context, ty);
    let value = elements::resource(ty, "weight", bytes.clone());
    let mut entries: Vec<_> =
        (0..dictionary.len()).filter_map(|index| dictionary.element(index).ok()).collect();
    entries.push((Identifier::new(context, VALUE), value));
    DictionaryAttribute::new(context, &entries).into()
}
