//! Operations of the threads of a warp together.

use super::access::Place;
use super::atomic::combine;
use super::error::Error;
use super::step::test;
use super::{Flow, Fragment, Group, Machine, Wait, Warp, lanes, put, put_predicate};
use crate::addresses::Addresses;
use crate::code::{Address, GroupMatrix, Left, Op, Shuffle, Vote, WarpOp};
use crate::group_matrix::{self, Descriptor};
use crate::launch::Schedule;
use crate::matrix;
use crate::race::{Async, Races};
use crate::row::{Row, WARP};
use crate::types::Type;
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, Error>;

impl Machine<'_> {
    pub(super) fn warp_op(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        members: &Row,
        op: &WarpOp,
    ) -> Result<Flow> {
        let first = lanes(mask).next().unwrap_or(0);
        let named = members[first] as u32;
        if let Some(lane) = lanes(mask).find(|lane| members[*lane] as u32 != named) {
            // Threads with different masks are different groups.
            let same = lanes(mask)
                .filter(|lane| members[*lane] as u32 == named)
                .fold(0, |mask, lane| mask | 1 << lane);
            if fragment.resumed || mask != fragment.mask {
                let message = format!(
                    "threads of a warp give the masks {named:#010x} and {:#010x} to the same instruction",
                    members[lane] as u32
                );
                return Err(Error::new("ptx-warp", message).at_lane(lane));
            }
            self.split(warp, fragment, mask & !same, fragment.at);
            return Ok(Flow::Wait(Wait::None));
        }
        if let Some(lane) = lanes(mask).find(|lane| named >> lane & 1 == 0) {
            let message = format!("a thread that is not in the mask {named:#010x} which it gives");
            return Err(Error::new("ptx-warp", message).at_lane(lane));
        }
        let needed = named & warp.live;
        if mask != needed && !fragment.resumed {
            if mask != fragment.mask {
                // The threads that a predicate excludes go on; the others wait.
                self.split(warp, fragment, fragment.mask & !mask, fragment.at + 1);
            }
            return Ok(Flow::Wait(Wait::Warp(named)));
        }
        if fragment.resumed && needed & !mask != 0 {
            let message = format!(
                "threads of the mask {named:#010x} do not run the instruction, or give another mask"
            );
            return Err(Error::new("ptx-warp", message).at_lane(first));
        }
        fragment.resumed = false;
        self.exchange(warp, fragment, mask, op)?;
        Ok(Flow::Next)
    }

    fn exchange(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        op: &WarpOp,
    ) -> Result<()> {
        let base = fragment.registers;
        let mut out = [0; WARP];
        match op {
            WarpOp::Barrier => {
                if let Some(races) = &mut self.races {
                    let agents: Vec<u32> =
                        lanes(mask).map(|lane| Races::agent(warp.number, lane as u32)).collect();
                    races.barrier(&agents);
                }
            }
            WarpOp::Shuffle(kind, d, p, a, b, c) => {
                let (a, b, c) = (
                    *self.row(warp, fragment, *a),
                    *self.row(warp, fragment, *b),
                    *self.row(warp, fragment, *c),
                );
                let mut valid = 0;
                for lane in lanes(mask) {
                    let (clamp, segment) = (c[lane] as u32 & 31, c[lane] as u32 >> 8 & 31);
                    let own = lane as u32;
                    let selector = b[lane] as u32 & 31;
                    let most = (own & segment) | (clamp & !segment);
                    let least = own & segment;
                    let (source, is_valid) = match kind {
                        Shuffle::Up => {
                            let source = own as i32 - selector as i32;
                            (source as u32, source >= most as i32)
                        }
                        Shuffle::Down => (own + selector, own + selector <= most),
                        Shuffle::Butterfly => (own ^ selector, own ^ selector <= most),
                        Shuffle::Index => {
                            let source = least | (selector & !segment);
                            (source, source <= most)
                        }
                    };
                    let source = if is_valid { source } else { own };
                    if mask >> source & 1 == 0 {
                        let message = format!(
                            "a value of thread {source} of the warp, which does not take part"
                        );
                        return Err(Error::new("ptx-warp", message).at_lane(lane));
                    }
                    out[lane] = a[source as usize];
                    valid |= u32::from(is_valid) << lane;
                }
                put(&mut warp.registers, base, *d, mask, &out);
                put_predicate(&mut warp.predicates, fragment.predicates, *p, mask, valid);
            }
            WarpOp::Vote(kind, d, predicate) => {
                let truth = test(warp, fragment, *predicate) & mask;
                let value = match kind {
                    Vote::Ballot => {
                        put(&mut warp.registers, base, *d, mask, &[truth.into(); WARP]);
                        return Ok(());
                    }
                    Vote::All => truth == mask,
                    Vote::Any => truth != 0,
                    Vote::Uniform => truth == mask || truth == 0,
                };
                let value = if value { u32::MAX } else { 0 };
                put_predicate(&mut warp.predicates, fragment.predicates, *d, mask, value);
            }
            WarpOp::MatchAny(d, a, bits) => {
                let a = *self.row(warp, fragment, *a);
                let all = u64::MAX >> (64 - bits);
                for lane in lanes(mask) {
                    let same = lanes(mask).filter(|other| (a[*other] ^ a[lane]) & all == 0);
                    out[lane] = same.fold(0, |mask, other| mask | 1 << other);
                }
                put(&mut warp.registers, base, *d, mask, &out);
            }
            WarpOp::MatchAll(d, p, a, bits) => {
                let a = *self.row(warp, fragment, *a);
                let all = u64::MAX >> (64 - bits);
                let first = lanes(mask).next().unwrap_or(0);
                let same = lanes(mask).all(|lane| (a[lane] ^ a[first]) & all == 0);
                let value = if same { mask } else { 0 };
                put(&mut warp.registers, base, *d, mask, &[value.into(); WARP]);
                put_predicate(
                    &mut warp.predicates,
                    fragment.predicates,
                    *p,
                    mask,
                    if same { u32::MAX } else { 0 },
                );
            }
            WarpOp::Reduce(kind, ty, d, a) => {
                let a = *self.row(warp, fragment, *a);
                let value = lanes(mask)
                    .map(|lane| a[lane])
                    .reduce(|x, y| combine(*kind, *ty, x, y))
                    .unwrap_or(0);
                put(&mut warp.registers, base, *d, mask, &[value; WARP]);
            }
            WarpOp::Elect(d, p) => {
                let first = lanes(mask).next().unwrap_or(0);
                put(&mut warp.registers, base, *d, mask, &[first as u64; WARP]);
                put_predicate(&mut warp.predicates, fragment.predicates, *p, mask, 1 << first);
            }
            WarpOp::Matrix(matrix) => {
                self.need_all(mask)?;
                let rows = |sources: &[crate::code::Src]| -> Vec<Row> {
                    sources.iter().map(|src| *self.row(warp, fragment, *src)).collect()
                };
                let (a, b, c) = (rows(&matrix.a), rows(&matrix.b), rows(&matrix.c));
                for (register, value) in matrix.d.iter().zip(matrix::multiply(matrix, &a, &b, &c)) {
                    put(&mut warp.registers, base, *register, mask, &value);
                }
            }
            WarpOp::LoadMatrix(registers, address, transposed) => {
                self.need_all(mask)?;
                let matrices =
                    self.load_matrices(warp, fragment, address, registers.len(), *transposed)?;
                for (register, value) in registers.iter().zip(matrices) {
                    put(&mut warp.registers, base, *register, mask, &value);
                }
            }
            WarpOp::StoreMatrix(values, address, transposed) => {
                self.need_all(mask)?;
                let values: Vec<Row> =
                    values.iter().map(|src| *self.row(warp, fragment, *src)).collect();
                self.store_matrices(warp, fragment, address, &values, *transposed)?;
            }
            WarpOp::MoveMatrix(d, a) => {
                self.need_all(mask)?;
                let a = *self.row(warp, fragment, *a);
                let element = |row: usize, column: usize| {
                    a[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff
                };
                for (lane, out) in out.iter_mut().enumerate() {
                    let (row, column) = (lane / 4, lane % 4 * 2);
                    *out = element(column, row) | element(column + 1, row) << 16;
                }
                put(&mut warp.registers, base, *d, mask, &out);
            }
            WarpOp::GroupMatrix(matrix) => self.start_group(warp, fragment, mask, matrix)?,
            WarpOp::GroupFence => {
                warp.unfenced.clear();
                warp.fenced = true;
            }
            WarpOp::GroupCommit => warp.groups_committed += 1,
            WarpOp::GroupWait(remaining) => {
                let complete = warp.groups_committed.saturating_sub(*remaining);
                while warp.groups.first().is_some_and(|group| group.group < complete) {
                    self.complete_group(warp)?;
                }
            }
        }
        Ok(())
    }

    /// Products of matrices need all 32 threads.
    fn need_all(&self, mask: u32) -> Result<()> {
        if mask == u32::MAX {
            return Ok(());
        }
        Err(Error::new(
            "ptx-warp",
            format!("the instruction needs 32 threads, and {} run it", mask.count_ones()),
        ))
    }

    fn load_matrices(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        address: &Address,
        count: usize,
        transposed: bool,
    ) -> Result<Vec<Row>> {
        let addresses = self.addresses(warp, fragment, address);
        let mut matrices = vec![];
        for index in 0..count {
            let mut elements = [[0; 8]; 8];
            for (row, elements) in elements.iter_mut().enumerate() {
                // The addresses of the rows of a matrix are those of 8 threads.
                let lane = index * 8 + row;
                let place = self.place(warp, lane, address.space, addresses[lane], 16)?;
                self.check_written(warp, lane, fragment.at, place, 16);
                self.track(
                    warp,
                    lane,
                    fragment.at,
                    place,
                    addresses[lane],
                    16,
                    false,
                    crate::code::Order::WEAK,
                );
                for (column, element) in elements.iter_mut().enumerate() {
                    *element = self.read_place(warp, place.after(2 * column), 2);
                }
            }
            matrices.push(std::array::from_fn(|lane| {
                let (row, column) = (lane / 4, lane % 4 * 2);
                match transposed {
                    false => elements[row][column] | elements[row][column + 1] << 16,
                    true => elements[column][row] | elements[column + 1][row] << 16,
                }
            }));
        }
        let threads = u32::MAX >> (32 - 8 * count);
        self.statistics.shared(&Addresses::new(&addresses, threads, 16));
        Ok(matrices)
    }

    fn store_matrices(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        address: &Address,
        values: &[Row],
        transposed: bool,
    ) -> Result<()> {
        let addresses = self.addresses(warp, fragment, address);
        for (index, values) in values.iter().enumerate() {
            let element = |row: usize, column: usize| {
                values[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff
            };
            for row in 0..8 {
                let lane = index * 8 + row;
                let place = self.place(warp, lane, address.space, addresses[lane], 16)?;
                self.track(
                    warp,
                    lane,
                    fragment.at,
                    place,
                    addresses[lane],
                    16,
                    true,
                    crate::code::Order::WEAK,
                );
                for column in 0..8 {
                    let value =
                        if transposed { element(column, row) } else { element(row, column) };
                    self.write_place(warp, place.after(2 * column), 2, value)?;
                }
            }
        }
        let threads = u32::MAX >> (32 - 8 * values.len());
        self.statistics.shared(&Addresses::new(&addresses, threads, 16));
        Ok(())
    }

    fn uniform(&self, warp: &Warp, fragment: &Fragment, src: crate::code::Src) -> Result<u64> {
        let row = self.row(warp, fragment, src);
        match row.iter().position(|value| *value != row[0]) {
            None => Ok(row[0]),
            Some(lane) => {
                let message = "the threads of the warp give different descriptors";
                Err(Error::new("ptx-wgmma", message).at_lane(lane))
            }
        }
    }

    fn start_group(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        matrix: &GroupMatrix,
    ) -> Result<()> {
        self.need_all(mask)?;
        if !warp.fenced {
            let message = "the first `wgmma` has no `wgmma.fence` before it";
            self.report_once(warp, fragment.at, Error::new("ptx-wgmma", message));
        }
        let a = match &matrix.a {
            Left::Descriptor(src) => Some(self.uniform(warp, fragment, *src)?),
            Left::Registers(_) => None,
        };
        let b = self.uniform(warp, fragment, matrix.b)?;
        let scale = match matrix.scale_d {
            Ok(scale) => scale,
            Err(predicate) => {
                let truth = test(warp, fragment, predicate);
                if truth != 0 && truth != u32::MAX {
                    let message = "the threads of the warp give different predicates";
                    return Err(Error::new("ptx-wgmma", message));
                }
                truth != 0
            }
        };
        let agent = Races::agent(warp.number, 0);
        let accessor =
            self.races.as_mut().map(|races| races.asynchronous(agent, Async::Bulk, fragment.at));
        warp.groups.push(Group {
            at: fragment.at,
            registers: fragment.registers,
            group: warp.groups_committed,
            operands: (a, b, scale),
            accessor,
            done: false,
        });
        let now = match self.launch.schedule {
            // As late as allowed: when it is waited for.
            Schedule::RoundRobin => false,
            Schedule::Random(_) | Schedule::Adversarial(_) => self.random.below(2) == 0,
        };
        if now {
            while !warp.groups.is_empty() && warp.groups.iter().any(|group| !group.done) {
                self.compute_group(warp)?;
            }
        }
        Ok(())
    }

    /// Completes the oldest `wgmma` of a warp.
    fn complete_group(&mut self, warp: &mut Warp) -> Result<()> {
        if warp.groups.first().is_some_and(|group| !group.done) {
            self.compute_group(warp)?;
        }
        let group = warp.groups.remove(0);
        if let (Some(races), Some(accessor)) = (&mut self.races, &group.accessor) {
            races.waited(Races::agent(warp.number, 0), Async::Bulk, accessor);
        }
        Ok(())
    }

    /// Computes the oldest `wgmma` of a warp that is not computed.
    fn compute_group(&mut self, warp: &mut Warp) -> Result<()> {
        let Some(index) = warp.groups.iter().position(|group| !group.done) else { return Ok(()) };
        warp.groups[index].done = true;
        let (at, base) = (warp.groups[index].at, warp.groups[index].registers);
        let (a, b, scale) = warp.groups[index].operands;
        let accessor = warp.groups[index].accessor.clone();
        let program = self.program;
        let Op::Warp(_, op) = &program.code[at as usize].op else { return Ok(()) };
        let WarpOp::GroupMatrix(matrix) = &**op else { return Ok(()) };
        let (n, k) = (matrix.n, matrix.k);
        let mut chunks = BTreeSet::new();
        let first_row = warp.index as usize % 4 * 16;
        let left = match (&matrix.a, a) {
            (Left::Descriptor(_), Some(bits)) => {
                let rows = first_row..first_row + 16;
                self.read_described(
                    warp,
                    bits,
                    rows,
                    k,
                    matrix.a_type,
                    matrix.transposed.0,
                    &mut chunks,
                )
            }
            (Left::Registers(sources), _) => {
                let e = 4 / matrix.a_type.bytes() as usize;
                let mut left = vec![0.0; 16 * k];
                for (i, src) in sources.iter().enumerate() {
                    let row = super::get(&self.constants, &warp.registers, base, *src);
                    for (lane, register) in row.iter().enumerate() {
                        for part in 0..e {
                            let (row, column) = matrix::left_position(lane, i, part, 16, e);
                            left[row * k + column] = matrix::number(*register, part, matrix.a_type);
                        }
                    }
                }
                Ok(left)
            }
            _ => Ok(vec![0.0; 16 * k]),
        };
        let left = left.map_err(|fault| fault.located(at, warp))?;
        let right =
            self.read_described(warp, b, 0..n, k, matrix.b_type, matrix.transposed.1, &mut chunks);
        let right = right.map_err(|fault| fault.located(at, warp))?;
        for chunk in chunks {
            let place = Place::Shared(chunk as usize);
            self.check_written(warp, 0, at, place, 16);
            self.check_race(warp, (0, at), place, 16, accessor.as_ref(), (false, false));
        }
        let sign = if matrix.negated.0 != matrix.negated.1 { -1.0 } else { 1.0 };
        let e = if matrix.to == Type::F16 { 2 } else { 1 };
        for (i, register) in matrix.d.iter().enumerate() {
            let row = &mut warp.registers[(base + register) as usize];
            for (lane, register) in row.iter_mut().enumerate() {
                let old = *register;
                *register = 0;
                for part in 0..e {
                    let (row, column) = group_matrix::result_position(lane, i * e + part);
                    let start = if scale { matrix::number(old, part, matrix.to) } else { 0.0 };
                    let products = left[row * k..][..k].iter().zip(&right[column * k..][..k]);
                    let sum = products.fold(start, |sum, (a, b)| sum + sign * a * b);
                    *register |=
                        matrix::result_bits(sum, matrix.to, matrix.saturate) << (16 * part);
                }
            }
        }
        Ok(())
    }

    /// The elements of rows of a matrix in shared memory, and the chunks of 16 bytes that they are in.
    #[allow(clippy::too_many_arguments)]
    fn read_described(
        &self,
        warp: &Warp,
        bits: u64,
        rows: std::ops::Range<usize>,
        k: usize,
        ty: Type,
        transposed: bool,
        chunks: &mut BTreeSet<u64>,
    ) -> Result<Vec<f64>> {
        let descriptor =
            Descriptor::new(bits).map_err(|message| Error::new("ptx-wgmma", message))?;
        let bytes = u64::from(ty.bytes());
        let mut values = Vec::with_capacity(rows.len() * k);
        for row in rows {
            for column in 0..k {
                let offset = descriptor.offset(row as u64, column as u64, bytes, transposed);
                let place =
                    self.place_unaligned(warp, 0, crate::types::Space::Shared, offset, bytes)?;
                chunks.insert(offset & !15);
                values.push(matrix::number(self.read_place(warp, place, bytes), 0, ty));
            }
        }
        Ok(values)
    }

    /// Checks that an instruction does not use registers of a `wgmma` that is in flight, and remembers those
    /// that the next `wgmma` can use only after a fence.
    pub(super) fn check_group_registers(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        op: &Op,
    ) -> Result<()> {
        let base = fragment.registers;
        let own = match op {
            Op::Warp(_, op) => match &**op {
                WarpOp::GroupMatrix(matrix) => Some(matrix),
                _ => None,
            },
            _ => None,
        };
        let mut used = vec![];
        crate::visit::registers(op, &mut |register, write| used.push((base + register, write)));
        if let Some(matrix) = own {
            if used.iter().any(|(register, _)| warp.unfenced.contains(register)) {
                let message = "registers of a `wgmma` were written before it without a `wgmma.fence` in between";
                self.report_once(warp, fragment.at, Error::new("ptx-wgmma", message));
            }
            let program = self.program;
            let conflict =
                warp.groups.iter().find(|group| match &program.code[group.at as usize].op {
                    Op::Warp(_, op) => match &**op {
                        // Several may accumulate to the same registers, if these are all the same.
                        WarpOp::GroupMatrix(other) => {
                            let shared = other.d.iter().any(|register| matrix.d.contains(register));
                            group.registers == base && shared && other.d != matrix.d
                        }
                        _ => false,
                    },
                    _ => false,
                });
            if let Some(group) = conflict {
                self.report_in_flight(warp, fragment.at, group.at);
            }
            return Ok(());
        }
        warp.unfenced
            .extend(used.iter().filter(|(_, write)| *write).map(|(register, _)| *register));
        let program = self.program;
        let mut conflict = None;
        for group in &warp.groups {
            crate::visit::registers(&program.code[group.at as usize].op, &mut |register, write| {
                let register = group.registers + register;
                // What it only reads may be read by others.
                if used.iter().any(|(other, writes)| *other == register && (write || *writes)) {
                    conflict = Some(group.at);
                }
            });
        }
        if let Some(other) = conflict {
            self.report_in_flight(warp, fragment.at, other);
        }
        Ok(())
    }

    fn report_in_flight(&mut self, warp: &Warp, at: u32, group: u32) {
        let line = self.program.source.line_column(self.program.starts[group as usize] as usize).0;
        let message = format!(
            "a register of the `wgmma` of line {line} is used before `wgmma.wait_group` waits for it"
        );
        self.report_once(warp, at, Error::new("ptx-wgmma", message));
    }
}
