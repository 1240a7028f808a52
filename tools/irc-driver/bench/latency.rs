//! Repeated runs and their percentiles.
use crate::error::Error;
use std::time::{Duration, Instant};

/// The length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// This many runs.
    Runs(u32),
    /// Until so many seconds have elapsed, and at least [`MIN_RUNS`] runs.
    Seconds(f64),
}

const MIN_RUNS: usize = 5;
/// Maximum number of runs, which bounds the memory for the times of very short programs.
const MAX_RUNS: usize = 1_000_000;

/// The times of all runs in seconds, ascending; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency(Vec<f64>);

/// Warms up for a tenth of the length, then measures for the length.
pub fn measure(
    length: Length,
    mut run: impl FnMut() -> Result<(), Error>,
) -> Result<Latency, Error> {
    repeat(tenth(length), 1, &mut run)?;
    let times = repeat(length, MIN_RUNS, &mut run)?;
    Ok(Latency::of(times))
}

fn tenth(length: Length) -> Length {
    match length {
        Length::Runs(runs) => Length::Runs(runs.div_ceil(10)),
        Length::Seconds(seconds) => Length::Seconds(seconds / 10.0),
    }
}

fn repeat(
    length: Length,
    least: usize,
    run: &mut impl FnMut() -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let (start, mut times) = (Instant::now(), Vec::new());
    let enough = |runs: usize, elapsed: Duration| match length {
        Length::Runs(wanted) => runs >= wanted as usize,
        Length::Seconds(seconds) => {
            runs >= MAX_RUNS || runs >= least && elapsed.as_secs_f64() >= seconds
        }
    };
    while !enough(times.len(), start.elapsed()) {
        let begin = Instant::now();
        run()?;
        times.push(begin.elapsed().as_secs_f64());
    }
    Ok(times)
}

impl Latency {
    /// That of some times, at least one.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.0.len()
    }

    /// The time in seconds that a fraction of the runs, from 0 to 1, did not exceed (nearest rank).
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// The median; for an even number of runs, the mean of the middle two.
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len().is_multiple_of(2) {
            return (self.0[middle - 1] + self.0[middle]) / 2.0;
        }
        self.0[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let latency = Latency((1..=10).map(f64::from).collect());
        assert_eq!(latency.percentile(0.5), 5.0);
        assert_eq!(latency.percentile(0.9), 9.0);
        assert_eq!(latency.percentile(0.99), 10.0);
        assert_eq!(latency.median(), 5.5);
        assert_eq!(Latency(vec![2.0]).percentile(0.0), 2.0);
    }

    #[test]
    fn the_warm_up_is_not_among_the_runs() {
        let mut runs = 0;
        let latency = measure(Length::Runs(20), || {
            runs += 1;
            Ok(())
        });
        assert_eq!(latency.expect("no failure").runs(), 20);
        assert_eq!(runs, 22);
    }
}
