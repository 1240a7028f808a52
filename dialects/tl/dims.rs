//! The attribute `#tl.dims<"N", "4">`, read and written by its generated class: as text, which MLIR prints and
//! parses, it would cost more than most passes.
use irc_mlir::{Attribute, AttributeLike, Context};
use mlir_sys::{MlirAttribute, MlirContext, MlirStringRef};
use std::borrow::Cow;

unsafe extern "C" {
    fn ircDimsCount(attribute: MlirAttribute) -> isize;
    fn ircDimsAt(attribute: MlirAttribute, index: isize) -> MlirStringRef;
    fn ircDimsGet(context: MlirContext, sizes: *const MlirStringRef, count: isize)
    -> MlirAttribute;
}

/// The sizes in the attribute; `None` for another attribute.
pub fn sizes_of<'a>(encoding: &'a Attribute<'_>) -> Option<Vec<Cow<'a, str>>> {
    let raw = encoding.to_raw();
    // Safety: the attribute is live, and so are its strings; indices are below the number of sizes.
    unsafe {
        let count = usize::try_from(ircDimsCount(raw)).ok()?;
        Some((0..count).map(|index| text(ircDimsAt(raw, index.cast_signed()))).collect())
    }
}

/// # Safety
/// `raw` must be readable for the lifetime of the result.
unsafe fn text<'a>(raw: MlirStringRef) -> Cow<'a, str> {
    if raw.length == 0 {
        return "".into();
    }
    // Safety: guaranteed by the caller.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(raw.data.cast(), raw.length) })
}

/// The attribute of these sizes.
pub fn encoding<'c>(context: &'c Context, sizes: &[String]) -> Attribute<'c> {
    let string = |text: &String| MlirStringRef { data: text.as_ptr().cast(), length: text.len() };
    let sizes: Vec<MlirStringRef> = sizes.iter().map(string).collect();
    // Safety: the context copies the strings, which are live.
    unsafe {
        let raw = ircDimsGet(context.to_raw(), sizes.as_ptr(), sizes.len().cast_signed());
        Attribute::from_raw(raw)
    }
}
