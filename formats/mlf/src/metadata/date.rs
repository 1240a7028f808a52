//! Dates in TVM's format.

/// A time in seconds since 1970 as `export_datetime`: `2026-11-21 05:22:03Z`, in UTC.
pub fn export_datetime(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day since 1970-01-01, in years that start in March, so that the leap
/// day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    // Days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // date -u -d @SECONDS
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400, "2000-02-29 00:00:00Z"),
            (1_795_238_574, "2026-11-21 05:22:54Z"),
            (4_107_542_399, "2100-02-28 23:59:59Z"),
            (4_107_542_400, "2100-03-01 00:00:00Z"),
        ] {
            assert_eq!(export_datetime(seconds), date);
        }
    }
}
