//! Results of measurements, as text and as JSON.
use super::{latency::Latency, profile::Profile, roofline::Roofline};
use serde_json::json;

/// The message if the share of the roofline is unknown.
const UNKNOWN: &str = "roofline of the whole run unknown: the operations of a library, or of loops and choices, are not counted";

/// A measurement.
pub struct Report {
    /// The latency.
    pub latency: Latency,
    /// The latency on a GPU, without copies.
    pub device: Option<Latency>,
    /// Number of floating-point operations of one run, if known.
    pub flops: Option<u64>,
    /// Size of the inputs and outputs in bytes.
    pub traffic: u64,
    /// The peak rates of the processor: of arithmetic on the cores that the threads run on, of memory traffic on one; `None` for a
    /// kernel of a GPU.
    pub roofline: Option<Roofline>,
    /// Number of threads that ran it.
    pub threads: u32,
    /// The inputs and their types.
    pub inputs: Vec<String>,
    /// The time of each kernel, if it was measured.
    pub profile: Option<Profile>,
}

impl Report {
    /// Lines for human readers; the first is `median <ms> ms`.
    pub fn text(&self) -> String {
        let ms = |seconds: f64| seconds * 1e3;
        let percentile = |share| ms(self.latency.percentile(share));
        let mut text = format!("median {:.4} ms\n", ms(self.latency.median()));
        text += &format!(
            "p50 {:.4} ms  p90 {:.4} ms  p99 {:.4} ms  ({} runs)\n",
            percentile(0.5),
            percentile(0.9),
            percentile(0.99),
            self.latency.runs()
        );
        if let Some(rate) = self.gflops() {
            text += &format!("{rate:.2} GFLOP/s  ({} operations)\n", self.flops.unwrap_or(0));
        }
        text += &format!("{} bytes  {:.2} GB/s\n", self.traffic, self.bandwidth());
        if !self.inputs.is_empty() {
            text += &format!("inputs {}\n", self.inputs.join(", "));
        }
        let Some(roofline) = &self.roofline else {
            text += "on a GPU, copies of inputs and outputs included";
            if let Some(device) = &self.device {
                text += &format!("; median without them {:.4} ms", ms(device.median()));
            }
            return text + "\n";
        };
        let Roofline { gflops, bandwidth, vector_bytes } = roofline;
        let kind = match vector_bytes {
            Some(bytes) => format!("f32 in vectors of {} bits", 8 * bytes),
            None => "as given".to_owned(),
        };
        let peak = match super::cores(self.threads) {
            1 => format!("peak {gflops:.1} GFLOP/s ({kind}), {bandwidth:.1} GB/s on one core"),
            cores => format!(
                "peak {gflops:.1} GFLOP/s ({kind}) on {cores} cores, {bandwidth:.1} GB/s on one"
            ),
        };
        text += &match self.share() {
            Some(share) => format!("roofline {:.1} %  {peak}\n", share * 100.0),
            None => format!("{UNKNOWN}\n{peak}\n"),
        };
        let profile = self.profile.as_ref();
        text + &profile
            .map(|profile| profile.text(self.latency.median(), roofline))
            .unwrap_or_default()
    }

    /// One JSON object.
    pub fn json(&self) -> String {
        let ms = |seconds: f64| seconds * 1e3;
        let percentile = |share| ms(self.latency.percentile(share));
        let record = json!({
            "median_ms": ms(self.latency.median()),
            "p50_ms": percentile(0.5),
            "p90_ms": percentile(0.9),
            "p99_ms": percentile(0.99),
            "device_median_ms": self.device.as_ref().map(|device| ms(device.median())),
            "runs": self.latency.runs(),
            "flop": self.flops,
            "gflops": self.gflops(),
            "bytes": self.traffic,
            "gbytes_per_second": self.bandwidth(),
            "peak_gflops": self.roofline.as_ref().map(|peak| peak.gflops),
            "peak_vector_bits": self.roofline.as_ref().and_then(|peak| Some(8 * peak.vector_bytes?)),
            "peak_gbytes_per_second": self.roofline.as_ref().map(|peak| peak.bandwidth),
            "roofline_share": self.share(),
            "roofline_note": self.share().is_none().then_some(UNKNOWN),
            "threads": self.threads,
            "inputs": self.inputs,
            "profile": self
                .profile
                .as_ref()
                .zip(self.roofline.as_ref())
                .map(|(profile, roofline)| profile.json(self.latency.median(), roofline)),
        });
        format!("{record:#}\n")
    }

    fn gflops(&self) -> Option<f64> {
        Some(self.flops? as f64 / self.latency.median() / 1e9)
    }

    fn bandwidth(&self) -> f64 {
        self.traffic as f64 / self.latency.median() / 1e9
    }

    /// The minimum time of the roofline divided by the measured time; `None` if the number of operations is
    /// unknown, as the bound from traffic alone would be too low.
    fn share(&self) -> Option<f64> {
        let least = self.roofline.as_ref()?.least_seconds(self.flops?, self.traffic);
        Some(least / self.latency.median())
    }
}
