//! Loads and stores of every layout of addresses in a warp: what they read, write and count is that of one thread after the
//! other.

use crate::support::{Random, compile, module, run};
use irc_ptx::{Argument, Checks, Launch, Memory, Statistics};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the memory that is accessed in a space.
fn bytes_of(space: &str) -> usize {
    if space == "global" { 1 << 18 } else { 1 << 15 }
}

const LANES: usize = 32;

/// The offsets of the threads of a warp, for accesses of some bytes, in each layout.
fn layouts(size: usize, bytes: usize) -> Vec<(&'static str, [usize; LANES])> {
    let of = |place: &dyn Fn(usize) -> usize| std::array::from_fn(|lane| place(lane) * size);
    let mut random = Random(size as u64);
    let mut numbers = || random.next() as usize % (bytes / size);
    let random: [usize; LANES] = std::array::from_fn(|_| numbers());
    vec![
        ("the same", of(&|_| 3)),
        ("consecutive", of(&|lane| lane + 5)),
        ("every other", of(&|lane| 2 * lane)),
        ("columns", of(&|lane| 32 * lane)),
        ("reversed", of(&|lane| 40 - lane)),
        ("wrapped", of(&|lane| (lane + 13) % 49)),
        ("two", of(&|lane| lane / 20)),
        ("all but one", of(&|lane| if lane == 31 { 40 } else { lane })),
        ("random", of(&|lane| random[lane])),
        ("far", of(&|lane| lane % 2 * (bytes / size - 1))),
    ]
}

/// What a warp does with the bytes at its offsets, and what is counted.
struct Access<'t> {
    space: &'t str,
    ty: &'t str,
    registers: usize,
    size: usize,
    offsets: [usize; LANES],
    mask: u32,
}

impl Access<'_> {
    /// Runs an instruction, whose operands are at `{}` and whose address is `%rd5`; gives the bytes that each thread read or
    /// wrote, those of the memory, and the numbers.
    fn run(&self, instruction: &str) -> (Vec<u8>, Vec<u8>, Statistics) {
        let Self { space, size, .. } = *self;
        let shared = space == "shared";
        let registers = (0..self.registers).map(|at| format!("%v{at}")).collect::<Vec<_>>();
        let operands = match self.registers {
            1 => registers[0].clone(),
            _ => format!("{{{}}}", registers.join(", ")),
        };
        let part = size / self.registers;
        let each = |of: &dyn Fn(usize) -> String| (0..self.registers).map(of).collect::<String>();
        let set = each(&|at| format!("ld.global.{} %v{at}, [%rd7+{}];", self.ty, at * part));
        let get = each(&|at| format!("st.global.{} [%rd7+{}], %v{at};", self.ty, at * part));
        let width = part * 8;
        let bytes = bytes_of(space);
        let copy = |from: &str, to: &str| {
            format!(
                "mul.wide.u32 %rd8, %r1, 16; add.u64 %rd9, {to}, %rd8; add.u64 %rd8, {from}, %rd8; mov.u32 %r2, 0;
                 {label}: ld.v2.u64 {{%rd10, %rd11}}, [%rd8]; st.v2.u64 [%rd9], {{%rd10, %rd11}};
                 add.u64 %rd8, %rd8, 512; add.u64 %rd9, %rd9, 512;
                 add.u32 %r2, %r2, 512; setp.lt.u32 %p2, %r2, {bytes}; @%p2 bra {label};",
                label = if from == "%rd1" { "IN" } else { "OUT" }
            )
        };
        let (base, before, after) = match shared {
            true => ("%rd6", copy("%rd1", "%rd6"), copy("%rd6", "%rd1")),
            false => ("%rd1", String::new(), String::new()),
        };
        let address = match shared {
            true => "cvta.to.shared.u64 %rd5, %rd5;",
            false => "",
        };
        let text = format!(
            ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<12>; .reg .b{width} %v<4>;
             .shared .align 16 .b8 s[{shared_bytes}];
             ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [t]; ld.param.u64 %rd3, [v]; mov.u64 %rd6, s; cvta.shared.u64 %rd6, %rd6;
             mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 8; add.u64 %rd4, %rd2, %rd4; ld.global.u64 %rd5, [%rd4];
             mul.wide.u32 %rd7, %r1, {size}; add.u64 %rd7, %rd3, %rd7; add.u64 %rd5, {base}, %rd5; {address}
             mov.u32 %r4, 1; shl.b32 %r4, %r4, %r1; and.b32 %r4, %r4, {mask}; setp.ne.u32 %p1, %r4, 0;
             {before} {set} {instruction} {get} {after} ret;",
            mask = self.mask,
            shared_bytes = if shared { bytes } else { 16 },
            instruction = instruction.replace("{}", &operands),
        );
        let text = module(".param .u64 p, .param .u64 t, .param .u64 v", &text);
        let program = compile(&text, "k");
        let mut memory = Memory::new();
        let offsets = self.offsets.iter().flat_map(|it| (*it as u64).to_le_bytes()).collect();
        let [data, table, values] = [
            ("data", contents(bytes)),
            ("offsets", offsets),
            ("values", (0..LANES * size).map(|at| (at * 7 % 251) as u8).collect()),
        ]
        .map(|(name, bytes)| memory.add(name, bytes));
        let launch = Launch {
            block: [LANES as u32, 1, 1],
            arguments: [data, table, values].map(Argument::Buffer).into(),
            checks: Checks { races: false, uninitialised: true },
            ..Launch::default()
        };
        let report = run(&program, &mut memory, &launch);
        (memory.bytes(values).to_vec(), memory.bytes(data).to_vec(), report.statistics)
    }

    fn threads(&self) -> impl Iterator<Item = usize> {
        let mask = self.mask;
        (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
    }

    /// The sectors, and the cycles that are lost.
    fn counts(&self) -> (u64, u64) {
        let threads: Vec<usize> = self.threads().collect();
        let parts = |unit: usize, threads: &[usize]| -> BTreeSet<usize> {
            let places = threads.iter().map(|lane| self.offsets[*lane]);
            places.flat_map(|at| at / unit..=(at + self.size - 1) / unit).collect()
        };
        let part = 128 / self.size.max(4);
        let lost = threads.chunks(part).map(|threads| {
            let mut banks = BTreeMap::new();
            parts(4, threads).into_iter().for_each(|it| *banks.entry(it % 32).or_insert(0) += 1);
            banks.into_values().max().unwrap_or(1) - 1
        });
        (parts(32, &threads).len() as u64, lost.sum())
    }
}

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 241) as u8).collect()
}

