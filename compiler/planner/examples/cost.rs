//! Prints what plans cost.
use irc_ark_format::{model::Options, plan};
use irc_diag::{Sink, Source};
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let options = Options { validate: false, ..Default::default() };
        if let Some(plan) = plan::parse(&Source::new(&path, &text), &options, &mut Sink::new()) {
            println!("{path}\n{}", irc_planner::cost::table(&irc_planner::cost::estimate(&plan)));
        }
    }
}
