//! The constants that are arguments of a program.
use super::{Binding, entry, port_attributes};
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, OperationRef, PassError, ValueLike, elements,
    melior::ir::attribute::IntegerAttribute,
};
use irc_tl::Constant;
use std::collections::BTreeMap;

/// The constants of a program, and their numbers in its arguments.
///
/// Graphs number constants in the order in which they meet them. Constants that are due are written in
/// the order of their numbers, so that the numbers do not change.
pub(super) struct Constants {
    /// By number.
    known: BTreeMap<usize, Constant>,
    /// The number of each argument of the main function, by position.
    arguments: BTreeMap<usize, usize>,
}

impl Constants {
    /// The constants of the main function.
    pub fn read(main: OperationRef<'_, '_>, weights: &[Constant]) -> Result<Self, PassError> {
        let attributes = port_attributes(&main, "arg_attrs");
        let mut constants = Self { known: BTreeMap::new(), arguments: BTreeMap::new() };
        let mut failed = None;
        for index in 0..attributes.len() {
            let number = entry(&attributes, index, "tl.weight").map(integer);
            let value = entry(&attributes, index, "tl.value");
            let number = match (number, value) {
                (None, None) => continue,
                (Some(Some(number)), _) => number,
                (Some(None), _) => {
                    let message = format!("argument {index}: tl.weight is not a number from 0");
                    failed = Some(PassError::at(&main, message));
                    continue;
                }
                // After the numbered ones, in the order of the arguments.
                (None, Some(_)) => usize::MAX / 2 + index,
            };
            let constant = match value {
                Some(value) => elements_of(main, index, value),
                None => {
                    let missing = || format!("the elements of constant {number} are not given");
                    weights.get(number).cloned().ok_or_else(missing)
                }
            };
            match constant {
                Ok(constant) => {
                    constants.known.insert(number, constant);
                    constants.arguments.insert(index, number);
                }
                Err(message) => {
                    let message = format!("argument {index}: {message}");
                    failed = Some(PassError::at(&main, message));
                }
            }
        }
        failed.map_or(Ok(constants), Err)
    }

    /// The bindings of the parameters of the main function.
    pub fn of_main(&self, main: OperationRef<'_, '_>) -> Vec<Binding> {
        let count = super::block_of(main).map_or(0, |block| block.argument_count());
        (0..count).map(|index| self.arguments.get(&index).copied()).collect()
    }

    /// A constant by number.
    pub fn get(&self, number: usize) -> &Constant {
        &self.known[&number]
    }
}

fn integer(attribute: irc_mlir::Attribute<'_>) -> Option<usize> {
    usize::try_from(IntegerAttribute::try_from(attribute).ok()?.value()).ok()
}

/// The elements in `tl.value` of an argument.
fn elements_of(
    main: OperationRef<'_, '_>,
    index: usize,
    value: irc_mlir::Attribute<'_>,
) -> Result<Constant, String> {
    let block = super::block_of(main).map_err(|_| "the function has no body".to_owned())?;
    let argument = block.argument(index).map_err(|error| error.to_string())?;
    let ty = tl::tensor_type_of(argument.r#type())?;
    let bytes = elements::bytes_of(value).ok_or("tl.value holds no elements")?;
    let expected = ty.byte_size().map_err(|error| error.to_string())?;
    if bytes.len() != expected {
        let found = bytes.len();
        return Err(format!("tl.value: expected {expected} bytes for {ty}, found {found}"));
    }
    Ok(Constant::new(ty, bytes))
}
