//! Prints the program of a schedule:
//!
//!     cargo run -p irc-npu-emit --example assemble -- SCHEDULE.json [FRONTEND.json [LISTING.txt]]
//!
//! With a published listing, the first instructions that differ instead.

use irc_diag::{Sink, Source, render};
use irc_gemini_format::{Options, frontend, schedule, source};
use irc_npu::listing::{self, Limits};

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let result = match &paths[..] {
        [schedule] => assemble(schedule, None).map(|program| listing::write(&program)),
        [schedule, frontend] => {
            assemble(schedule, Some(frontend.as_str())).map(|program| listing::write(&program))
        }
        [schedule, frontend, listing] => compare(schedule, frontend, listing),
        _ => Err("usage: assemble SCHEDULE.json [FRONTEND.json [LISTING.txt]]".into()),
    };
    match result {
        Ok(text) => print!("{text}"),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(1);
        }
    }
}

fn read(path: &str) -> Result<Source, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    source(path, &bytes).map_err(|finding| finding.message)
}

fn assemble(plan: &str, layers: Option<&str>) -> Result<irc_npu::Program, String> {
    let options = Options::default();
    let (plan, mut sink) = (read(plan)?, Sink::new());
    let Some(parsed) = schedule::parse(&plan, &options, &mut sink) else {
        return Err(render(&plan, &sink.into_diagnostics(), false, 100));
    };
    let mut described = None;
    if let Some(layers) = layers {
        let (layers, mut sink) = (read(layers)?, Sink::new());
        described = frontend::parse(&layers, &options, &mut sink);
        if described.is_none() {
            return Err(render(&layers, &sink.into_diagnostics(), false, 100));
        }
    }
    irc_npu_emit::emit(&parsed, described.as_ref()).map_err(|mut found| {
        irc_gemini_format::place(&plan, &mut found);
        render(&plan, &found, false, 100)
    })
}

fn compare(plan: &str, layers: &str, published: &str) -> Result<String, String> {
    let ours = assemble(plan, Some(layers))?;
    let published = read(published)?;
    let theirs = listing::parse(&published, Limits::default(), &mut Sink::new());
    let theirs = theirs.ok_or("the listing is not sound")?.program;
    let mut out = String::new();
    let pairs = ours.cores[0].code.iter().zip(&theirs.cores[0].code);
    for (i, (ours, theirs)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
        let line = listing::write_instruction;
        out += &format!("{i}\n- {}\n+ {}\n", line(theirs).trim(), line(ours).trim());
    }
    Ok(out)
}