#[test]
fn accesses_of_a_warp_are_those_of_its_threads() {
    let types = [("u8", 1, 1), ("u16", 1, 2), ("u32", 1, 4), ("u64", 1, 8)];
    let vectors = [("v2.u16", 2, 4), ("v2.u32", 2, 8), ("v4.u32", 4, 16), ("v2.u64", 2, 16)];
    let cases = types.into_iter().chain(vectors);
    for (ty, registers, size) in cases {
        let plain = ty.rsplit('.').next().unwrap_or(ty);
        for space in ["global", "shared"] {
            for (name, offsets) in layouts(size, bytes_of(space)) {
                for mask in [u32::MAX, 0xffff, 0x5555_5555, 1 << 31] {
                    let access = Access { space, ty: plain, registers, size, offsets, mask };
                    check(&access, ty, &format!("{name} {space}.{ty} {mask:#x}"));
                }
            }
        }
    }
}

fn check(access: &Access<'_>, ty: &str, name: &str) {
    let Access { space, size, .. } = *access;
    let (values, data, none) = access.run("");
    assert_eq!(data, contents(bytes_of(space)), "{name}");

    let (read, same, loads) = access.run(&format!("@%p1 ld.{space}.{ty} {{}}, [%rd5];"));
    assert_eq!(same, data, "{name}");
    let mut expected = values.clone();
    for lane in access.threads() {
        let bytes = &data[access.offsets[lane]..][..size];
        expected[lane * size..][..size].copy_from_slice(bytes);
    }
    assert_eq!(read, expected, "{name}");

    let (same, written, stores) = access.run(&format!("@%p1 st.{space}.{ty} [%rd5], {{}};"));
    assert_eq!(same, values, "{name}");
    let mut expected = data;
    for lane in access.threads() {
        let bytes = &values[lane * size..][..size];
        expected[access.offsets[lane]..][..size].copy_from_slice(bytes);
    }
    // Of threads that write the same bytes, those of the last remain.
    assert_eq!(written, expected, "{name}");

    let (sectors, lost) = access.counts();
    for (counts, what) in [(&loads, "loads"), (&stores, "stores")] {
        let global = counts.global_sectors - none.global_sectors;
        let shared = counts.bank_conflicts - none.bank_conflicts;
        let expected = if space == "global" { (sectors, 0) } else { (0, lost) };
        assert_eq!((global, shared), expected, "{name}: {what}");
    }
}
