//! Targets: meshes of NPU cores, as text.
//!
//! `npu:mesh=4x4,stride=1,buffer=1MiB,macs=1024,noc=24,dram=0.5perTOPS,core=polar`; all keys but `mesh` have the
//! values of this example by default. [`Target::machine`] is the published machine with these numbers. With
//! `model=gemini,dies=2x1,d2d=16`, it is that of Gemini, on dies.

use irc_npu_cost::{Array, Chiplets, Machine, Mesh, Objective};
use std::fmt;
use std::str::FromStr;

/// What a target begins with.
pub const PREFIX: &str = "npu:";

/// The keys, and what their values are.
const KEYS: [(&str, &str); 11] = [
    ("mesh", "WxH, columns and rows of cores"),
    ("stride", "columns per stripe of consecutive cores"),
    ("buffer", "the buffer of a core, such as 1MiB"),
    ("macs", "multiply-accumulates per cycle of a core"),
    ("noc", "bytes per cycle of a link"),
    ("dram", "bytes per cycle of DRAM, or such as 0.5perTOPS"),
    ("core", "polar or eyeriss"),
    ("weights", "once or reload"),
    ("model", "set or gemini"),
    ("dies", "CxR, columns and rows of dies"),
    ("d2d", "bytes per cycle of a link between dies"),
];

/// A mesh of NPU cores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Columns and rows of cores.
    pub mesh: [u64; 2],
    /// Columns per stripe: cores with consecutive numbers are neighbours.
    pub stride: u64,
    /// Bytes of the buffer of a core.
    pub buffer: u64,
    /// Multiply-accumulates per cycle of a core.
    pub macs: u64,
    /// Bytes per cycle of a link.
    pub noc: u64,
    /// The rate of DRAM.
    pub dram: DramRate,
    /// The kind of core.
    pub core: CoreKind,
    /// Whether the estimate counts constant weights for every run of a segment, which loads them, rather than once for
    /// all images, as SET's program does. Gemini's model counts them for every run.
    pub reloads: bool,
    /// The dies, if the cost model is Gemini's.
    pub dies: Option<Dies>,
}

/// The dies of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dies {
    /// Columns and rows.
    pub grid: [u64; 2],
    /// Bytes per cycle of a link between dies.
    pub link: u64,
}

impl Dies {
    /// One die.
    const ONE: Self = Self { grid: [1, 1], link: 16 };
}

/// The rate of DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DramRate {
    /// Bytes per cycle.
    Bytes(u64),
    /// Thousandths of a byte per cycle, for each trillion operations per second.
    PerTops(u64),
}

/// The kind of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoreKind {
    /// The core of the authors of SET.
    Polar,
    /// A core in the style of Eyeriss.
    Eyeriss,
}

/// What schedules minimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Energy times delay.
    #[default]
    Edp,
    /// Delay.
    Latency,
    /// Energy.
    Energy,
}

impl Goal {
    /// The objective of the cost model.
    pub const fn objective(self) -> Objective {
        let [energy, delay] = match self {
            Self::Edp => [1, 1],
            Self::Latency => [0, 1],
            Self::Energy => [1, 0],
        };
        Objective { energy, delay }
    }
}

impl Target {
    /// The machine.
    ///
    /// # Errors
    /// Numbers that no machine of the cost model has.
    pub fn machine(&self) -> Result<Machine, String> {
        let [width, height] = self.mesh;
        let mesh = Mesh { width, height, stride: self.stride };
        if let Some(dies) = self.dies {
            return self.on_dies(mesh, dies);
        }
        let mut machine = match self.core {
            CoreKind::Polar => Machine::polar(mesh),
            CoreKind::Eyeriss => Machine::eyeriss(mesh),
        };
        let unlike = |unit: u64| {
            format!(
                "macs={}: expected a multiple of {unit} that is the product of two numbers up to 256",
                self.macs
            )
        };
        match &mut machine.array {
            Array::Polar(core) => {
                let each = core.lanes * core.vector;
                core.grid = grid(self.macs, each).ok_or_else(|| unlike(each))?;
            }
            Array::Eyeriss(core) => core.array = grid(self.macs, 1).ok_or_else(|| unlike(1))?,
        }
        machine.buffer.size = self.buffer;
        machine.reloads = self.reloads;
        machine.link_bandwidth = self.noc;
        machine.dram_bandwidth = self.dram_rate();
        machine.check().map_err(|found| found.message)?;
        Ok(machine)
    }

