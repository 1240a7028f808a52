//! Targets: meshes of NPU cores, as text.
//!
//! `npu:mesh=4x4,stride=1,buffer=1MiB,macs=1024,noc=24,dram=0.5perTOPS,core=polar`; all keys but `mesh` have the
//! values of this example by default. [`Target::machine`] is the published machine with these numbers. With
//! `model=gemini,dies=2x1,d2d=16`, it is that of Gemini, on dies.

use irc_diag::{counted, nearest};
use irc_npu_cost::{
    Array, Chiplets, Eyeriss, MAX_BYTES, MAX_CORES, Machine, Memory, Mesh, Objective, Package,
    Polar,
};
use std::fmt;
use std::str::FromStr;

/// What a target begins with.
pub const PREFIX: &str = "npu:";

/// The keys, and what their values are.
const KEYS: [(&str, &str); 11] = [
    ("mesh", "WxH, columns by rows, 1 to 256 cores in all"),
    ("stride", "columns per stripe of consecutive cores, which divide those of the mesh"),
    ("buffer", "1 byte to 128MiB, such as 1MiB or 512KiB"),
    ("macs", "multiply-accumulates per cycle of a core"),
    ("noc", "1 to 134217728 bytes per cycle of a link"),
    ("dram", "1 to 134217728 bytes per cycle of DRAM, or such as 0.5perTOPS"),
    ("core", "polar or eyeriss"),
    ("weights", "once or reload"),
    ("model", "set or gemini"),
    ("dies", "CxR, columns and rows of dies, which divide those of the mesh"),
    ("d2d", "1 to 134217728 bytes per cycle of a link between dies"),
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
    /// All goals.
    const ALL: [Self; 3] = [Self::Edp, Self::Latency, Self::Energy];

    /// The goal with an objective of the cost model; `None` for others.
    pub fn of(objective: Objective) -> Option<Self> {
        Self::ALL.into_iter().find(|goal| goal.objective() == objective)
    }

    /// Its name, as of `--objective`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Edp => "edp",
            Self::Latency => "latency",
            Self::Energy => "energy",
        }
    }

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

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|goal| goal.name() == text);
        found.ok_or_else(|| format!("expected edp, latency or energy, found '{text}'"))
    }
}

impl Target {
    /// The machine.
    ///
    /// # Errors
    /// Numbers that no machine of the cost model has, with their key.
    pub fn machine(&self) -> Result<Machine, String> {
        let text = self.to_string();
        let machine = self.checked().map_err(|found| found.of(items(&text)))?;
        machine.check().map_err(|found| found.message)?;
        Ok(machine)
    }

    /// The machine, if each key has a value that is possible with the others.
    fn checked(&self) -> Result<Machine, Wrong> {
        let [width, height] = self.mesh;
        let cores = width.checked_mul(height);
        Wrong::unless("mesh", cores.is_some_and(|cores| (1..=MAX_CORES).contains(&cores)))?;
        Wrong::unless("stride", divides(self.stride, width))?;
        let is_size = |bytes: u64| (1..=MAX_BYTES).contains(&bytes);
        Wrong::unless("buffer", is_size(self.buffer))?;
        let array = self.array()?;
        Wrong::unless("noc", is_size(self.noc))?;
        let dram = self.dram_rate();
        if let (DramRate::PerTops(_), false) = (self.dram, is_size(dram)) {
            let all = counted(2 * self.macs * width * height, "operation");
            return Err(Wrong::new(
                "dram",
                format!(
                    "1 to {MAX_BYTES} bytes per cycle for all {all} per cycle, which is {dram}"
                ),
            ));
        }
        Wrong::unless("dram", is_size(dram))?;
        let mesh = Mesh { width, height, stride: self.stride };
        if let Some(dies) = self.dies {
            return self.on_dies(mesh, dies);
        }
        let machine = match self.core {
            CoreKind::Polar => Machine::polar(mesh),
            CoreKind::Eyeriss => Machine::eyeriss(mesh),
        };
        Ok(Machine {
            array,
            buffer: Memory { size: self.buffer, ..machine.buffer },
            reloads: self.reloads,
            link_bandwidth: self.noc,
            dram_bandwidth: dram,
            ..machine
        })
    }

    /// The multipliers of a core.
    fn array(&self) -> Result<Array, Wrong> {
        let mesh = Mesh { width: 1, height: 1, stride: 1 };
        let base = match self.core {
            CoreKind::Polar => Machine::polar(mesh),
            CoreKind::Eyeriss => Machine::eyeriss(mesh),
        };
        let product = "product of two numbers up to 256";
        Ok(match base.array {
            Array::Polar(core) => {
                let each = core.lanes * core.vector;
                let found = grid(self.macs, each);
                let wrong = || Wrong::new("macs", format!("{each} times the {product}"));
                Array::Polar(Polar { grid: found.ok_or_else(wrong)?, ..core })
            }
            Array::Eyeriss(core) => {
                let wrong = || Wrong::new("macs", format!("the {product}"));
                Array::Eyeriss(Eyeriss { array: grid(self.macs, 1).ok_or_else(wrong)?, ..core })
            }
        })
    }

