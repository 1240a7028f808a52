//! Programs with one changed number cause diagnostics or errors, never a panic or an endless loop.

use std::collections::BTreeMap;

use irc_diag::{Sink, Source};
use irc_npu::Program;
use irc_npu::listing::{self, Limits};
use irc_npu::verify::{self, Machine};
use irc_npu_sim::cycles::{self, Options};
use irc_npu_sim::functional::{self, Memory};
use irc_npu_sim::html::{self, Page};
use irc_npu_sim::noc::Mesh;
use irc_npu_sim::perfetto;
use irc_npu_sim::segments::{SegmentMap, segment_table};

const PROGRAMS: [&str; 2] = [
    include_str!("../../../formats/npu/tests/data/small.txt"),
    include_str!("../../../formats/npu/tests/data/two_cores.txt"),
];

const NUMBERS: [&str; 11] = [
    "0",
    "1",
    "2",
    "7",
    "-1",
    "300",
    "65536",
    "1048576",
    "4294967295",
    "-2147483648",
    "140737488355328",
];

/// Byte ranges of the numbers of the fields of a listing.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let mut places = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let fields = line.find("}, {").unwrap_or(line.len());
        let bytes = line.as_bytes();
        let mut i = fields;
        while i < line.len() {
            let starts = bytes[i].is_ascii_digit() || bytes[i] == b'-';
            let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'e');
            let len = bytes[i..].iter().take_while(|byte| part(byte)).count();
            if starts && matches!(bytes[i - 1], b' ' | b'[') {
                places.push((at + i, at + i + len));
            }
            i += len.max(1);
        }
        at += line.len();
    }
    places
}

fn run(program: &Program) {
    let mut sink = Sink::new();
    verify::verify(program, None, &Machine::default(), &mut sink);
    let times = (0..8).flat_map(|w| [0, 5].map(|core| ((core, w), 100.0)));
    let mut options = Options { times: times.collect(), ..Options::default() };
    if let Ok(timing) = cycles::run(program, &options) {
        perfetto::write(program, &timing);
        let of = program.cores.iter().flat_map(|core| (0..8).map(|wkl| ((core.id, wkl), (0, 0))));
        let map = SegmentMap { names: vec!["all".into()], of: of.collect() };
        let mesh = Mesh::with_ports_at_sides(3, 2, 24.0, 4.0);
        let of = (&options.times, &options.rates, Some(&mesh));
        let table = segment_table(program, &timing, of, &map).expect("durations are known");
        let names = BTreeMap::new();
        html::write(&Page {
            program,
            timing: &timing,
            names: &names,
            table: &table,
            mesh: Some(&mesh),
        });
    }
    options.mesh = Some(Mesh::with_ports_at_sides(3, 2, 24.0, 4.0));
    let _ = cycles::run(program, &options);
    let mut memory = Memory::new(program.cores.len(), 8 << 20);
    memory.dram = [(0, vec![60; 4096]), (1, vec![1; 8192])].into();
    // The result need not be correct, but the run must end.
    let _ = functional::run(program, &mut memory);
}

#[test]
fn any_number_may_be_any_other() {
    let mut accepted = 0;
    for text in PROGRAMS {
        // Every number is changed, but only to a few values per run, so that a debug build is quick.
        for (i, (from, to)) in numbers(text).into_iter().enumerate() {
            for number in NUMBERS.iter().skip(i % 4).step_by(4) {
                let changed = format!("{}{number}{}", &text[..from], &text[to..]);
                let source = Source::new("changed.txt", changed);
                let listing = listing::parse(&source, Limits::default(), &mut Sink::new());
                if let Some(listing) = listing {
                    accepted += 1;
                    run(&listing.program);
                }
            }
        }
    }
    assert!(accepted > 400, "{accepted}");
}
