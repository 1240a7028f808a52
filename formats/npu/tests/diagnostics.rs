//! Errors in text and bytes are reported at their location.

use crate::support::{SMALL, TWO_CORES, read};
use irc_diag::{Diagnostic, Sink, Source};
use irc_npu::binary::{decode, encode, seal};
use irc_npu::listing::{self, Limits};
use irc_npu::{Core, Program, compare};

fn diagnostics(text: &str, limits: Limits) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    let listing = listing::parse(&Source::new("bad.txt", text), limits, &mut sink);
    assert_eq!(listing.is_none(), sink.has_errors(), "rejected if and only if explained");
    sink.into_diagnostics()
}

/// The one diagnostic of a text: its code, and the text at its place.
fn found(text: &str) -> (&'static str, &str) {
    let diagnostics = diagnostics(text, Limits::default());
    assert_eq!(diagnostics.len(), 1, "{diagnostics:#?}");
    let span = diagnostics[0].primary_span().expect("a place");
    (diagnostics[0].code, &text[span])
}

#[test]
fn each_way_to_be_wrong_is_found_in_its_place() {
    let cases = [
        ("[dt_cfg, ", "[dt_cfg; ", ("npu-syntax", ";")),
        ("[dt_cfg, ", "[dt_cgf, ", ("npu-unknown-instruction", "dt_cgf")),
        ("[dt_cfg, ", "['dt_cfg', ", ("npu-wrong-type", "'dt_cfg'")),
        ("'DF': <DataFmt.INT8: 1>, 'STile'", "'STile'", ("npu-missing-key", "}")),
        ("'Order': 0", "'Order': 0, 'Odd': 1", ("npu-unknown-key", "'Odd'")),
        ("'Order': 0", "'Order': 0, 'Order': 0", ("npu-repeated-key", "'Order'")),
        ("'Order': 0", "'Order': 0.0", ("npu-wrong-type", "0.0")),
        ("'Order': 0", "'Order': -1", ("npu-range", "-1")),
        ("'Order': 0", "'Order': 1e999", ("npu-number", "1")),
        ("'Order': 0", "'Order': 99999999999999999999", ("npu-number", "9")),
        ("'Order': 0", "'Order': [[[[[[[[0]]]]]]]]", ("npu-limit", "[")),
        ("'Order': 0", "'Order", ("npu-syntax", "S")),
        ("'Prev_Insts': ['DT']", "'Prev_Insts': ['XX']", ("npu-unknown-engine", "'XX'")),
        ("'Prev_Insts': ['DT']", "'Prev_Insts': ['DT', 'DT']", ("npu-repeated-engine", "'DT'")),
        ("'Prev_Insts': ['DT']", "'Prev_Insts': [DT]", ("npu-wrong-type", "DT")),
        (
            "'DTile': [32, 4, 4]}]\n[dt_cal",
            "'DTile': [32, 4]}]\n[dt_cal",
            ("npu-wrong-type", "[32, 4]"),
        ),
        ("'USED': False", "'USED': 0", ("npu-wrong-type", "0")),
    ];
    for (old, new, expected) in cases {
        assert!(SMALL.contains(old), "{old}");
        // Only at one place, so that there is one diagnostic.
        let place = SMALL.rfind(old).expect("a place");
        let text = format!("{}{new}{}", &SMALL[..place], &SMALL[place + old.len()..]);
        let (code, at) = found(&text);
        assert_eq!((code, at), expected, "{new}");
    }
}

#[test]
fn values_with_another_name_or_number_are_rejected() {
    for value in ["<DataFmt.INT8: 2>", "<DataFmt.INT4: 1>", "<Datafmt.INT8: 1>"] {
        let place = SMALL.rfind("<DataFmt.INT8: 1>").expect("a place");
        let text = format!("{}{value}{}", &SMALL[..place], &SMALL[place + 17..]);
        assert_eq!(found(&text), ("npu-unknown-value", value));
    }
}

