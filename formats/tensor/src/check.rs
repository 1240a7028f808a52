//! Messages of checks at run time.

/// The message of a check that failed for two sizes. They follow it, unless it states one of them as `{left}` or
/// `{right}`.
pub fn check_text(message: &str, left: i64, right: i64) -> String {
    let stated =
        message.replace("{left}", &left.to_string()).replace("{right}", &right.to_string());
    match stated == message {
        true => format!("{message}: found {left} and {right}"),
        false => stated,
    }
}
