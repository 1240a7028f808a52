//! Small IR operations that melior lacks or leaves unsafe.
use crate::bridge::{self, string_ref};
use crate::{attr, context_of, read};
use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, BlockLike, BlockRef, Location, Module, OperationRef, Type,
        TypeLike, Value, ValueLike,
        operation::{OperationLike, OperationPrintingFlags, WalkOrder, WalkResult},
        r#type::FunctionType,
    },
};

/// Removing an op from its block and freeing it.
pub trait Erase {
    /// Unlinks and destroys the op; its results must have no uses.
    fn erase(self);
}

impl Erase for OperationRef<'_, '_> {
    fn erase(self) {
        // Safety: the op is live and owned by its block; callers hold no other reference to it.
        unsafe { mlir_sys::mlirOperationDestroy(self.to_raw()) }
    }
}

/// Sets the type of a `func.func` to that of its arguments, which have changed, and of its results. `None` if it has no body.
pub fn update_function_type<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Option<()> {
    let (_, results) = read::signature(&function)?;
    let block = read::blocks(function).into_iter().next()?;
    let inputs = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    let inputs: Vec<Type<'c>> = inputs.map(|argument| argument.r#type()).collect();
    let ty = FunctionType::new(context_of(&function), &inputs, &results);
    set_attribute(function, "function_type", attr::ty(ty.into()));
    Some(())
}

/// Replaces every use of `of` by `with`.
pub fn replace_all_uses<'c>(of: Value<'c, '_>, with: Value<'c, '_>) {
    // Safety: both values are live.
    unsafe { mlir_sys::mlirValueReplaceAllUsesOfWith(of.to_raw(), with.to_raw()) }
}

/// The uses of a value: ops and operand numbers, in MLIR's use-list order.
pub fn uses<'c, 'a>(value: Value<'c, 'a>) -> Vec<(OperationRef<'c, 'a>, usize)> {
    let mut found = Vec::new();
    // Safety: the use list is walked without changing it.
    unsafe {
        let mut next = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        while !mlir_sys::mlirOpOperandIsNull(next) {
            let owner = OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(next));
            found.push((owner, mlir_sys::mlirOpOperandGetOperandNumber(next) as usize));
            next = mlir_sys::mlirOpOperandGetNextUse(next);
        }
    }
    found
}

/// Whether a value is used exactly once. Unlike [`uses`], this takes constant time.
pub fn has_one_use(value: Value<'_, '_>) -> bool {
    // Safety: the use list is walked without changing it.
    unsafe {
        let first = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        !mlir_sys::mlirOpOperandIsNull(first)
            && mlir_sys::mlirOpOperandIsNull(mlir_sys::mlirOpOperandGetNextUse(first))
    }
}

/// Whether `is_meant` holds for every user of a value; ends at the first for which it does not.
pub fn is_used_only_by<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    is_meant: impl Fn(OperationRef<'c, 'a>) -> bool,
) -> bool {
    // Safety: the use list is walked without changing it.
    unsafe {
        let mut next = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        while !mlir_sys::mlirOpOperandIsNull(next) {
            if !is_meant(OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(next))) {
                return false;
            }
            next = mlir_sys::mlirOpOperandGetNextUse(next);
        }
    }
    true
}

/// Ops below `op` (itself included) for which `keep` holds, in pre-order.
pub fn walk_collect<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    mut keep: impl FnMut(OperationRef<'c, 'a>) -> bool,
) -> Vec<OperationRef<'c, 'a>> {
    let mut found = Vec::new();
    op.walk(WalkOrder::PreOrder, |nested| {
        // Safety: a nested op lives as long as the op that holds it.
        let nested = unsafe { OperationRef::from_raw(nested.to_raw()) };
        if keep(nested) {
            found.push(nested);
        }
        WalkResult::Advance
    });
    found
}

