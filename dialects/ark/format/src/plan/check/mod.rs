//! What a plan must satisfy.
use super::Plan;
use irc_diag::Diagnostic;
/// x
pub fn check(_: &Plan) -> Vec<Diagnostic> {
    vec![]
}
/// x
pub fn check_ranks(_: &[Plan]) -> Vec<(usize, Diagnostic)> {
    vec![]
}
