//! The time of each kernel of a program, from samples of the instruction pointer.

mod sampler;
mod symbols;

use super::{latency::Latency, roofline::Roofline};
use crate::error::Error;
use irc::session::KernelWork;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use symbols::Functions;

/// Kernels with a smaller share of the time are listed as others.
const MIN_SHARE: f64 = 0.002;

/// Maximum number of nodes in a line of text.
const MAX_NODES: usize = 2;

/// The time of the functions of a program.
pub struct Profile {
    rows: Vec<Row>,
    samples: u64,
    /// Number of threads that were sampled.
    threads: usize,
}

/// A function.
struct Row {
    name: String,
    /// The fraction of the samples in it.
    share: f64,
    nodes: Vec<String>,
    launches: u64,
    /// The work of all launches, if known.
    work: KernelWork,
}

/// Runs a measurement, and profiles it.
pub fn profiled(run: impl FnOnce() -> Result<Latency, Error>) -> Result<(Latency, Profile), Error> {
    let unavailable = |error: std::io::Error| Error::problem(format!("cannot profile: {error}"));
    let (latency, samples) = sampler::sampled(run).map_err(unavailable)?;
    let functions = symbols::functions(&samples.addresses);
    Ok((latency?, Profile::of(functions, samples.threads)))
}

impl Profile {
    fn of(mut found: Functions, threads: usize) -> Self {
        let samples: u64 = found.samples.values().sum();
        let rows = found.samples.into_iter().map(|(name, count)| {
            let share = count as f64 / samples.max(1) as f64;
            match found.described.remove(&name) {
                Some(own) => {
                    let all = |of_launch: u64| of_launch.saturating_mul(own.launches);
                    let work = KernelWork {
                        operations: own.operations.map(all),
                        bytes: own.bytes.map(all),
                    };
                    Row { name, share, nodes: own.nodes, launches: own.launches, work }
                }
                None => {
                    Row { name, share, nodes: vec![], launches: 0, work: KernelWork::default() }
                }
            }
        });
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by(|left, right| {
            right.share.total_cmp(&left.share).then_with(|| left.name.cmp(&right.name))
        });
        Self { rows, samples, threads }
    }

    /// The profile with the work of kernels of open sizes, which a library does not state.
    pub fn with_work(mut self, work: &BTreeMap<String, KernelWork>) -> Self {
        for row in &mut self.rows {
            let known = work.get(&row.name).copied().unwrap_or_default();
            row.work.operations = row.work.operations.or(known.operations);
            row.work.bytes = row.work.bytes.or(known.bytes);
        }
        self
    }

    /// A table for human readers. `seconds` is the time of a run.
    pub fn text(&self, seconds: f64, roofline: &Roofline) -> String {
        let of = match self.threads {
            1 => String::new(),
            threads => format!(" of {threads} threads; shares are of the time of all of them"),
        };
        let mut text = format!("profile of {} samples{of}\n", self.samples);
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
            let rate = cell(row.rate(row.work.operations, time));
            let traffic = cell(row.rate(row.work.bytes, time));
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
                "gflops": row.rate(row.work.operations, time),
                "gbytes_per_second": row.rate(row.work.bytes, time),
                "roofline_share": row.roofline(time, roofline),
                "nodes": row.nodes,
            })
        });
        json!({ "samples": self.samples, "threads": self.threads, "kernels": rows.collect::<Vec<Value>>() })
    }
}

impl Row {
    /// In 10^9 a second.
    fn rate(&self, total: Option<u64>, seconds: f64) -> Option<f64> {
        total.filter(|total| *total > 0 && seconds > 0.0).map(|total| total as f64 / seconds / 1e9)
    }

    /// The minimum time of the roofline divided by the time.
    fn roofline(&self, seconds: f64, roofline: &Roofline) -> Option<f64> {
        let least = roofline.least_seconds(self.work.operations?, self.work.bytes?);
        (self.launches > 0 && seconds > 0.0).then(|| least / seconds)
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
        let roofline = Roofline { vector_bytes: None, gflops: 10.0, bandwidth: 10.0 };
        let text = Profile::of(found, 1).text(1e-3, &roofline);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[0], "profile of 1000 samples");
        assert_eq!(lines[2], "75.0 % 0.7500 ms 2.7 0.0 27 % k (a; b and 1 more)");
        assert_eq!(lines[3], "24.9 % 0.2490 ms - - - memcpy");
        assert_eq!(lines[4], "0.1 % 0.0010 ms others");
    }

    #[test]
    fn kernels_of_open_sizes_have_the_work_of_the_run() {
        let described = Described {
            symbol: "k".to_owned(),
            launches: 2,
            nodes: vec!["a".to_owned()],
            operations: None,
            bytes: None,
        };
        let mut found = Functions::default();
        found.samples.insert("k".to_owned(), 100);
        found.described.insert("k".to_owned(), described);
        let work = KernelWork { operations: Some(2_000_000), bytes: Some(20) };
        let profile = Profile::of(found, 2).with_work(&BTreeMap::from([("k".to_owned(), work)]));
        let roofline = Roofline { vector_bytes: None, gflops: 10.0, bandwidth: 10.0 };
        let text = profile.text(1e-3, &roofline);
        assert!(text.starts_with("profile of 100 samples of 2 threads; shares are"), "{text}");
        assert!(text.contains(" 2.0       0.0      20 %  k  (a)"), "{text}");
    }
}
