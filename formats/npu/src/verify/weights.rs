//! Checks that convolutions read their own weights in WL0, not later ones.

use super::order::Step;
use super::report::{At, Report};
use crate::access::{Access, Space};
use crate::{Op, Program};

/// Units of WL0 that are tracked: 64 MiB.
const UNITS: i64 = 1 << 20;

/// Input channels, kernel height and width of weights.
type Size = [u32; 3];

/// The contents of WL0, of each core.
pub struct Weights<'p> {
    program: &'p Program,
    cores: Vec<LoadedWeights>,
}

#[derive(Clone, Default)]
struct LoadedWeights {
    /// By unit: the instruction that loaded it, and the size of the weights.
    units: Vec<Option<(At, Size)>>,
    /// Upcoming convolutions.
    expected: Option<Size>,
}

impl<'p> Weights<'p> {
    /// No contents.
    pub fn new(program: &'p Program) -> Self {
        Self { program, cores: vec![LoadedWeights::default(); program.cores.len()] }
    }

    /// Processes an instruction.
    pub fn step(&mut self, step: Step<'_>, accesses: &[Access], report: &mut Report<'_>) {
        let at = (step.core, step.index);
        let held = &mut self.cores[step.core];
        let wl0 = accesses.iter().find(|access| access.space == Space::Wl0);
        let range = wl0.map(|access| (access.area.start, access.area.end()));
        let range = range.filter(|(start, end)| *start >= 0 && *end <= UNITS);
        let range = range.map(|(start, end)| (start as usize, end as usize));
        match (&self.program.cores[step.core].code[step.index].op, range) {
            (Op::PeCfgTp(op), _) => held.expected = Some([op.tile[2], op.kernel[0], op.kernel[1]]),
            (Op::LwMov(op), Some((start, end))) => {
                if held.units.len() < end {
                    held.units.resize(end, None);
                }
                let [_, c, r, s] = op.w_size;
                held.units[start..end].fill(Some((at, [c, r, s])));
            }
            (Op::PeConv(_), Some((start, end))) => held.check(at, start, end, report),
            _ => {}
        }
    }
}

impl LoadedWeights {
    fn check(&self, at: At, start: usize, end: usize, report: &mut Report<'_>) {
        let Some(expected) = self.expected else { return };
        let units = self.units.iter().enumerate().take(end).skip(start);
        let mut filled = units.filter_map(|(unit, held)| held.map(|held| (unit, held)));
        let Some((unit, (from, found))) = filled.find(|(_, (_, size))| *size != expected) else {
            return;
        };
        let message = format!(
            "needs weights of {expected:?} (channels, kernel), but WL0 has those of {found:?} from \
             unit {unit} on"
        );
        let diagnostic = report.diagnostic("npu-weights", message, at);
        let diagnostic = report.also(diagnostic, from, "brought there");
        report.sink.push(diagnostic);
    }
}