#[test]
fn windows_and_computed_tiles_are_not_empty() {
    let cases = [
        (
            "pe_cfg_tp",
            "'KERNEL': [3, 0], 'Tile': [1, 8, 8, 4, 4], 'MTK0': 1, 'MTC0': 1, 'MTI': [1, 1]",
            "[3, 0]",
        ),
        (
            "pe_cfg_tp",
            "'KERNEL': [1, 1], 'Tile': [1, 8, 0, 4, 4], 'MTK0': 1, 'MTC0': 1, 'MTI': [1, 1]",
            "[1, 8, 0, 4, 4]",
        ),
        (
            "vp_cfg_tp",
            "'STRIDE': [0, 1], 'KERNEL': [1, 1], 'Tile': [8, 4, 4], 'T1F': 7, 'T0F': 7, 'PADV_AREA': 0",
            "[0, 1]",
        ),
    ];
    for (name, fields, expected) in cases {
        let origin = "{'slyr': 0, 'clyr': [], 's_flyr': 0, 'c_flyr': [], 'wkl': 0, 'tile': 0}";
        let text = format!("[{name}, {origin}, {{{fields}}}]\n");
        assert_eq!(found(&text), ("npu-range", expected));
        let one =
            text.replace("0, 1]", "1, 1]").replace("[3, 0]", "[3, 3]").replace("8, 0,", "8, 8,");
        assert!(diagnostics(&one, Limits::default()).is_empty(), "{one}");
    }
}

#[test]
fn every_wrong_line_has_its_diagnostic() {
    let text = SMALL.replace("'STile'", "'Stile'");
    let wrong = SMALL.lines().filter(|line| line.contains("'STile'")).count();
    assert_eq!(diagnostics(&text, Limits::default()).len(), wrong);
}

#[test]
fn limits_hold() {
    let tight = |limits| diagnostics(TWO_CORES, limits).last().map(|diagnostic| diagnostic.code);
    assert_eq!(tight(Limits { bytes: 100, ..Limits::default() }), Some("npu-limit"));
    assert_eq!(tight(Limits { instructions: 3, ..Limits::default() }), Some("npu-limit"));
    assert_eq!(tight(Limits { cores: 1, ..Limits::default() }), Some("npu-limit"));
}

#[test]
fn cores_stand_in_order() {
    let text = TWO_CORES.replace("# core 6", "# core 5");
    assert_eq!(found(&text), ("npu-core-order", "# core 5"));
    assert_eq!(found(&TWO_CORES.replace("# core 6", "# kernel 6")).0, "npu-syntax");
}

#[test]
fn parts_of_a_model_stand_in_order() {
    let parts = |numbers: [&str; 2]| numbers.map(|part| format!("# part {part}\n{SMALL}")).concat();
    let all = |text: &str| {
        let mut sink = Sink::new();
        let found = listing::parse_all(&Source::new("x", text), Limits::default(), &mut sink);
        found.ok_or_else(|| sink.diagnostics()[0].code)
    };
    let both = parts(["1 of 2", "2 of 2"]);
    let found = all(&both).expect("two programs");
    let texts: String = found.iter().map(|one| listing::write(&one.program)).collect();
    assert_eq!((found.len(), texts), (2, both.clone()));
    let last = found[1].spans.get(0, 0).expect("an instruction");
    assert_eq!(both[..last.start].matches("# part").count(), 2);
    for wrong in
        [["1 of 2", "1 of 2"], ["2 of 2", "1 of 2"], ["1 of 3", "2 of 3"], ["1 of 2", "2 of 3"]]
    {
        assert_eq!(all(&parts(wrong)), Err("npu-parts"), "{wrong:?}");
    }
    assert_eq!(all(&parts(["0 of 2", "1 of 2"])), Err("npu-syntax"));
    assert_eq!(all(&format!("{SMALL}# part 1 of 1\n")), Err("npu-parts"));
    assert_eq!(diagnostics(&both, Limits::default())[0].code, "npu-parts");
}

#[test]
fn bytes_that_are_no_text_are_found() {
    let mut sink = Sink::new();
    let source = Source::from_bytes("bad.txt", b"[ct_ed, \xff]");
    assert_eq!(listing::parse(&source, Limits::default(), &mut sink), None);
    assert_eq!(sink.diagnostics()[0].code, "npu-encoding");
}