    /// Gemini's machine with these numbers.
    fn on_dies(&self, mesh: Mesh, dies: Dies) -> Result<Machine, Wrong> {
        let [across, down] = dies.grid;
        let dram = self.dram_rate();
        let controllers = Package::CONTROLLERS;
        let possible = [
            ("macs", self.macs == 1024, "1024".to_owned()),
            ("core", self.core == CoreKind::Polar, "polar".to_owned()),
            ("mesh", mesh.height.is_multiple_of(2), "an even number of rows".to_owned()),
            ("dram", dram >= controllers, format!("at least {controllers} bytes per cycle")),
        ];
        for (key, is_possible, expected) in possible {
            if !is_possible {
                return Err(Wrong::new(key, format!("{expected} with model=gemini")));
            }
        }
        Wrong::unless("dies", divides(across, mesh.width) && divides(down, mesh.height))?;
        Wrong::unless("d2d", (1..=MAX_BYTES).contains(&dies.link))?;
        let chiplets = Chiplets::new(mesh, dies.grid, self.buffer, dram);
        Ok(Chiplets { link: self.noc, die_link: dies.link, ..chiplets }.machine())
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

/// A key with a value that is not possible.
struct Wrong {
    key: &'static str,
    expected: String,
}

impl Wrong {
    fn new(key: &'static str, expected: impl Into<String>) -> Self {
        Self { key, expected: expected.into() }
    }

    /// A value that is not what the table of keys says.
    fn value(key: &'static str) -> Self {
        let about =
            KEYS.iter().find(|(known, _)| *known == key).map_or("a value", |(_, about)| about);
        Self::new(key, about)
    }

    fn unless(key: &'static str, is_possible: bool) -> Result<(), Self> {
        if is_possible { Ok(()) } else { Err(Self::value(key)) }
    }

    /// The message, with the value that the items of a target give.
    fn of<'a>(&self, mut items: impl Iterator<Item = &'a str>) -> String {
        let is_own = |item: &&str| item.split('=').next() == Some(self.key);
        format!("{}: expected {}", items.find(is_own).unwrap_or(self.key), self.expected)
    }
}

/// Keys with their values.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.strip_prefix(PREFIX).unwrap_or(text).split(',')
}

fn divides(part: u64, whole: u64) -> bool {
    part > 0 && whole.is_multiple_of(part)
}

