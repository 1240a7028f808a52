//! Prints the program of a schedule:
//!
//!     cargo run -p irc-npu-emit --example assemble -- SCHEDULE.json FRONTEND.json [LISTING.txt]
//!
//! With a published listing, the first instructions that differ instead.

use irc_diag::{Sink, Source, render};
use irc_gemini_format::{Options, frontend, schedule, source};
use irc_npu::listing::{self, Limits};

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let result = match &paths[..] {
        [schedule, frontend] => {
            assemble(schedule, frontend).map(|program| listing::write(&program))
        }
        [schedule, frontend, listing] => compare(schedule, frontend, listing),
        _ => Err("usage: assemble SCHEDULE.json FRONTEND.json [LISTING.txt]".into()),
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

fn assemble(plan: &str, layers: &str) -> Result<irc_npu::Program, String> {
    let (plan, layers) = (read(plan)?, read(layers)?);
    let (mut of_plan, mut of_layers) = (Sink::new(), Sink::new());
    let options = Options::default();
    let parsed = schedule::parse(&plan, &options, &mut of_plan);
    let described = frontend::parse(&layers, &options, &mut of_layers);
    let (Some(parsed), Some(described)) = (parsed, described) else {
        let found = render(&plan, &of_plan.into_diagnostics(), false, 100);
        return Err(found + &render(&layers, &of_layers.into_diagnostics(), false, 100));
    };
    irc_npu_emit::emit(&parsed, Some(&described)).map_err(|mut found| {
        irc_gemini_format::place(&plan, &mut found);
        render(&plan, &found, false, 100)
    })
}

fn compare(plan: &str, layers: &str, published: &str) -> Result<String, String> {
    let ours = assemble(plan, layers)?;
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
