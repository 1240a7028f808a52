//! Ranges of values over samples.

use std::fmt;
use std::str::FromStr;

/// The number of bins of a histogram.
const BINS: usize = 2048;

/// The parts of the range that [`Method::Mse`] tries.
const TRIED: usize = 100;

/// The least and the largest number that bytes represent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least; at most 0.
    pub min: f32,
    /// The largest; at least 0.
    pub max: f32,
}

impl Range {
    /// The scale and the zero point of `u8`.
    pub fn scale(&self) -> (f32, i32) {
        let scale = ((f64::from(self.max) - f64::from(self.min)) / 255.0) as f32;
        if scale < f32::MIN_POSITIVE {
            return (1.0, 0);
        }
        let zero = (-f64::from(self.min) / f64::from(scale)).round_ties_even();
        (scale, zero.clamp(0.0, 255.0) as i32)
    }
}

/// How the range of a value follows from its elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Method {
    /// All elements are in it.
    #[default]
    MinMax,
    /// So many percent of the elements are in it, the others on both sides, by a histogram.
    Percentile(f64),
    /// The part of the whole range with the least mean squared error of quantisation, by a histogram.
    Mse,
}

impl FromStr for Method {
    type Err = String;

    /// `minmax`, `percentile`, `percentile=99.9`, `mse`
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("expected minmax, percentile, percentile=P or mse, found '{text}'");
        match text.split_once('=') {
            None if text == "minmax" => Ok(Self::MinMax),
            None if text == "percentile" => Ok(Self::Percentile(99.99)),
            None if text == "mse" => Ok(Self::Mse),
            Some(("percentile", part)) => match part.parse() {
                Ok(part) if (50.0..=100.0).contains(&part) => Ok(Self::Percentile(part)),
                _ => Err(format!("expected a percentile of 50 to 100, found '{part}'")),
            },
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MinMax => write!(f, "minmax"),
            Self::Percentile(part) => write!(f, "percentile={part}"),
            Self::Mse => write!(f, "mse"),
        }
    }
}

/// The elements of a value over samples. A histogram needs the whole range first: all samples are added with
/// [`Observer::extend`], and then again with [`Observer::count`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observer {
    range: Option<Range>,
    bins: Vec<u64>,
}

impl Observer {
    /// Extends the range to some elements.
    ///
    /// # Errors
    /// The first element that is not finite.
    pub fn extend(&mut self, elements: &[f32]) -> Result<(), f32> {
        let mut range = self.range.unwrap_or(Range { min: 0.0, max: 0.0 });
        for element in elements {
            if !element.is_finite() {
                return Err(*element);
            }
            range.min = range.min.min(*element);
            range.max = range.max.max(*element);
        }
        self.range = Some(range);
        Ok(())
    }

    /// Adds some elements to the histogram.
    pub fn count(&mut self, elements: &[f32]) {
        let Some(Range { min, max }) = self.range.filter(|range| range.max > range.min) else {
            return;
        };
        self.bins.resize(BINS, 0);
        let bins = BINS as f64 / (f64::from(max) - f64::from(min));
        for element in elements {
            let bin = (f64::from(*element) - f64::from(min)) * bins;
            self.bins[(bin.max(0.0) as usize).min(BINS - 1)] += 1;
        }
    }

    /// The range by a method; `None` without elements.
    pub fn range(&self, method: Method) -> Option<Range> {
        let whole = self.range?;
        Some(match method {
            _ if self.bins.is_empty() => whole,
            Method::MinMax => whole,
            Method::Percentile(part) => self.percentile(whole, part),
            Method::Mse => self.least_error(whole),
        })
    }

    /// The number at the start of a bin.
    fn edge(whole: Range, bin: usize) -> f64 {
        let width = (f64::from(whole.max) - f64::from(whole.min)) / BINS as f64;
        f64::from(whole.min) + width * bin as f64
    }

    fn percentile(&self, whole: Range, part: f64) -> Range {
        let all: u64 = self.bins.iter().sum();
        let outside = (all as f64 * (100.0 - part) / 200.0) as u64;
        let within = |bins: &mut dyn Iterator<Item = &u64>| {
            let mut sum = 0;
            bins.take_while(|count| {
                sum += **count;
                sum <= outside
            })
            .count()
        };
        let below = within(&mut self.bins.iter());
        let above = within(&mut self.bins.iter().rev());
        Range {
            min: Self::edge(whole, below).min(0.0) as f32,
            max: Self::edge(whole, BINS - above).max(0.0) as f32,
        }
    }

    fn least_error(&self, whole: Range) -> Range {
        let mut best = (f64::INFINITY, whole);
        for part in (TRIED / 5..=TRIED).rev() {
            let part = part as f64 / TRIED as f64;
            let range = Range {
                min: (f64::from(whole.min) * part) as f32,
                max: (f64::from(whole.max) * part) as f32,
            };
            let error = self.error(whole, range);
            if error < best.0 {
                best = (error, range);
            }
        }
        best.1
    }

    /// The sum of squared errors of the centres of all bins.
    fn error(&self, whole: Range, range: Range) -> f64 {
        let (scale, zero) = range.scale();
        let (scale, zero) = (f64::from(scale), f64::from(zero));
        let bins = self.bins.iter().enumerate();
        bins.map(|(bin, count)| {
            let at = (Self::edge(whole, bin) + Self::edge(whole, bin + 1)) / 2.0;
            let byte = ((at / scale).round_ties_even() + zero).clamp(0.0, 255.0);
            let wrong = (byte - zero) * scale - at;
            *count as f64 * wrong * wrong
        })
        .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(elements: &[f32], method: Method) -> Range {
        let mut observer = Observer::default();
        observer.extend(elements).expect("finite numbers");
        observer.count(elements);
        observer.range(method).expect("elements")
    }

    #[test]
    fn ranges_contain_zero() {
        assert_eq!(observed(&[1.0, 3.0], Method::MinMax), Range { min: 0.0, max: 3.0 });
        assert_eq!(observed(&[-2.0], Method::MinMax), Range { min: -2.0, max: 0.0 });
        assert_eq!(Range { min: -1.0, max: 4.1 }.scale(), (0.02, 50));
        assert_eq!(Range { min: 0.0, max: 0.0 }.scale(), (1.0, 0));
    }

    #[test]
    fn outliers_leave_the_range_of_percentiles_and_of_the_least_error() {
        let mut elements: Vec<f32> =
            (0..10_000).map(|at| (at % 200) as f32 / 100.0 - 1.0).collect();
        elements.push(8.0);
        let cut = observed(&elements, Method::Percentile(99.9));
        assert!(cut.max < 1.1 && cut.min <= -0.99, "{cut:?}");
        let least = observed(&elements, Method::Mse);
        assert!(least.max < 8.0 && least.max >= 1.0, "{least:?}");
        assert_eq!(observed(&elements, Method::MinMax), Range { min: -1.0, max: 8.0 });
    }

    #[test]
    fn numbers_that_are_not_finite_are_rejected() {
        let mut observer = Observer::default();
        assert!(observer.extend(&[1.0, f32::NAN]).is_err_and(f32::is_nan));
        assert_eq!(observer.extend(&[f32::INFINITY]), Err(f32::INFINITY));
    }

    #[test]
    fn methods_are_read() {
        assert_eq!("percentile=99.5".parse(), Ok(Method::Percentile(99.5)));
        assert_eq!("mse".parse(), Ok(Method::Mse));
        assert!("percentile=20".parse::<Method>().is_err());
        assert!("entropy".parse::<Method>().is_err());
    }
}
