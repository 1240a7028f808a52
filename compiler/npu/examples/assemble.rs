//! Prints the program of a schedule:
//!
//!     cargo run -p irc-npu-emit --example assemble -- SCHEDULE.json [FRONTEND.json [LISTING.txt]]
//!
//! With a published listing, prints the instructions that differ from it instead.

use irc_diag::{Sink, Source, render};
use irc_gemini_format::{FileKind, Options, frontend, schedule, source};
use irc_npu::listing::{self, Limits};
use irc_npu_emit::FileDiagnostic;

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
    source(path, &bytes).map_err(|diagnostic| diagnostic.message)
}

fn assemble(plan: &str, layers: Option<&str>) -> Result<irc_npu::Program, String> {
    let options = Options::default();
    let (plan, mut sink) = (read(plan)?, Sink::new());
    let Some(parsed) = schedule::parse(&plan, &options, &mut sink) else {
        return Err(render(&plan, &sink.into_diagnostics(), false, 100));
    };
    let layers = layers.map(read).transpose()?;
    let mut described = None;
    if let Some(layers) = &layers {
        let mut sink = Sink::new();
        described = frontend::parse(layers, &options, &mut sink);
        if described.is_none() {
            return Err(render(layers, &sink.into_diagnostics(), false, 100));
        }
    }
    let made = irc_npu_emit::emit(&parsed, described.as_ref());
    made.map_err(|found| {
        let text = found.into_iter().map(|FileDiagnostic { file, diagnostic }| {
            let source = layers.as_ref().filter(|_| file == FileKind::Frontend).unwrap_or(&plan);
            let mut found = [diagnostic];
            irc_gemini_format::place(source, &mut found);
            render(source, &found, false, 100)
        });
        text.collect()
    })
}

fn compare(plan: &str, layers: &str, published: &str) -> Result<String, String> {
    let ours = assemble(plan, Some(layers))?;
    let published = read(published)?;
    let theirs = listing::parse(&published, Limits::default(), &mut Sink::new());
    let theirs = theirs.ok_or("the listing is valid")?;
    let mut sink = Sink::new();
    irc_npu::compare(&theirs.program, Some(&theirs.spans), &ours, &mut sink);
    Ok(render(&published, &sink.into_diagnostics(), false, 100))
}