/// Moves `op` to just before the terminator of `block`.
pub fn move_before_terminator<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    block: &impl BlockLike<'c, 'a>,
) {
    if let Some(terminator) = block.terminator() {
        // Safety: both ops are live.
        unsafe { mlir_sys::mlirOperationMoveBefore(op.to_raw(), terminator.to_raw()) }
    }
}

/// Moves `op` to the end of `block`.
pub fn move_to_end<'c: 'a, 'a>(op: OperationRef<'c, 'a>, block: &impl BlockLike<'c, 'a>) {
    // Safety: the op is live and in a block, and the block takes it over.
    unsafe {
        mlir_sys::mlirOperationRemoveFromParent(op.to_raw());
        mlir_sys::mlirBlockAppendOwnedOperation(block.to_raw(), op.to_raw());
    }
}

/// Reports an optimisation remark at an op.
pub fn emit_remark<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, message: &str) {
    // Safety: the op is live and the string outlives the call.
    unsafe { bridge::ircEmitOpRemark(op.to_raw(), string_ref(message)) }
}

/// Reports a warning at an op.
pub fn emit_warning<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, message: &str) {
    // Safety: the op is live and the string outlives the call.
    unsafe { bridge::ircEmitOpWarning(op.to_raw(), string_ref(message)) }
}

/// Parses a module from text; `None` after diagnostics have been emitted.
pub fn parse_module<'c>(context: &'c Context, text: &str) -> Option<Module<'c>> {
    Module::parse(context, text)
}

/// Parses a module from bytecode or text bytes; `None` after diagnostics have been emitted.
pub fn parse_bytecode<'c>(context: &'c Context, bytes: &[u8]) -> Option<Module<'c>> {
    // MLIR's reader requires a terminating zero after the buffer, outside its length.
    let mut owned = bytes.to_vec();
    owned.push(0);
    let raw = mlir_sys::MlirStringRef { data: owned.as_ptr().cast(), length: bytes.len() };
    // Safety: the buffer outlives the call; the module owns what it parsed.
    unsafe { Module::from_option_raw(mlir_sys::mlirModuleCreateParse(context.to_raw(), raw)) }
}

/// The module as MLIR bytecode.
pub fn to_bytecode(module: &Module<'_>) -> Vec<u8> {
    module.as_operation().write_bytecode()
}

/// The op in custom syntax, with locations. Only the op itself is printed.
pub fn to_text<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, locations: bool) -> String {
    let flags = OperationPrintingFlags::new().enable_debug_info(locations, false);
    // Safety: the op is live.
    let parent = unsafe { mlir_sys::mlirOperationGetParentOperation(op.to_raw()) };
    let flags = if parent.ptr.is_null() { flags } else { flags.use_local_scope() };
    op.to_string_with_flags(flags).unwrap_or_default()
}

/// As [`to_text`] without locations, and without the elements of large constants.
pub fn to_brief_text<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>) -> String {
    const MAX_ELEMENTS: usize = 64;
    let flags = OperationPrintingFlags::new().elide_large_elements_attributes(MAX_ELEMENTS);
    // Safety: the flags are live.
    unsafe {
        mlir_sys::mlirOpPrintingFlagsElideLargeResourceString(flags.to_raw(), MAX_ELEMENTS as isize)
    };
    op.to_string_with_flags(flags).unwrap_or_default()
}

/// As [`to_text`] without locations, of an op that is known to be valid: verification, which selects custom or
/// generic syntax, takes longer than printing.
pub fn to_text_of_valid<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>) -> String {
    let flags = OperationPrintingFlags::new().use_local_scope();
    // Safety: the flags are live.
    unsafe { mlir_sys::mlirOpPrintingFlagsAssumeVerified(flags.to_raw()) };
    op.to_string_with_flags(flags).unwrap_or_default()
}

/// The op in generic syntax, which any MLIR tool parses.
pub fn to_generic_text<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>) -> String {
    let flags = OperationPrintingFlags::new().print_generic_operation_form();
    op.to_string_with_flags(flags).unwrap_or_default()
}

