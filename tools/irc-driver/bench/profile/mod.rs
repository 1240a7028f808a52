//! The time of each kernel of a program, from samples of the instruction pointer.

mod sampler;
mod symbols;

use super::{latency::Latency, roofline::Roofline};
use crate::error::Error;
use serde_json::{Value, json};
use symbols::Functions;

/// Kernels with a smaller share of the time are listed as others.
const MIN_SHARE: f64 = 0.002;

/// Maximum number of nodes in a line of text.
const MAX_NODES: usize = 2;

/// The time of the functions of a program.
pub struct Profile {
    rows: Vec<Row>,
    samples: u64,
}

/// A function.
struct Row {
    name: String,
    /// The fraction of the samples in it.
    share: f64,
    nodes: Vec<String>,
    launches: u64,
    /// Of one launch.
    operations: Option<u64>,
    bytes: Option<u64>,
}

/// Runs a measurement, and profiles it.
pub fn profiled(run: impl FnOnce() -> Result<Latency, Error>) -> Result<(Latency, Profile), Error> {
    let unavailable = |error: std::io::Error| Error::problem(format!("cannot profile: {error}"));
    let (latency, samples) = sampler::sampled(run).map_err(unavailable)?;
    Ok((latency?, Profile::of(symbols::functions(&samples))))
}

impl Profile {
    fn of(mut found: Functions) -> Self {
        let samples: u64 = found.samples.values().sum();
        let rows = found.samples.into_iter().map(|(name, count)| {
            let share = count as f64 / samples.max(1) as f64;
            match found.described.remove(&name) {
                Some(own) => Row {
                    name,
                    share,
                    nodes: own.nodes,
                    launches: own.launches,
                    operations: own.operations,
                    bytes: own.bytes,
                },
                None => {
                    Row { name, share, nodes: vec![], launches: 0, operations: None, bytes: None }
                }
            }
        });
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by(|left, right| {
            right.share.total_cmp(&left.share).then_with(|| left.name.cmp(&right.name))
        });
        Self { rows, samples }
    }

    /// A table for human readers. `seconds` is the time of a run.
    pub fn text(&self, seconds: f64, roofline: &Roofline) -> String {
        let mut text = format!("profile of {} samples\n", self.samples);
        text += "  share      time/run   GFLOP/s      GB/s  roofline  kernel\n";
        let mut others = 0.0;
        for row in &self.rows {
            if row.share < MIN_SHARE {
                others += row.share;
                continue;
            }
            let (time, nodes) = (row.share * seconds, row.nodes_text());
            text += &format!("{:6.1} %  {:>12}", row.share * 100.0, milliseconds(time));
            let cell = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{it:.1}"));
            let rate = cell(row.rate(row.operations, time));
            let traffic = cell(row.rate(row.bytes, time));
            let bound = row.roofline(time, roofline).map(|share| format!("{:.0} %", share * 100.0));
            let bound = bound.unwrap_or("-".to_owned());
            text += &format!("  {rate:>8}  {traffic:>8}  {bound:>8}  {}{nodes}\n", row.name);
        }
        if others > 0.0 {
            let time = milliseconds(others * seconds);
            text += &format!("{:6.1} %  {time:>12}  {:>38}\n", others * 100.0, "others");
        }
        text
    }

    /// The rows as JSON.
    pub fn json(&self, seconds: f64, roofline: &Roofline) -> Value {
        let rows = self.rows.iter().map(|row| {
            let time = row.share * seconds;
            json!({
                "kernel": row.name,
                "share": row.share,
                "ms": time * 1e3,
                "launches": row.launches,
                "gflops": row.rate(row.operations, time),
                "gbytes_per_second": row.rate(row.bytes, time),
                "roofline_share": row.roofline(time, roofline),
                "nodes": row.nodes,
            })
        });
        json!({ "samples": self.samples, "kernels": rows.collect::<Vec<Value>>() })
    }
}

impl Row {
    /// In 10^9 a second, of all launches.
    fn rate(&self, of_launch: Option<u64>, seconds: f64) -> Option<f64> {
        let total = of_launch?.saturating_mul(self.launches);
        (total > 0 && seconds > 0.0).then(|| total as f64 / seconds / 1e9)
    }

    /// The minimum time of the roofline divided by the time.
    fn roofline(&self, seconds: f64, roofline: &Roofline) -> Option<f64> {
        let least = roofline.least_seconds(self.operations?, self.bytes?);
        (self.launches > 0 && seconds > 0.0).then(|| least * self.launches as f64 / seconds)
    }

    fn nodes_text(&self) -> String {
        if self.nodes.is_empty() {
            return String::new();
        }
        let first: Vec<&str> = self.nodes.iter().take(MAX_NODES).map(String::as_str).collect();
        let more = self.nodes.len().saturating_sub(MAX_NODES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("  ({}{more})", first.join("; "))
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.4} ms", seconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbols::Described;

    #[test]
    fn rows_have_rates_of_all_their_launches() {
        let described = Described {
            symbol: "k".to_owned(),
            launches: 2,
            nodes: ["a", "b", "c"].map(str::to_owned).to_vec(),
            operations: Some(1_000_000),
            bytes: Some(10),
        };
        let mut found = Functions::default();
        found.samples.extend([("k".to_owned(), 750), ("memcpy".to_owned(), 249)]);
        found.samples.insert("rare".to_owned(), 1);
        found.described.insert("k".to_owned(), described);
        let roofline = Roofline { gflops: 10.0, bandwidth: 10.0 };
        let text = Profile::of(found).text(1e-3, &roofline);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[0], "profile of 1000 samples");
        assert_eq!(lines[2], "75.0 % 0.7500 ms 2.7 0.0 27 % k (a; b and 1 more)");
        assert_eq!(lines[3], "24.9 % 0.2490 ms - - - memcpy");
        assert_eq!(lines[4], "0.1 % 0.0010 ms others");
    }
}