    /// Gemini's machine with these numbers.
    fn on_dies(&self, mesh: Mesh, dies: Dies) -> Result<Machine, String> {
        if self.macs != 1024 || self.core != CoreKind::Polar {
            return Err("model=gemini: expected macs=1024 and core=polar".into());
        }
        let chiplets = Chiplets::new(mesh, dies.grid, self.buffer, self.dram_rate());
        let machine = Chiplets { link: self.noc, die_link: dies.link, ..chiplets }.machine();
        machine.check().map_err(|found| found.message)?;
        Ok(machine)
    }

    /// Bytes per cycle of DRAM.
    fn dram_rate(&self) -> u64 {
        match self.dram {
            DramRate::Bytes(bytes) => bytes,
            DramRate::PerTops(thousandths) => {
                // Two operations for each multiply-accumulate, at 1 GHz.
                let [width, height] = self.mesh.map(u128::from);
                let operations = 2 * u128::from(self.macs) * width * height;
                let bytes = operations * u128::from(thousandths) / (1024 * 1000);
                u64::try_from(bytes.max(1)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Two factors of the elements of an array of `each` multiply-accumulates, as close as possible.
fn grid(macs: u64, each: u64) -> Option<[u64; 2]> {
    let count = macs.checked_div(each).filter(|count| *count > 0 && count * each == macs)?;
    let small = (1..=count.isqrt()).rev().find(|side| count.is_multiple_of(*side))?;
    (count / small <= 256).then_some([small, count / small])
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(keys) = text.strip_prefix(PREFIX) else {
            return Err(format!("expected {PREFIX}mesh=WxH, found '{text}'"));
        };
        let mut target = Self {
            mesh: [0, 0],
            stride: 1,
            buffer: 1 << 20,
            macs: 1024,
            noc: 24,
            dram: DramRate::PerTops(500),
            core: CoreKind::Polar,
            reloads: false,
            dies: None,
        };
        let mut seen: Vec<&str> = vec![];
        let mut model = None;
        for item in keys.split(',') {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let Some((key, about)) = KEYS.iter().find(|(known, _)| *known == key) else {
                let known = KEYS.map(|(key, _)| key).join(", ");
                return Err(format!("unknown key '{key}'; the keys are {known}"));
            };
            if seen.contains(key) {
                return Err(format!("{key} is given twice"));
            }
            seen.push(key);
            if *key == "model" {
                model = Some(value);
            }
            target
                .set(key, value)
                .ok_or_else(|| format!("{key}: expected {about}, found '{value}'"))?;
        }
        if let (Some(key), None | Some("set")) =
            (seen.iter().find(|key| matches!(**key, "dies" | "d2d")), model)
        {
            return Err(format!("{key}: expected model=gemini beside it"));
        }
        match seen.contains(&"mesh") {
            true => Ok(target),
            false => Err("expected mesh=WxH, columns and rows of cores".into()),
        }
    }
}

impl Target {
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "mesh" => {
                let (width, height) = value.split_once('x')?;
                self.mesh = [width.parse().ok()?, height.parse().ok()?];
            }
            "stride" => self.stride = value.parse().ok()?,
            "buffer" => self.buffer = bytes(value)?,
            "macs" => self.macs = value.parse().ok()?,
            "noc" => self.noc = value.parse().ok()?,
            "dram" => {
                self.dram = match value.strip_suffix("perTOPS") {
                    Some(rate) => DramRate::PerTops(thousandths(rate)?),
                    None => DramRate::Bytes(value.parse().ok()?),
                }
            }
            "weights" => {
                self.reloads = match value {
                    "once" => false,
                    "reload" => true,
                    _ => return None,
                }
            }
            "model" => match value {
                "set" => {}
                "gemini" => {
                    self.dies.get_or_insert(Dies::ONE);
                }
                _ => return None,
            },
            "dies" => {
                let (columns, rows) = value.split_once('x')?;
                let grid = [columns.parse().ok()?, rows.parse().ok()?];
                self.dies.get_or_insert(Dies::ONE).grid = grid;
            }
            "d2d" => self.dies.get_or_insert(Dies::ONE).link = value.parse().ok()?,
            _ => {
                self.core = match value {
                    "polar" => CoreKind::Polar,
                    "eyeriss" => CoreKind::Eyeriss,
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

/// Bytes, KiB or MiB.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match (text.strip_suffix("KiB"), text.strip_suffix("MiB")) {
        (Some(number), _) => (number, 1 << 10),
        (_, Some(number)) => (number, 1 << 20),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// A decimal number with up to three digits after the point.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    if rest.len() > 3 || !rest.chars().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let rest: u64 = format!("{rest:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(rest)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mesh: [width, height], stride, buffer, macs, noc, dram, core, reloads, dies } =
            self;
        write!(
            f,
            "{PREFIX}mesh={width}x{height},stride={stride},buffer={buffer},macs={macs},noc={noc}"
        )?;
        match dram {
            DramRate::Bytes(bytes) => write!(f, ",dram={bytes}")?,
            DramRate::PerTops(rate) => {
                write!(f, ",dram={}.{:03}perTOPS", rate / 1000, rate % 1000)?
            }
        }
        match core {
            CoreKind::Polar => f.write_str(",core=polar")?,
            CoreKind::Eyeriss => f.write_str(",core=eyeriss")?,
        }
        if *reloads {
            f.write_str(",weights=reload")?;
        }
        match dies {
            None => Ok(()),
            Some(Dies { grid: [columns, rows], link }) => {
                write!(f, ",model=gemini,dies={columns}x{rows},d2d={link}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_published_machine() {
        let target: Target = "npu:mesh=4x4".parse().expect("a target");
        let mesh = Mesh { width: 4, height: 4, stride: 1 };
        assert_eq!(target.machine(), Ok(Machine::polar(mesh)));
        assert_eq!(target.to_string().parse(), Ok(target));
        let text =
            "npu:mesh=4x4,stride=1,buffer=1MiB,macs=1024,noc=24,dram=0.5perTOPS,core=eyeriss";
        let target: Target = text.parse().expect("a target");
        assert_eq!(target.machine(), Ok(Machine::eyeriss(mesh)));
        let target: Target = "npu:mesh=4x4,weights=reload".parse().expect("a target");
        assert_eq!(target.machine(), Ok(Machine { reloads: true, ..Machine::polar(mesh) }));
        assert_eq!(target.to_string().parse(), Ok(target));
        let target: Target = "npu:mesh=4x4,buffer=2MiB,noc=32,dram=64,model=gemini,dies=2x1"
            .parse()
            .expect("a target");
        let chiplets = Chiplets::new(mesh, [2, 1], 2 << 20, 64);
        assert_eq!(target.machine(), Ok(chiplets.machine()));
        assert_eq!(target.to_string().parse(), Ok(target));
    }

    #[test]
    fn impossible_targets_are_rejected() {
        let wrong = [
            ("npu:", "unknown key ''"),
            ("cpu:mesh=2x2", "expected npu:mesh=WxH"),
            ("npu:stride=1", "expected mesh=WxH"),
            ("npu:mesh=2x2,mesh=3x3", "mesh is given twice"),
            ("npu:mesh=2", "mesh: expected WxH"),
            ("npu:mesh=2x2,cores=4", "unknown key 'cores'"),
            ("npu:mesh=2x2,buffer=1GB", "buffer: expected"),
            ("npu:mesh=2x2,dram=0.0005perTOPS", "dram: expected"),
            ("npu:mesh=2x2,weights=twice", "weights: expected once or reload"),
            ("npu:mesh=2x2,model=soma", "model: expected set or gemini"),
            ("npu:mesh=2x2,dies=1x1", "dies: expected model=gemini"),
        ];
        for (text, why) in wrong {
            let found = text.parse::<Target>().expect_err(text);
            assert!(found.contains(why), "{text}: {found}");
        }
        let no_machine = [
            "npu:mesh=0x0",
            "npu:mesh=1000000x1",
            "npu:mesh=2x2,stride=3",
            "npu:mesh=1x1,macs=7",
            "npu:mesh=1x1,noc=0",
            "npu:mesh=4x4,model=gemini,dies=3x1",
            "npu:mesh=4x4,model=gemini,core=eyeriss",
            "npu:mesh=3x3,model=gemini",
        ];
        for text in no_machine {
            assert!(text.parse::<Target>().expect(text).machine().is_err(), "{text}");
        }
    }
}
