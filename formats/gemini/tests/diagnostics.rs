//! Messages and locations of diagnostics.

use irc_diag::{Diagnostic, Sink, Source};
use irc_gemini_format::schedule::{Transfers, ring_spans};
use irc_gemini_format::{Options, schedule};

const RINGS: &str = include_str!("data/rings.json");
const TWO_CORES: &str = include_str!("data/two_cores.json");

fn found(text: &str) -> (Source, Vec<Diagnostic>) {
    let source = Source::new("test", text);
    let mut sink = Sink::new();
    schedule::parse(&source, &Options::default(), &mut sink);
    (source, sink.into_diagnostics())
}

/// The text with the first occurrence of a fragment after `place` replaced.
fn broken(text: &str, place: &str, from: &str, to: &str) -> String {
    let start = text.find(place).expect("the place");
    format!("{}{}", &text[..start], text[start..].replacen(from, to, 1))
}

fn first(diagnostics: &[Diagnostic], code: &str) -> Diagnostic {
    diagnostics.iter().find(|diagnostic| diagnostic.code == code).expect(code).clone()
}

#[test]
fn an_overflow_names_the_workload_the_address_and_both_tensors() {
    // The result of the first workload starts at 1536 and wraps to 0 at the end of its region.
    let text = broken(RINGS, "\"address\": 512,", "512", "504");
    let (source, diagnostics) = found(&text);
    let diagnostic = first(&diagnostics, "gem-b15-overlap");
    assert_eq!(
        diagnostic.message,
        "workload 0 of core 0 (`l0_conv`): tensor 0 (ifmap, transfers [0]) and tensor 2 (ifmap, \
         transfers [2]) are both at address 504"
    );
    assert_eq!(diagnostic.path.as_deref(), Some("$[\"0\"][0].buffer[2].address"));
    let texts: Vec<&str> =
        diagnostic.labels.iter().map(|label| &source.text()[label.span.clone()]).collect();
    assert_eq!(texts, ["1536", "504"]);
}

#[test]
fn a_tensor_that_no_region_can_hold_says_so() {
    let text = broken(RINGS, "ring_buffer_info", "[0, 2048]", "[1536, 2048]");
    let (_, diagnostics) = found(&text);
    assert_eq!(
        first(&diagnostics, "gem-b4-region-size").message,
        "workload 0 of core 0 (`l0_conv`): tensor 2 (ifmap, transfers [2]) at 1536 has 1024 \
         bytes, but its region has 512"
    );
}

#[test]
fn the_ring_table_holds_sixteen_regions() {
    let codes = |count: i64| {
        let mut value: serde_json::Value = serde_json::from_str(RINGS).expect("JSON");
        let regions = (0..count).map(|place| serde_json::json!([1024 * place, 1024 * (place + 1)]));
        value["0"][0]["ring_buffer_info"] = regions.collect();
        value["buffersize"] = serde_json::json!(1024 * count);
        let (_, diagnostics) = found(&value.to_string());
        diagnostics.into_iter().map(|diagnostic| diagnostic.code).collect::<Vec<_>>()
    };
    assert!(!codes(16).contains(&"gem-r2-ring-table"));
    assert!(codes(17).contains(&"gem-r2-ring-table"));
}

#[test]
fn a_deadlock_shows_who_waits_for_whom() {
    // The second core's space for the first transfer is allocated one workload later.
    let mut value: serde_json::Value = serde_json::from_str(TWO_CORES).expect("JSON");
    let snapshot = value.pointer_mut("/2/1/buffer").and_then(|buffer| buffer.as_array_mut());
    snapshot.expect("a snapshot").remove(1);
    let (_, diagnostics) = found(&value.to_string());
    let diagnostic = first(&diagnostics, "gem-a2-deadlock");
    let notes = diagnostic.notes.join("\n");
    assert!(notes.contains("transfer 4 to core 2, before workload 2 of core 1"), "{notes}");
    assert!(notes.contains("workload 3 of core 2 (`x`), before transfer 3 to core 2"), "{notes}");
}

#[test]
fn a_key_that_occurs_twice_is_rejected() {
    let text = broken(RINGS, "\"time\"", "\"time\": 200", "\"time\": 200, \"time\": 300");
    let (source, diagnostics) = found(&text);
    let diagnostic = first(&diagnostics, "gem-duplicate-key");
    let span = diagnostic.primary_span().expect("a place");
    assert_eq!(&source.text()[span.clone()], "\"time\"");
    assert!(source.text()[span.end..].starts_with(": 300"));
}

