//! Texts of trees: which are accepted, and the diagnostics of the others.

use irc_diag::{Diagnostic, Sink, Source};
use irc_npu_cost::{
    Cut, Layer, Machine, Mesh, Model, Network, Objective, Op, Reads, Result, Shape, Tree, Window,
    evaluate, parse,
};

/// Three layers in a chain, the last of which also reads the first.
fn network() -> Network {
    build().expect("layers that match")
}

fn build() -> Result<Network> {
    let map = Shape::new(8, 16, 16);
    let conv = |name: &str| Layer::conv(name, 8, map, Window::square(3, 1));
    let mut network = Network::new("three");
    let reads = Reads { external: Some(map), ..Reads::default() };
    let a = network.add_reading(conv("a"), reads)?;
    let b = network.add(conv("b"), &[a])?;
    network.add(Layer::new("c", Op::Eltwise { operands: 2 }, map), &[a, b])?;
    Ok(network)
}

fn machine() -> Machine {
    Machine::polar(Mesh { width: 2, height: 2, stride: 2 })
}

fn read(text: &str) -> Result<Tree, Vec<Diagnostic>> {
    let (source, mut sink) = (Source::new("x.tree", text), Sink::new());
    parse(&source, &network(), &mut sink).ok_or_else(|| sink.into_diagnostics())
}

/// Code and marked text of the diagnostic of parsing and evaluating a tree.
fn rejection(text: &str) -> (&'static str, String) {
    let diagnostic = match read(text) {
        Err(diagnostics) => diagnostics[0].clone(),
        Ok(tree) => *evaluate(&network(), &machine(), &tree).expect_err("a diagnostic"),
    };
    let span = diagnostic.primary_span().expect("a place");
    (diagnostic.code, text[span].to_owned())
}

const SOUND: &str = "T 4/2\n\tT 2/2\n\t\ta 1\n\t\tb 1 (H:2,W:2,B:1,K:1)\n\t\tc 1\n";

#[test]
fn a_tree_is_written_as_it_was_read() {
    assert_eq!(read(SOUND).expect("a tree").text(&network()), SOUND);
}

#[test]
fn comments_and_empty_lines_are_left_out() {
    let spaced = format!("# a tree\n\n{}", SOUND.replace("a 1\n", "a 1  # first\r\n"));
    assert_eq!(read(&spaced).expect("a tree").text(&network()), SOUND);
}

#[test]
fn unreadable_values_are_reported_with_their_location() {
    let rows = [
        ("T 1/1\n\ta\n", "cost-tree-syntax", "a"),
        ("T 1/1\n\ta 1 (K:1,B:1,H:1,W:1) x\n", "cost-tree-syntax", "x"),
        ("Q 1/1\n\ta 1\n", "cost-tree-syntax", "Q 1/1"),
        ("T 1/1\n a 1\n", "cost-tree-indent", " a 1"),
        ("T 1/1\n\t\ta 1\n", "cost-tree-indent", "a 1"),
        ("T 1/1\n\ta 1\n\t\tb 1\n", "cost-tree-indent", "b 1"),
        ("T 1/1\n\ta 1\nT 1/1\n", "cost-tree-indent", "T 1/1"),
        ("\ta 1\n", "cost-tree-indent", "a 1"),
        ("T 1/1\n\tz 1\n", "cost-tree-layer", "z"),
        ("T 1/1\n\ta 0\n", "cost-tree-batch", "0"),
        ("T 1/1\n\ta -1\n", "cost-tree-batch", "-1"),
        ("T 1/1\n\ta 99999999999999999999\n", "cost-tree-batch", "99999999999999999999"),
        ("T 4/2\n\ta 1\n", "cost-tree-batch", "T 4/2"),
        ("T 1/1\n\ta 1 (K:4)\n", "cost-tree-scheme", "(K:4)"),
        ("# nothing\n", "cost-tree-form", ""),
    ];
    for (text, code, place) in rows {
        assert_eq!(rejection(text), (code, place.to_owned()), "{text}");
    }
}

#[test]
fn invalid_values_are_reported_with_their_location() {
    let rows = [
        ("T 1/1\n\ta 1\n\tb 1\n", "cost-tree-layer", "T 1/1"),
        ("T 1/1\n\ta 1\n\tb 1\n\tc 1\n\ta 1 \n", "cost-tree-layer", "a 1"),
        ("T 1/1\n\tb 1\n\ta 1\n\tc 1\n", "cost-tree-order", "b 1"),
        ("T 1/1\n\tT 1/1\n\ta 1\n\tb 1\n\tc 1\n", "cost-tree-form", "T 1/1"),
        ("T 2/1\n\ta 2\n\tb 1\n\tc 2\n", "cost-tree-batch", "b 1"),
        ("T 2048/1\n\ta 2048\n\tb 2048\n\tc 2048\n", "cost-tree-batch", "T 2048/1"),
        ("T 1/1\n\ta 1 (K:2,B:1,H:1,W:1)\n\tb 1\n\tc 1\n", "cost-scheme", ""),
    ];
    for (text, code, place) in rows {
        let (found, marked) = rejection(text);
        assert_eq!(found, code, "{text}");
        assert!(marked.starts_with(place), "{text}: {marked}");
    }
}

#[test]
fn all_lines_that_cannot_be_read_are_found() {
    let diagnostics = read("T 1/1\n\tx 1\n\ta\n\ty 1\n").expect_err("diagnostics");
    let codes: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["cost-tree-layer", "cost-tree-syntax", "cost-tree-layer"]);
}

#[test]
fn trees_beyond_any_use_are_rejected() {
    let mut text = String::new();
    for depth in 0..70 {
        text += &format!("{}T 1/1\n", "\t".repeat(depth));
    }
    text += &format!("{}a 1\n", "\t".repeat(70));
    assert_eq!(rejection(&text).0, "cost-tree-form");
}

#[test]
fn a_tree_made_by_a_program_is_rejected_with_the_layer_named() {
    let leaves = vec![Tree::leaf(1, 1), Tree::leaf(0, 1), Tree::leaf(2, 1)];
    let tree = Tree::cut(Cut::Time, 1, leaves);
    let diagnostic = evaluate(&network(), &machine(), &tree).expect_err("a diagnostic");
    assert_eq!(
        (diagnostic.code, &diagnostic.notes[..]),
        ("cost-tree-order", &["layer b".to_owned()][..])
    );
    let unknown = Tree::cut(Cut::Time, 1, vec![Tree::leaf(7, 1)]);
    let diagnostic = evaluate(&network(), &machine(), &unknown).expect_err("a diagnostic");
    assert_eq!(diagnostic.code, "cost-tree-layer");
}

#[test]
fn no_change_of_one_character_makes_the_reader_panic() {
    let network = network();
    let machine = machine();
    let mut model = Model::new(&network, &machine, Objective::EDP).expect("a machine");
    let mut accepted = 0;
    for at in 0..SOUND.len() {
        for with in ["", "\t", "\n", "0", "9", "/", "S", "T", "(", ",", "#", "ä"] {
            let text = format!("{}{with}{}", &SOUND[..at], &SOUND[at + 1..]);
            if let Ok(tree) = read(&text) {
                accepted += usize::from(model.evaluate(&tree).is_ok());
            }
        }
    }
    assert!(accepted > 0);
}
