//! Communication between ranks in the kernel of plans: the threads of a task copy to the memory of a peer, and one of them
//! signals it. Semantics are those of the executor ([`irc_executor::comm`]).
//!
//! A rank has two words for each of its links: how many signals have arrived, which peers add to, and how many were waited
//! for. What is written before a signal, or before a packet, is visible after the wait for it: both have the scope of the
//! system, so that the peer may be on another GPU.
use super::{Team, Writer};
use irc_ark_format::{
    model::DataType,
    plan::tiling::{Grid, four},
};
use irc_executor::comm::{Action, CommOp, CommOps, Cut, Place, Reduce, View};
use std::collections::BTreeMap;

/// Bytes of the words of a link.
const LINK: u64 = 8;

/// The most bytes that a thread loads or stores at once.
const MAX_UNIT: u64 = 16;

/// Bytes of the payload of a packet.
const PAYLOAD: u64 = 4;

/// The links of a rank: by peer and tag, or peer alone for synchronisations, the place of their words.
#[derive(Clone, Debug, Default)]
pub struct Links(BTreeMap<(i64, Option<i64>), u64>);

impl Links {
    /// The links of each rank of a world.
    pub fn of(ops: &[CommOps]) -> Vec<Self> {
        let mut all = vec![Self::default(); ops.len()];
        let mut add = |to: i64, link| {
            if let Some(links) = usize::try_from(to).ok().and_then(|to| all.get_mut(to)) {
                let next = links.bytes();
                links.0.entry(link).or_insert(next);
            }
        };
        for (rank, ops) in ops.iter().enumerate() {
            let rank = rank as i64;
            for op in ops.values() {
                match &op.action {
                    Action::Send { to, signal: Some(tag), .. } => {
                        add(to.peer.unwrap_or(rank), (rank, Some(*tag)));
                    }
                    Action::Recv { link: Some(((peer, tag), _)) } => add(rank, (*peer, Some(*tag))),
                    Action::Sync { peers } => peers.iter().for_each(|peer| {
                        add(*peer, (rank, None));
                        add(rank, (*peer, None));
                    }),
                    _ => {}
                }
            }
        }
        all
    }

    /// Bytes of the words of all links.
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64 * LINK
    }
}

/// Where the bytes of a tensor are, in row-major order: runs of contiguous bytes, in dimensions of an extent and a stride
/// each, the innermost first.
struct Runs {
    base: u64,
    run: u64,
    outer: Vec<(u64, u64)>,
}

impl Runs {
    fn of(view: &View) -> Self {
        let mut runs = Self { base: view.base, run: view.shape[3] * view.element, outer: vec![] };
        for dim in (0..3).rev().filter(|dim| view.shape[*dim] != 1) {
            match runs.outer.is_empty() && view.strides[dim] == runs.run {
                true => runs.run *= view.shape[dim],
                false => runs.outer.push((view.shape[dim], view.strides[dim])),
            }
        }
        runs
    }