#[test]
fn own_programs_come_back_from_text_and_bytes() {
    for text in [SMALL, TWO_CORES] {
        let program = read(text).program;
        assert_eq!(listing::write(&program), text);
        assert_eq!(decode(&encode(&program)), Ok(program));
    }
}

#[test]
fn spaces_and_order_of_keys_do_not_matter() {
    let text = "  [ct_ed,{'wkl':0,'tile':-1,'slyr':0,'clyr':[ 1 ,2],'s_flyr':0,'c_flyr':[]},\
                {'Next_Insts':[],'Prev_Insts':['ST',]}]\r\n\n";
    let written = listing::write(&read(text).program);
    let expected = "[ct_ed, {'slyr': 0, 'clyr': [1, 2], 's_flyr': 0, 'c_flyr': [], 'wkl': 0, \
                    'tile': -1}, {'Prev_Insts': ['ST'], 'Next_Insts': []}]\n";
    assert_eq!(written, expected);
}

#[test]
fn every_changed_byte_of_a_binary_is_found() {
    let packed = encode(&read(TWO_CORES).program);
    for at in 0..packed.len() {
        let mut changed = packed.clone();
        changed[at] ^= 0x41;
        assert!(decode(&changed).is_err(), "byte {at}");
        assert!(decode(&packed[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_binary_that_is_cut_off_says_so_and_where() {
    let packed = encode(&read(TWO_CORES).program);
    let said = |len: usize| decode(&packed[..len]).expect_err("cut off").to_string();
    let half = said(packed.len() / 2);
    let place = format!("at byte {0}: cut off or damaged, of {0} bytes: ", packed.len() / 2);
    assert!(half.starts_with(&place), "{half}");
    assert!(half.contains("in instruction ") && half.ends_with(" of 2"), "{half}");
    assert!(said(packed.len() - 4).ends_with("the checksum is missing"));
    let mut changed = packed.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    let error = decode(&changed).expect_err("changed").to_string();
    assert!(error.ends_with("the checksum differs"), "{error}");
}

#[test]
fn programs_without_instructions_come_back() {
    let empty = Core { id: 0, code: vec![] };
    for cores in [vec![], vec![empty.clone()], vec![empty.clone(), Core { id: 3, code: vec![] }]] {
        let program = Program { cores, ..Program::default() };
        assert_eq!(read(&listing::write(&program)).program, program);
        assert_eq!(decode(&encode(&program)), Ok(program));
    }
}

/// With a correct checksum, decoded files are encoded as the same bytes.
#[test]
fn what_a_binary_reader_takes_it_gives_back() {
    let packed = encode(&read(TWO_CORES).program);
    let mut taken = 0;
    for at in 8..packed.len() - 4 {
        for change in [1, 2, 0x80, 0xff] {
            let mut body = packed[8..packed.len() - 4].to_vec();
            body[at - 8] ^= change;
            if let Ok(program) = decode(&seal(&body)) {
                taken += 1;
                assert_eq!(decode(&encode(&program)).as_ref(), Ok(&program));
            }
        }
    }
    assert!(taken > 100, "{taken}");
}

#[test]
fn programs_that_differ_are_compared_instruction_by_instruction() {
    let listing = read(SMALL);
    let compared = |text: &str| {
        let mut sink = Sink::new();
        compare(&listing.program, Some(&listing.spans), &read(text).program, &mut sink);
        sink.into_diagnostics()
    };
    assert_eq!(compared(SMALL), []);
    let all = compared(&SMALL.replacen("'wkl': ", "'wkl': 1", 1));
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].message.ends_with("of core 0: differs in `wkl`"), "{}", all[0].message);
    assert_eq!(all[0].primary_span(), listing.spans.get(0, 0));
    let shorter: String = SMALL.split_inclusive('\n').skip(1).collect();
    let all = compared(&shorter);
    assert!(
        all.len() > 1 && all.iter().all(|diagnostic| diagnostic.code == "npu-differs"),
        "{all:#?}"
    );
    let cores = compared(TWO_CORES);
    assert_eq!((cores.len(), cores[0].code), (1, "npu-differs"));
}