/// The text of a string attribute; `None` for other attributes.
///
/// melior's accessor is unsound for the empty string, whose data pointer is null.
pub fn string_value(attribute: Attribute<'_>) -> Option<String> {
    // Safety: the attribute is live, and so is its text.
    unsafe {
        mlir_sys::mlirAttributeIsAString(attribute.to_raw()).then(|| {
            bridge::str_of(mlir_sys::mlirStringAttrGetValue(attribute.to_raw())).into_owned()
        })
    }
}

/// The same value at another borrow: a value is a handle and its op outlives both borrows.
pub fn rebind<'c: 'b, 'b>(value: Value<'c, '_>) -> Value<'c, 'b> {
    // Safety: values are owned by their context's IR, not by the borrow they were read through.
    unsafe { Value::from_raw(value.to_raw()) }
}

/// Changes the type of a value in place.
pub fn set_type<'c>(value: Value<'c, '_>, ty: Type<'c>) {
    // Safety: both are live; the verifier reports users that do not support the new type.
    unsafe { mlir_sys::mlirValueSetType(value.to_raw(), ty.to_raw()) }
}

/// Removes arguments of a block, which have no uses.
///
/// # Panics
/// If one has a use, or is not there.
pub fn erase_arguments<'c: 'a, 'a>(
    block: BlockRef<'c, 'a>,
    arguments: std::ops::RangeInclusive<usize>,
) {
    for index in arguments.rev() {
        let argument = block.argument(index).unwrap_or_else(|error| panic!("{error}"));
        assert!(uses(argument.into()).is_empty(), "argument {index} is used");
        // Safety: the argument is there, and nothing uses it.
        unsafe { block.erase_argument(index) };
    }
}

/// Replaces one operand of an op.
pub fn set_operand<'c>(op: OperationRef<'c, '_>, index: usize, value: Value<'c, '_>) {
    // Safety: both are live; MLIR asserts the index.
    unsafe { mlir_sys::mlirOperationSetOperand(op.to_raw(), index as isize, value.to_raw()) }
}

/// Replaces the operands of an op.
pub fn set_operands<'c>(op: OperationRef<'c, '_>, values: &[Value<'c, '_>]) {
    let raw: Vec<_> = values.iter().map(|value| value.to_raw()).collect();
    // Safety: the op and the values are live; MLIR copies the list.
    unsafe { mlir_sys::mlirOperationSetOperands(op.to_raw(), raw.len() as isize, raw.as_ptr()) }
}

/// Location of a value: that of its op, or of its block's parent op.
pub fn location_of<'c>(value: Value<'c, '_>) -> Location<'c> {
    // Safety: the value is live, and so is whatever owns it.
    unsafe {
        if mlir_sys::mlirValueIsAOpResult(value.to_raw()) {
            let owner = mlir_sys::mlirOpResultGetOwner(value.to_raw());
            return Location::from_raw(mlir_sys::mlirOperationGetLocation(owner));
        }
        let block = mlir_sys::mlirBlockArgumentGetOwner(value.to_raw());
        let parent = mlir_sys::mlirBlockGetParentOperation(block);
        Location::from_raw(mlir_sys::mlirOperationGetLocation(parent))
    }
}

/// Removes an attribute of an op, inherent or discardable, if it is present.
pub fn remove_attribute(op: OperationRef<'_, '_>, name: &str) {
    // Safety: the op is live.
    unsafe {
        mlir_sys::mlirOperationRemoveAttributeByName(op.to_raw(), string_ref(name));
    }
}

/// Sets an attribute of an op, inherent or discardable.
pub fn set_attribute<'c>(op: OperationRef<'c, '_>, name: &str, value: Attribute<'c>) {
    // Safety: the op and the attribute are live and of one context.
    unsafe {
        mlir_sys::mlirOperationSetAttributeByName(op.to_raw(), string_ref(name), value.to_raw())
    }
}
