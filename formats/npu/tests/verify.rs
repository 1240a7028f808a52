//! Valid programs are accepted; each seeded mutation is reported with its cause.

use crate::support::{SMALL, TWO_CORES, diagnostics, places, read};
use irc_npu::op::{CtEd, LdaMov};
use irc_npu::{Engine, Instruction, Op, Origin, Program};

#[test]
fn right_programs_pass() {
    for text in [SMALL, TWO_CORES] {
        assert_eq!(diagnostics(&read(text).program), []);
    }
}

/// A change of one instruction of a program, and the expected code.
struct Mutation {
    name: &'static str,
    text: &'static str,
    /// Index of the core, name of the instruction, which of them.
    at: (usize, &'static str, usize),
    change: fn(&mut Instruction),
    code: &'static str,
}

macro_rules! set {
    ($op:ident . $field:ident = $value:expr) => {
        |instruction| match &mut instruction.op {
            Op::$op(op) => op.$field = $value,
            _ => panic!("another instruction"),
        }
    };
}

fn mutations() -> Vec<Mutation> {
    let row = |name, text, at, change, code| Mutation { name, text, at, change, code };
    vec![
        row(
            "other weights than its own",
            SMALL,
            (0, "pe_conv", 1),
            set!(PeConv.sw_addr = 0),
            "npu-weights",
        ),
        row(
            "token not given",
            SMALL,
            (0, "lda_mov", 0),
            |i| drop_next(i, Engine::Vp),
            "npu-token-missing",
        ),
        row(
            "token not taken",
            SMALL,
            (0, "pe_conv", 0),
            |i| drop_prev(i, Engine::Vp),
            "npu-token-left",
        ),
        row(
            "token to another",
            SMALL,
            (0, "dt_cal", 0),
            |i| drop_next(i, Engine::Vp),
            "npu-token-missing",
        ),
        row(
            "token on a config",
            SMALL,
            (0, "lw_cfg", 0),
            |i| give(i, Engine::Lw),
            "npu-config-token",
        ),
        row(
            "conv into its input",
            SMALL,
            (0, "vp_pool", 0),
            set!(VpPool.dt_addr = 1024),
            "npu-in-place",
        ),
        row(
            "load over what is read",
            SMALL,
            (0, "ldw_mov", 0),
            set!(LdwMov.dt_addr = 0),
            "npu-write-after-write",
        ),
        row(
            "weights where others are",
            SMALL,
            (0, "lw_mov", 1),
            set!(LwMov.dt_addr = 0),
            "npu-write-after-read",
        ),
        row(
            "store of other bytes",
            SMALL,
            (0, "sta_mov", 0),
            set!(StaMov.st_addr = 6152),
            "npu-unwritten",
        ),
        row(
            "load over weights",
            SMALL,
            (0, "lda_mov", 0),
            set!(LdaMov.dt_addr = 8192),
            "npu-unwritten",
        ),
        row(
            "beyond the region",
            SMALL,
            (0, "lda_mov", 0),
            set!(LdaMov.dt_addr = 1 << 25),
            "npu-region-address",
        ),
        row("no such region", SMALL, (0, "dt_cal", 0), set!(DtCal.dbsg = 1), "npu-no-region"),
        row(
            "region beyond L2",
            SMALL,
            (0, "ct_bc", 0),
            set!(CtBc.buf_cut = [8, 9000, 0, 0, 0, 0, 0, 0]),
            "npu-region-address",
        ),
        row(
            "region before L2",
            SMALL,
            (0, "ct_bc", 0),
            set!(CtBc.buf_cut = [9, 3, 0, 0, 0, 0, 0, 0]),
            "npu-register",
        ),
        row(
            "tiny region",
            SMALL,
            (0, "ct_bc", 0),
            set!(CtBc.buf_cut = [1, 0, 0, 0, 0, 0, 0, 0]),
            "npu-region-size",
        ),
        row("no such bank", SMALL, (0, "ct_bc", 0), set!(CtBc.bcs = 4), "npu-register"),
        row(
            "tile beyond tensor",
            SMALL,
            (0, "dt_cal", 0),
            set!(DtCal.tile = [1, 32, 5, 4]),
            "npu-field",
        ),
        row("another register set", SMALL, (0, "lda_cfg", 0), set!(LdaCfg.rs = 2), "npu-no-config"),
        row(
            "end before the store",
            SMALL,
            (0, "ct_ed", 0),
            |i| drop_prev(i, Engine::St),
            "npu-early-end",
        ),
        row(
            "send without receive",
            TWO_CORES,
            (0, "so_mov", 0),
            set!(SoMov.xfer = 13),
            "npu-transfer-alone",
        ),
        row(
            "send to nobody",
            TWO_CORES,
            (0, "so_mov", 0),
            set!(SoMov.core = 9),
            "npu-transfer-alone",
        ),
        row(
            "receive of another shape",
            TWO_CORES,
            (1, "si_mov", 0),
            set!(SiMov.tile = [1, 8, 4, 3]),
            "npu-transfer-shape",
        ),
        row(
            "signals before the store",
            TWO_CORES,
            (1, "so_mov", 0),
            |i| drop_prev(i, Engine::St),
            "npu-write-after-read",
        ),
        row(
            "loads before the signal",
            TWO_CORES,
            (0, "lda_mov", 1),
            |i| drop_prev(i, Engine::Si),
            "npu-write-after-read",
        ),
    ]
}

fn drop_next(instruction: &mut Instruction, engine: Engine) {
    assert!(instruction.tokens.next.remove(engine));
}

fn drop_prev(instruction: &mut Instruction, engine: Engine) {
    assert!(instruction.tokens.prev.remove(engine));
}

fn give(instruction: &mut Instruction, engine: Engine) {
    assert!(instruction.tokens.next.push(engine));
}

#[test]
fn every_mutation_is_found() {
    for Mutation { name, text, at: (core, instruction, which), change, code } in mutations() {
        let mut program = read(text).program;
        let place = places(&program, core, instruction)[which];
        change(&mut program.cores[core].code[place]);
        let found = diagnostics(&program);
        assert!(found.iter().any(|diagnostic| diagnostic.code == code), "{name}: {found:#?}");
    }
}

/// Removing a token on both sides causes a race and no other error.
#[test]
fn every_token_of_a_right_program_is_needed() {
    for text in [SMALL, TWO_CORES] {
        let program = read(text).program;
        for core in 0..program.cores.len() {
            for place in 0..program.cores[core].code.len() {
                for to in program.cores[core].code[place].tokens.next.iter() {
                    let mut without = program.clone();
                    remove_pair(&mut without, (core, place), to);
                    let found = diagnostics(&without);
                    let from = &program.cores[core].code[place];
                    assert!(!found.is_empty(), "{} to {to} is not missed", from.op.name());
                }
            }
        }
    }
}

/// Removes a token and its use.
fn remove_pair(program: &mut Program, (core, place): (usize, usize), to: Engine) {
    let code = &mut program.cores[core].code;
    let from = code[place].op.engine();
    let given = |i: &Instruction| i.op.engine() == from && i.tokens.next.contains(to);
    let number = code[..place].iter().filter(|i| given(i)).count();
    let taken = |i: &&mut Instruction| i.op.engine() == to && i.tokens.prev.contains(from);
    let taker = code.iter_mut().filter(taken).nth(number).expect("a token is taken");
    drop_prev(taker, from);
    drop_next(&mut code[place], to);
}

#[test]
fn a_witness_names_both_instructions_and_the_bytes() {
    let mut program = read(SMALL).program;
    let place = places(&program, 0, "lda_mov")[0];
    remove_pair(&mut program, (0, place), Engine::Vp);
    let found = diagnostics(&program);
    let race =
        found.iter().find(|diagnostic| diagnostic.code == "npu-read-after-write").expect("a race");
    let expected = "`vp_self` 14: reads 4096 to 4608 of L2 that `lda_mov` 4 writes, \
                    and they are not ordered";
    assert_eq!(race.message, expected);
    assert_eq!(race.help.as_deref(), Some("let LD give VP a token between them"));
}

#[test]
fn engines_that_wait_for_one_another_are_a_deadlock() {
    let mut program = read(SMALL).program;
    let (conv, pool) = (places(&program, 0, "pe_conv")[0], places(&program, 0, "vp_self")[0]);
    // The convolution gives the token that it waits for.
    let code = &mut program.cores[0].code;
    give(&mut code[conv], Engine::Ld);
    let load = code.iter().position(|i| matches!(i.op, Op::LdaMov(_))).expect("a load");
    assert!(code[load].tokens.prev.push(Engine::Pe));
    assert!(pool > load);
    let found = diagnostics(&program);
    let deadlock = found.iter().find(|diagnostic| diagnostic.code == "npu-deadlock").expect("one");
    assert!(deadlock.notes.len() >= 2, "{deadlock:#?}");
}

#[test]
fn cores_that_wait_for_one_another_are_a_deadlock() {
    let mut program = read(TWO_CORES).program;
    // Core 6 sends its signal before it receives.
    let (core, signal) = (1, places(&program, 1, "so_mov")[0]);
    let mut send = program.cores[core].code.remove(signal);
    send.tokens.prev.remove(Engine::St);
    send.tokens.next.push(Engine::Si);
    for store in places(&program, core, "sta_mov") {
        drop_next(&mut program.cores[core].code[store], Engine::So);
    }
    let receive = places(&program, core, "si_mov")[0];
    program.cores[core].code[receive].tokens.prev.push(Engine::So);
    program.cores[core].code.insert(0, send);
    // Core 5 receives it only after it has sent.
    let (send, receive) = (places(&program, 0, "so_mov")[0], places(&program, 0, "si_mov")[0]);
    give(&mut program.cores[0].code[send], Engine::Si);
    program.cores[0].code[receive].tokens.prev.push(Engine::So);
    let found = diagnostics(&program);
    assert!(found.iter().any(|diagnostic| diagnostic.code == "npu-deadlock"), "{found:#?}");
}

#[test]
fn a_task_begins_and_ends() {
    let mut program = read(SMALL).program;
    program.cores[0].code.remove(0);
    program.cores[0].code.pop();
    let codes: Vec<_> = diagnostics(&program).iter().map(|diagnostic| diagnostic.code).collect();
    assert!(codes.contains(&"npu-begin") && codes.contains(&"npu-end"), "{codes:?}");
}

#[test]
fn vectors_repeated_tile_by_tile_are_images_of_the_batch() {
    let mut program = read(SMALL).program;
    let place = places(&program, 0, "vp_self")[0];
    let mut second = program.cores[0].code[place].clone();
    second.origin.tile = 1;
    second.tokens = Default::default();
    program.cores[0].code.insert(place + 1, second);
    let found = diagnostics(&program);
    let codes: Vec<_> = found.iter().map(|diagnostic| diagnostic.code).collect();
    // The second image was never loaded.
    assert!(codes.contains(&"npu-vector-batch") && codes.contains(&"npu-unwritten"), "{codes:?}");
    assert!(!found[0].is_error());
}

#[test]
fn addresses_run_round_in_their_region() {
    let mut program = read(SMALL).program;
    for instruction in &mut program.cores[0].code {
        match &mut instruction.op {
            Op::LdaMov(op) => op.dt_addr = (8 << 20) - 256,
            Op::VpSelf(op) if op.st_addr == 4096 => {
                (op.st_addr, op.dt_addr) = ((8 << 20) - 256, 16384);
            }
            Op::PeConv(op) if op.sphi == -1 => op.st_addr += 16384,
            _ => {}
        }
    }
    // 256 bytes of the load come to lie at 0.
    assert_eq!(diagnostics(&program), []);
    let quantise = places(&program, 0, "vp_self")[0];
    if let Op::VpSelf(op) = &mut program.cores[0].code[quantise].op {
        op.st_addr = -256;
    }
    assert_eq!(diagnostics(&program), []);
}

#[test]
fn an_empty_program_has_nothing_to_find() {
    assert_eq!(diagnostics(&Program::default()), []);
    let end = Instruction::new(CtEd {}, Origin::default());
    let load = LdaMov { rs: 0, dbsg: 0, st_addr: 0, dt_addr: 0, tile: [1; 4] };
    let codes: Vec<_> =
        diagnostics(&Program::single(vec![end, Instruction::new(load, Origin::default())]))
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect();
    assert_eq!(codes, ["npu-no-config", "npu-begin"]);
}