/// Two factors of the elements of an array of `each` multiply-accumulates, as close as possible.
fn grid(macs: u64, each: u64) -> Option<[u64; 2]> {
    const MAX_SIDE: u64 = 256;
    let is_whole = |count: &u64| (1..=MAX_SIDE * MAX_SIDE).contains(count) && count * each == macs;
    let count = macs.checked_div(each).filter(is_whole)?;
    let small = (1..=count.isqrt()).rev().find(|side| count.is_multiple_of(*side))?;
    (count / small <= MAX_SIDE).then_some([small, count / small])
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
        let mut seen: Vec<&'static str> = vec![];
        let mut model = None;
        for item in keys.split(',') {
            let known = || KEYS.map(|(key, _)| key).join(", ");
            if item.is_empty() {
                return Err(format!(
                    "expected a key and its value at each comma; the keys are {}",
                    known()
                ));
            }
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let Some((key, about)) = KEYS.iter().find(|(known, _)| *known == key) else {
                let near = nearest(key, KEYS.map(|(key, _)| key));
                let hint = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
                return Err(format!("unknown key '{key}'; the keys are {}{hint}", known()));
            };
            if seen.contains(key) {
                return Err(format!("{item}: the key is given twice"));
            }
            seen.push(key);
            if *key == "model" {
                model = Some(value);
            }
            target.set(key, value).ok_or_else(|| format!("{item}: expected {about}"))?;
        }
        let of_dies = seen.iter().find(|key| matches!(**key, "dies" | "d2d"));
        if let (Some(key), None | Some("set")) = (of_dies, model) {
            return Err(Wrong::new(key, "model=gemini beside it").of(items(text)));
        }
        if !seen.contains(&"mesh") {
            return Err(Wrong::value("mesh").of(items(text)));
        }
        match target.checked() {
            Ok(_) => Ok(target),
            // A default that does not suit the other values is named as well.
            Err(wrong) => Err(wrong.of(items(text).chain(items(&target.to_string())))),
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
            ("npu:", "expected a key and its value at each comma; the keys are mesh, "),
            ("npu:mesh=2x2,", "expected a key and its value at each comma"),
            ("cpu:mesh=2x2", "expected npu:mesh=WxH"),
            ("npu:stride=1", "mesh: expected WxH"),
            ("npu:mesh", "mesh: expected WxH"),
            ("npu:mesh=2x2,mesh=3x3", "mesh=3x3: the key is given twice"),
            ("npu:mesh=2", "mesh=2: expected WxH"),
            ("npu:mesh=-1x2", "mesh=-1x2: expected WxH"),
            ("npu:mesh=0x0", "mesh=0x0: expected WxH, columns by rows, 1 to 256 cores in all"),
            ("npu:mesh=1000000x1", "mesh=1000000x1: expected WxH"),
            ("npu:mesh=18446744073709551615x2", "mesh=18446744073709551615x2: expected WxH"),
            ("npu:mesh=2x2,cores=4", "unknown key 'cores'; the keys are mesh, stride"),
            ("npu:mesh=2x2,bufer=4", "d2d; did you mean 'buffer'?"),
            ("npu:mesh=2x2,stride=3", "stride=3: expected columns per stripe"),
            ("npu:mesh=2x2,stride=0", "stride=0: expected columns per stripe"),
            ("npu:mesh=2x2,buffer=1GB", "buffer=1GB: expected 1 byte to 128MiB"),
            ("npu:mesh=2x2,buffer=0", "buffer=0: expected 1 byte to 128MiB"),
            ("npu:mesh=2x2,buffer=129MiB", "buffer=129MiB: expected 1 byte to 128MiB"),
            (
                "npu:mesh=1x1,macs=7",
                "macs=7: expected 64 times the product of two numbers up to 256",
            ),
            ("npu:mesh=1x1,core=eyeriss,macs=257", "macs=257: expected the product of two numbers"),
            ("npu:mesh=1x1,noc=0", "noc=0: expected 1 to 134217728 bytes per cycle of a link"),
            ("npu:mesh=2x2,dram=0", "dram=0: expected 1 to 134217728 bytes per cycle of DRAM"),
            ("npu:mesh=2x2,dram=0.0005perTOPS", "dram=0.0005perTOPS: expected"),
            (
                "npu:mesh=2x2,dram=99999999perTOPS",
                "dram=99999999perTOPS: expected 1 to 134217728 bytes per cycle for all 8192 operations",
            ),
            ("npu:mesh=2x2,core=other", "core=other: expected polar or eyeriss"),
            ("npu:mesh=2x2,weights=twice", "weights=twice: expected once or reload"),
            ("npu:mesh=2x2,model=soma", "model=soma: expected set or gemini"),
            ("npu:mesh=2x2,dies=1x1", "dies=1x1: expected model=gemini beside it"),
            ("npu:mesh=4x4,model=gemini,dies=3x1", "dies=3x1: expected CxR"),
            ("npu:mesh=4x4,model=gemini,d2d=0", "d2d=0: expected 1 to 134217728 bytes"),
            ("npu:mesh=4x4,model=gemini,macs=2048", "macs=2048: expected 1024 with model=gemini"),
            ("npu:mesh=4x4,model=gemini,core=eyeriss", "core=eyeriss: expected polar with model"),
            ("npu:mesh=3x3,model=gemini", "mesh=3x3: expected an even number of rows with model"),
            ("npu:mesh=1x2,model=gemini", "dram=0.500perTOPS: expected at least 4 bytes per cycle"),
        ];
        for (text, why) in wrong {
            let found = text.parse::<Target>().expect_err(text);
            assert!(found.contains(why), "{text}: {found}");
        }
    }

    #[test]
    fn limits_are_those_of_the_cost_model() {
        let limits = [
            ("mesh=256x1", "mesh=257x1"),
            ("mesh=2x2,buffer=128MiB", "mesh=2x2,buffer=134217729"),
            ("mesh=2x2,noc=134217728", "mesh=2x2,noc=134217729"),
            ("mesh=2x2,dram=134217728", "mesh=2x2,dram=134217729"),
            ("mesh=2x2,macs=4194304", "mesh=2x2,macs=4194368"),
            (
                "mesh=2x2,model=gemini,dram=4,d2d=134217728",
                "mesh=2x2,model=gemini,dram=4,d2d=134217729",
            ),
        ];
        for (possible, too_large) in limits {
            let target: Target = format!("npu:{possible}").parse().expect(possible);
            target.machine().expect(possible);
            format!("npu:{too_large}").parse::<Target>().expect_err(too_large);
        }
        let target: Target = "npu:mesh=2x2".parse().expect("a target");
        let found = Target { noc: 0, ..target }.machine().expect_err("no links");
        assert!(found.contains("noc=0: expected 1 to"), "{found}");
    }
}
