//! A pass of one stage, some of whose inner loops are parallel while others reduce.
use super::{Point, Sweep};
use crate::kernel::emit::Emit;
use crate::lowering::linalg_to_vector::{codegen::Codegen, error::Result};
use irc_mlir::Value;

impl<'c: 'a, 'a> Sweep<'_, 'c, 'a> {
    /// Emits the loops of the pass.
    pub(super) fn emit_partial(&self, cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) -> Result<()> {
        self.emit_parallel(cg, e, &mut vec![])
    }

    fn emit_parallel(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &mut Vec<Value<'c, 'a>>,
    ) -> Result<()> {
        let stage = &cg.kernel.stages[self.pass.stages[0]];
        // Adjacent parallel loops may have been merged.
        let parallel = self.loops.iter().filter(|each| each.dim < stage.parallel).count();
        let size = self.loops[ivs.len()].size;
        if ivs.len() + 1 < parallel {
            return e.loop_over(size, |e, iv| {
                ivs.push(iv);
                let result = self.emit_parallel(cg, e, ivs);
                ivs.pop();
                result
            });
        }
        let (width, block) = (self.lanes.count(), self.lanes.count() * self.unroll as i64);
        let (blocks, whole) = (size / block * block, size / width * width);
        for (from, to, copies) in [(0, blocks, self.unroll), (blocks, whole, 1)] {
            if from == to {
                continue;
            }
            let bounds = (e.index(from), e.index(to), width * copies as i64);
            e.for_each(bounds, &[], |e, iv, _| {
                let at = |copy| e.offset(iv, copy as i64 * width);
                let points: Vec<_> =
                    (0..copies).map(|copy| self.point(ivs, Some(at(copy)), None)).collect();
                self.emit_columns(cg, e, points).map(|()| vec![])
            })?;
        }
        if size > whole {
            let mask = e.tail_mask(size - whole, self.lanes);
            let point = self.point(ivs, Some(e.index(whole)), mask);
            self.emit_columns(cg, e, vec![point])?;
        }
        Ok(())
    }

    /// Reduces into the outputs at several points, side by side.
    fn emit_columns(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        mut points: Vec<Point<'_, 'c, 'a>>,
    ) -> Result<()> {
        let s = self.pass.stages[0];
        let stage = cg.kernel.stages[s].clone();
        let missing = self.loops.len() - points[0].ivs.len();
        let mut starts = vec![];
        for point in &points {
            let mut start = Point { ivs: point.ivs.clone(), ..*point };
            start.ivs.extend(vec![e.index(0); missing]);
            for output in &stage.outputs {
                starts.push(self.read(cg, e, s, &output.init, &start, (&[], &vec![]))?);
            }
        }
        let totals = self.emit_reductions(cg, e, &mut points, &starts)?;
        for (number, point) in points.iter().enumerate() {
            for index in 0..stage.outputs.len() {
                let total = totals[number * stage.outputs.len() + index];
                self.write(cg, e, (s, index), total, point);
            }
        }
        Ok(())
    }

    fn emit_reductions(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        points: &mut Vec<Point<'_, 'c, 'a>>,
        carried: &[Value<'c, 'a>],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let depth = points[0].ivs.len();
        let each = self.accumulators.len();
        if depth == self.loops.len() {
            let mut next = vec![];
            for (number, point) in points.iter().enumerate() {
                let own = &carried[number * each..(number + 1) * each];
                next.extend(self.emit_point(cg, e, point, own, &vec![])?);
            }
            return Ok(next);
        }
        let bounds = (e.index(0), e.index(self.loops[depth].size), 1);
        e.for_each(bounds, carried, |e, iv, carried| {
            points.iter_mut().for_each(|point| point.ivs.push(iv));
            let result = self.emit_reductions(cg, e, points, carried);
            points.iter_mut().for_each(|point| {
                point.ivs.pop();
            });
            result
        })
    }
}
