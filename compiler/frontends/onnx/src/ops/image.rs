//! Images in the bytes of their files.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{DType, Dim, Function, PixelFormat};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("ImageDecoder", &[20], decode)];

/// The pixels of an image: rows, columns, channels. The host decodes it when its size is requested.
fn decode(cx: &mut Context<'_>) -> Lowered {
    let file = cx.input(0)?;
    let format = PixelFormat::named(&cx.string_or("pixel_format", "RGB")?);
    let format = format.map_err(LowerError::invalid)?;
    let ty = cx.ty(file);
    if ty.dtype != DType::U8 || ty.rank() != 1 {
        return Err(LowerError::invalid(format!(
            "expected the bytes of a file, u8[N], found {ty}"
        )));
    }
    let size = cx.b.host(Function::ImageSize(format), &[file])?;
    let mut dims = cx.b.elements_or_symbols(size)?;
    dims.push(Dim::Known(format.channels() as i64));
    one(cx.b.host_of(Function::Pixels(format), &[file], &dims))
}
