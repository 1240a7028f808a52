//! Space to depth, and depth to space.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Dim, Relation};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("DepthToSpace", &[1, 11, 13, 28], depth_to_space),
    Operator::new("SpaceToDepth", &[1, 13, 28], space_to_depth),
];

/// Batch, channels, rows and columns, and the side of a block.
fn operand(cx: &Context<'_>) -> Result<([Dim; 4], Dim), LowerError> {
    let ty = cx.ty(cx.input(0)?);
    let dims: Result<[Dim; 4], _> = ty.dims.clone().try_into();
    let dims = dims.map_err(|_| LowerError::invalid(format!("expected rank 4, found {ty}")))?;
    let block = cx.int("blocksize")?.ok_or_else(|| cx.missing("blocksize"))?;
    if block < 1 {
        return Err(LowerError::invalid(format!(
            "expected blocksize of at least 1, found {block}"
        )));
    }
    Ok((dims, block.into()))
}

fn depth_to_space(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ([n, c, h, w], block) = operand(cx)?;
    let square = block.clone() * block.clone();
    let depth = c.floor_div(&square);
    let message = "expected channels in blocks";
    cx.b.require(&(depth.clone() * square), Relation::Equal, &c, message)?;
    let (s, d) = (block.clone(), depth.clone());
    let (split, permutation) = match cx.string_or("mode", "DCR")?.as_str() {
        "DCR" => ([n.clone(), s.clone(), s, d, h.clone(), w.clone()], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([n.clone(), d, s.clone(), s, h.clone(), w.clone()], [0, 1, 4, 2, 5, 3]),
        other => return Err(LowerError::word("mode", &["DCR", "CRD"], other)),
    };
    let x = cx.b.reshape(x, &split)?;
    let x = cx.b.transpose(x, &permutation)?;
    one(cx.b.reshape(x, &[n, depth, h * block.clone(), w * block]))
}

fn space_to_depth(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ([n, c, h, w], block) = operand(cx)?;
    let (rows, columns) = (h.floor_div(&block), w.floor_div(&block));
    for (whole, parts) in [(&h, &rows), (&w, &columns)] {
        let blocks = parts.clone() * block.clone();
        cx.b.require(&blocks, Relation::Equal, whole, "expected rows and columns in blocks")?;
    }
    let s = || block.clone();
    let split = [n.clone(), c.clone(), rows.clone(), s(), columns.clone(), s()];
    let mode = if cx.version < 28 { "DCR".to_owned() } else { cx.string_or("mode", "DCR")? };
    let permutation = match mode.as_str() {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        other => return Err(LowerError::word("mode", &["DCR", "CRD"], other)),
    };
    let x = cx.b.reshape(x, &split)?;
    let x = cx.b.transpose(x, &permutation)?;
    one(cx.b.reshape(x, &[n, c * s() * s(), rows, columns]))
}