#[test]
fn unknown_keys_are_kept_and_are_errors_when_strict() {
    let text = broken(RINGS, "\"time\"", "\"time\": 200", "\"tme\": 2.50, \"time\": 200");
    let (source, diagnostics) = found(&text);
    let diagnostic = first(&diagnostics, "gem-unknown-key");
    assert!(!diagnostic.is_error());
    assert_eq!(diagnostic.help.as_deref(), Some("did you mean `time`?"));
    let read = schedule::parse(&source, &Options::default(), &mut Sink::new()).expect("accepted");
    assert!(schedule::write(&read).contains("\"tme\" : 2.50,"));
    let strict = Options { strict: true, ..Options::default() };
    assert_eq!(schedule::parse(&source, &strict, &mut Sink::new()), None);
}

#[test]
fn what_was_read_prints_and_reads_again() {
    for text in [RINGS, TWO_CORES, include_str!("data/allocated.json")] {
        let options = Options::default();
        let read = schedule::parse(&Source::new("test", text), &options, &mut Sink::new());
        let read = read.expect("a valid file");
        let again = Source::new("again", schedule::write(&read));
        assert_eq!(schedule::parse(&again, &options, &mut Sink::new()), Some(read));
    }
}

#[test]
fn cores_are_read_by_id_and_written_in_the_order_of_the_file() {
    let (rest, tail) = TWO_CORES.split_once("\"top_batch_cut\"").expect("after the cores");
    let (head, cores) = rest.split_at(rest.find("\"1\": [").expect("core 1"));
    let (one, two) = cores.split_at(cores.find("\"2\": [").expect("core 2"));
    let text = format!("{head}{two}{one}\"top_batch_cut\"{tail}");
    let read = schedule::parse(&Source::new("test", &*text), &Options::default(), &mut Sink::new());
    let read = read.expect("a valid file");
    let ids: Vec<i64> = read.cores.iter().map(|core| core.id).collect();
    assert_eq!(ids, [1, 2]);
    let written = schedule::write(&read);
    assert!(written.find("\"2\" :").expect("core 2") < written.find("\"1\" :").expect("core 1"));
}

#[test]
fn hostile_texts_end_quickly() {
    let wide = format!("{{\"-1\": {{{}}}}}", "\"a\": 1, ".repeat(200_000) + "\"b\": 2");
    let deep = "[".repeat(1_000_000);
    let long = format!("{{\"0\": [{}]}}", "{},".repeat(100_000) + "{}");
    for text in [wide, deep, long, String::new(), "{\"-1\": 1e400}".into()] {
        let (_, diagnostics) = found(&text);
        assert!(diagnostics.iter().any(Diagnostic::is_error));
    }
}

#[test]
fn transfers_tell_who_makes_and_uses_what() {
    let source = Source::new("test", TWO_CORES);
    let read = schedule::parse(&source, &Options::default(), &mut Sink::new());
    let read = read.expect("a valid file");
    let transfers = Transfers::new(&read);
    // `d0` of the second core, for `d1` of the first.
    let (d0, d1) = (transfers.workload(2, 1), transfers.workload(1, 4));
    assert_eq!((transfers.producer(5), transfers.users(5)), (d0, &[d1.expect("there")][..]));
    assert!(!transfers.is_stored(5) && transfers.is_stored(13));
    // Its space is allocated with the snapshot of its reader; that of transfer 4 two before.
    assert_eq!(transfers.arrivals().get(&((0, 2), 5)), Some(&2));
    assert_eq!(transfers.arrivals().get(&((1, 3), 4)), Some(&1));
    assert_eq!(transfers.workload(1, 1), None);
}

#[test]
fn tiles_come_in_the_order_of_their_keys() {
    let source = Source::new("test", RINGS);
    let read = schedule::parse(&source, &Options::default(), &mut Sink::new());
    let mut tiles = read.expect("a valid file").cores[0].workloads[0].tile_info.clone();
    let tiles = tiles.as_mut().expect("tiles");
    let first = tiles.tiles[0].1.clone();
    tiles.tiles = (0..11).map(|number| (number, first.clone())).collect();
    let order: Vec<u32> = tiles.by_key().into_iter().map(|(number, _)| number).collect();
    assert_eq!(order, [0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(ring_spans(&[[0, 2048]], 1536, 1024), Some(vec![(1536, 2048), (0, 512)]));
}