    /// The largest unit of which all runs are made, and at which they start.
    fn unit(&self) -> u64 {
        let strides = self.outer.iter().map(|(_, stride)| *stride);
        strides.chain([self.base, self.run]).fold(MAX_UNIT, gcd)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The largest unit of which the bytes of every task are made.
fn unit_of(cut: &Cut) -> u64 {
    let Cut { tensor, grid } = cut;
    let (shape, element) = (four(&tensor.shape), tensor.dtype.bytes());
    match grid.tasks() {
        1 => gcd(MAX_UNIT, shape.iter().product::<i64>().cast_unsigned() * element),
        _ => {
            let row = |elements: i64| elements.cast_unsigned() * element;
            gcd(gcd(MAX_UNIT, row(shape[3])), row(grid.tile[3].min(shape[3])))
        }
    }
}

/// The type of a vector of some bytes, of elements of integers.
fn words(bytes: u64) -> String {
    let element = bytes.min(4);
    format!("{}xi{}", bytes / element, 8 * element)
}

/// The type of a vector of some bytes, of elements of a type.
fn elements(bytes: u64, dtype: DataType) -> String {
    let name = match dtype {
        DataType::Fp32 => "f32",
        DataType::Fp16 => "f16",
        DataType::Bf16 => "bf16",
        DataType::Int32 | DataType::Uint32 => "i32",
        DataType::Int8 | DataType::Uint8 | DataType::Byte => "i8",
    };
    format!("{}x{name}", bytes / dtype.bytes())
}

impl Writer<'_> {
    /// A task of an op.
    ///
    /// # Errors
    /// Tensors whose rows divide packets.
    pub(super) fn communicate(
        &mut self,
        op: &CommOp,
        task: &str,
        team: &Team,
    ) -> Result<(), String> {
        match &op.action {
            Action::SendDone | Action::Recv { link: None } => return Ok(()),
            Action::Recv { link: Some(((peer, tag), count)) } => {
                self.first(team, |writer| writer.wait((*peer, Some(*tag)), *count));
            }
            Action::Send { from, to, cut, signal } => {
                let unit = [Runs::of(&from.view).unit(), Runs::of(&to.view).unit(), unit_of(cut)];
                let unit = unit.into_iter().fold(MAX_UNIT, gcd);
                self.each(cut, unit, task, team, |writer, byte| {
                    let value = writer.load(from, byte, unit, &words(unit));
                    writer.store(to, byte, unit, &words(unit), &value);
                });
                if let Some(tag) = signal {
                    self.team_barrier(team);
                    let link = (to.peer.unwrap_or(self.rank), *tag);
                    self.first(team, |writer| writer.signal(link.0, Some(link.1)));
                }
            }
            Action::SendPacket { from, to, cut, flag } => {
                whole_packets([from])?;
                self.line("func.call @irc_gpu_fence() : () -> ()");
                // The tiles are of packets.
                self.each(cut, 2 * PAYLOAD, task, team, |writer, packet| {
                    let byte = writer.by("divui", packet, 2);
                    let word = writer.load_word(from, &byte);
                    writer.send_packet(to, packet, &word, *flag);
                });
            }
            Action::RecvPacket { scratch, output, cut, flag } => {
                whole_packets([output])?;
                self.each(cut, PAYLOAD, task, team, |writer, byte| {
                    let packet = writer.by("muli", byte, 2);
                    let word = writer.receive_packet(scratch, &packet, *flag);
                    let ty = words(PAYLOAD);
                    let value =
                        writer.value(&format!("vector.broadcast {word} : i32 to vector<{ty}>"));
                    writer.store(output, byte, PAYLOAD, &ty, &value);
                });
                self.line("func.call @irc_gpu_fence() : () -> ()");
            }
            Action::Reduce(reduce) => self.reduce(reduce, task, team)?,
            Action::Sync { peers } => self.first(team, |writer| {
                peers.iter().for_each(|peer| writer.signal(*peer, None));
                peers.iter().for_each(|peer| writer.wait((*peer, None), 1));
            }),
        }
        self.team_barrier(team);
        Ok(())
    }

    fn reduce(&mut self, reduce: &Reduce, task: &str, team: &Team) -> Result<(), String> {
        let Reduce { input, scratch, output, targets, cut, peers, dtype, flag } = reduce;
        let own = input.view.bytes();
        if flag.is_some() {
            whole_packets([input, output])?;
            self.line("func.call @irc_gpu_fence() : () -> ()");
        }
        let unit = match flag {
            Some(_) => PAYLOAD,
            None => {
                let places = [input, scratch, output].into_iter().chain(targets);
                let units = places.map(|place| Runs::of(&place.view).unit());
                units.chain([unit_of(cut), own]).fold(MAX_UNIT, gcd)
            }
        };
        if unit < dtype.bytes() {
            return Err(format!("its scratch is not aligned to its elements of {dtype}"));
        }
        let ty = elements(unit, *dtype);
        self.each(cut, unit, task, team, |writer, byte| {
            let mut sum = writer.load(input, byte, unit, &ty);
            for peer in 0..*peers {
                let other = match flag {
                    Some(flag) => {
                        let packet = writer.by("muli", byte, 2);
                        let packet = writer.by("addi", &packet, (2 * peer * own).cast_signed());
                        let word = writer.receive_packet(scratch, &packet, *flag);
                        let word = writer
                            .value(&format!("vector.broadcast {word} : i32 to vector<1xi32>"));
                        writer.value(&format!(
                            "vector.bitcast {word} : vector<1xi32> to vector<{ty}>"
                        ))
                    }
                    None => {
                        let place = writer.by("addi", byte, (peer * own).cast_signed());
                        writer.load(scratch, &place, unit, &ty)
                    }
                };
                sum = writer.sum(*dtype, unit, &sum, &other);
            }
            writer.store(output, byte, unit, &ty, &sum);
            match flag {
                Some(flag) => {
                    let packet = writer.by("muli", byte, 2);
                    let word = writer.word(&sum, &ty);
                    for target in targets {
                        writer.send_packet(target, &packet, &word, *flag);
                    }
                }
                None => {
                    for target in targets {
                        writer.store(target, byte, unit, &ty, &sum);
                    }
                }
            }
        });
        if flag.is_some() {
            self.line("func.call @irc_gpu_fence() : () -> ()");
        }
        Ok(())
    }

    /// The sum of two vectors, rounded to their type.
    fn sum(&mut self, dtype: DataType, bytes: u64, left: &str, right: &str) -> String {
        let ty = format!("vector<{}>", elements(bytes, dtype));
        match dtype {
            DataType::Fp32 => self.value(&format!("arith.addf {left}, {right} : {ty}")),
            DataType::Fp16 | DataType::Bf16 => {
                let wide = format!("vector<{}xf32>", bytes / dtype.bytes());
                let left = self.value(&format!("arith.extf {left} : {ty} to {wide}"));
                let right = self.value(&format!("arith.extf {right} : {ty} to {wide}"));
                let sum = self.value(&format!("arith.addf {left}, {right} : {wide}"));
                self.value(&format!("arith.truncf {sum} : {wide} to {ty}"))
            }
            _ => self.value(&format!("arith.addi {left}, {right} : {ty}")),
        }
    }

    /// What the first thread of a team does.
    fn first(&mut self, team: &Team, body: impl FnOnce(&mut Self)) {
        let is_first = self.compare("eq", &team.thread, 0);
        self.line(&format!("scf.if {is_first} {{"));
        body(self);
        self.line("}");
    }

    /// What the threads of a team do for each unit of the bytes of a task, given the place of its first byte in the
    /// tensor.
    fn each(
        &mut self,
        cut: &Cut,
        unit: u64,
        task: &str,
        team: &Team,
        body: impl FnOnce(&mut Self, &str),
    ) {
        let Cut { tensor, grid: Grid { counts, tile } } = cut;
        let (shape, unit) = (four(&tensor.shape), unit.cast_signed());
        let element = tensor.dtype.bytes().cast_signed();
        let is_whole = cut.grid.tasks() == 1;
        let digits = if is_whole { vec![] } else { self.digits(*counts, task) };
        // The first index of the window in each dimension, and how many there are, the last in units.
        let mut windows = vec![];
        for (dim, digit) in digits.iter().enumerate() {
            let begin = self.by("muli", digit, tile[dim]);
            let mut extent = self.index(tile[dim].min(shape[dim]));
            if shape[dim] % tile[dim] != 0 && counts[dim] > 1 {
                let all = self.index(shape[dim]);
                let rest = self.binary("subi", &all, &begin);
                extent = self.binary("minui", &extent, &rest);
            }
            if dim == 3 {
                let bytes = self.by("muli", &extent, element);
                extent = self.by("divui", &bytes, unit);
            }
            windows.push((begin, extent));
        }
        let mut total =
            self.index(if is_whole { shape.iter().product::<i64>() * element / unit } else { 1 });
        for (_, extent) in &windows {
            total = self.binary("muli", &total, extent);
        }
        let number = self.name();
        self.line(&format!(
            "scf.for {number} = {} to {total} step {} {{",
            team.thread, team.threads
        ));
        let byte = match &windows[..] {
            [first, inner @ .., (column, columns)] => {
                let at = self.binary("remui", &number, columns);
                let mut rest = self.binary("divui", &number, columns);
                let mut places = vec![];
                for (begin, extent) in inner.iter().rev() {
                    let at = self.binary("remui", &rest, extent);
                    rest = self.binary("divui", &rest, extent);
                    places.push(self.binary("addi", begin, &at));
                }
                let mut row = self.binary("addi", &first.0, &rest);
                for (dim, place) in places.iter().rev().enumerate() {
                    let above = self.by("muli", &row, shape[dim + 1]);
                    row = self.binary("addi", &above, place);
                }
                let row = self.by("muli", &row, shape[3] * element);
                let column = self.by("muli", column, element);
                let at = self.by("muli", &at, unit);
                let within = self.binary("addi", &column, &at);
                self.binary("addi", &row, &within)
            }
            _ => self.by("muli", &number, unit),
        };
        body(self, &byte);
        self.line("}");
    }

    /// The name, the size and the offset in its buffer of a byte of a tensor, by its place in row-major order.
    fn at(&mut self, place: &Place, byte: &str) -> (String, u64, String) {
        let (name, bytes) = self.buffer(place.peer.unwrap_or(self.rank), place.slot);
        let Runs { base, run, outer } = Runs::of(&place.view);
        let mut offset = match outer.is_empty() {
            true => byte.to_owned(),
            false => self.by("remui", byte, run.cast_signed()),
        };
        let mut line = match outer.is_empty() {
            true => String::new(),
            false => self.by("divui", byte, run.cast_signed()),
        };
        for (number, (extent, stride)) in outer.iter().enumerate() {
            let index = match number + 1 == outer.len() {
                true => line.clone(),
                false => self.by("remui", &line, extent.cast_signed()),
            };
            line = self.by("divui", &line, extent.cast_signed());
            let moved = self.by("muli", &index, stride.cast_signed());
            offset = self.binary("addi", &offset, &moved);
        }
        (name, bytes, self.by("addi", &offset, base.cast_signed()))
    }

    fn view(&mut self, place: &Place, byte: &str, ty: &str) -> (String, String) {
        let (name, bytes, offset) = self.at(place, byte);
        let view = format!("memref.view {name}[{offset}][] : memref<{bytes}xi8> to memref<{ty}>");
        (self.value(&view), self.index(0))
    }

    /// Loads a vector of a number of bytes, which are contiguous and aligned to it, of a type.
    fn load(&mut self, place: &Place, byte: &str, unit: u64, ty: &str) -> String {
        let (view, zero) = self.view(place, byte, ty);
        self.value(&format!(
            "vector.load {view}[{zero}] {{alignment = {}}} : memref<{ty}>, vector<{ty}>",
            aligned(place, unit)
        ))
    }

    fn store(&mut self, place: &Place, byte: &str, unit: u64, ty: &str, value: &str) {
        let (view, zero) = self.view(place, byte, ty);
        self.line(&format!(
            "vector.store {value}, {view}[{zero}] {{alignment = {}}} : memref<{ty}>, vector<{ty}>",
            aligned(place, unit)
        ));
    }

    /// The payload of a packet.
    fn load_word(&mut self, place: &Place, byte: &str) -> String {
        let value = self.load(place, byte, PAYLOAD, &words(PAYLOAD));
        self.word(&value, &words(PAYLOAD))
    }

    /// A vector of 4 bytes as an integer.
    fn word(&mut self, value: &str, ty: &str) -> String {
        let word = self.value(&format!("vector.bitcast {value} : vector<{ty}> to vector<1xi32>"));
        self.value(&format!("vector.extract {word}[0] : i32 from vector<1xi32>"))
    }

    /// The address of a byte of a buffer.
    fn address(&mut self, (name, bytes, offset): (String, u64, String)) -> String {
        let start = self.value(&format!(
            "memref.extract_aligned_pointer_as_index {name} : memref<{bytes}xi8> -> index"
        ));
        self.binary("addi", &start, &offset)
    }

    fn integer(&mut self, value: u32) -> String {
        self.value(&format!("arith.constant {} : i32", value.cast_signed()))
    }

    fn send_packet(&mut self, to: &Place, packet: &str, word: &str, flag: u32) {
        let place = self.at(to, packet);
        let (address, flag) = (self.address(place), self.integer(flag));
        self.line(&format!(
            "func.call @irc_gpu_send_packet({address}, {word}, {flag}) : (index, i32, i32) -> ()"
        ));
    }

    fn receive_packet(&mut self, from: &Place, packet: &str, flag: u32) -> String {
        let place = self.at(from, packet);
        let (address, flag) = (self.address(place), self.integer(flag));
        self.value(&format!(
            "func.call @irc_gpu_receive_packet({address}, {flag}) : (index, i32) -> i32"
        ))
    }

    /// The address of the words of a link of a rank.
    fn link(&mut self, rank: i64, link: (i64, Option<i64>)) -> String {
        let links = &self.world.links[rank as usize];
        let (bytes, place) = (links.bytes(), links.0.get(&link).copied().unwrap_or_default());
        let place = self.index(place.cast_signed());
        self.address((format!("%signals{rank}"), bytes, place))
    }

    fn signal(&mut self, to: i64, tag: Option<i64>) {
        let address = self.link(to, (self.rank, tag));
        self.line(&format!("func.call @irc_gpu_signal({address}) : (index) -> ()"));
    }

    fn wait(&mut self, link: (i64, Option<i64>), count: u64) {
        let address = self.link(self.rank, link);
        let count = self.integer(count as u32);
        self.line(&format!("func.call @irc_gpu_wait({address}, {count}) : (index, i32) -> ()"));
    }
}

/// The alignment of units of some bytes of a tensor.
fn aligned(place: &Place, unit: u64) -> u64 {
    gcd(unit, Runs::of(&place.view).unit())
}

/// Expects that the payload of each packet is contiguous.
fn whole_packets<const N: usize>(places: [&Place; N]) -> Result<(), String> {
    let odd = |place: &&Place| !Runs::of(&place.view).run.is_multiple_of(PAYLOAD);
    match places.iter().find(|place| odd(place)) {
        None => Ok(()),
        Some(place) => Err(format!(
            "rows of {} bytes are no whole packets of {PAYLOAD}, as code for GPUs needs",
            Runs::of(&place.view).run
        )),
    }
}
