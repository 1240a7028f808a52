//! Estimates of when engines are free, to choose what to issue next. The simulator decides which program is used.

use irc_npu::Engine;
use irc_npu_sim::durations::Rates;
use irc_npu_sim::noc::Mesh as Shared;

/// The cycles from which the engines of all cores, and DRAM, are free.
#[derive(Clone, Debug)]
pub struct Clocks {
    rates: Rates,
    /// Bytes per cycle of a link.
    link: f64,
    /// Bytes per cycle of DRAM, for all cores together.
    shared: f64,
    dram: f64,
    engines: Vec<[u64; Engine::COUNT]>,
}

impl Clocks {
    /// Clocks of cores that have done nothing. Cores that share no mesh have DRAM of their own.
    pub fn new(cores: usize, mesh: Option<&Shared>) -> Self {
        let rates = Rates::default();
        Self {
            link: mesh.map_or(rates.dram, |mesh| mesh.link),
            shared: mesh.map_or(f64::INFINITY, |mesh| mesh.dram),
            rates,
            dram: 0.0,
            engines: vec![[0; Engine::COUNT]; cores],
        }
    }

    /// The cycle from which an engine is free.
    pub fn free(&self, core: usize, engine: Engine) -> u64 {
        self.engines[core][engine as usize]
    }

    /// The cycles of a load if nothing else moves.
    pub fn loading(&self, bytes: i64) -> u64 {
        self.rates.moving(bytes.unsigned_abs()) + self.rates.load
    }

    /// Moves bytes from or to DRAM once the engine is free and a cycle has come; the cycle at which that ends.
    pub fn movement(&mut self, core: usize, engine: Engine, bytes: i64, from: u64) -> u64 {
        let start = from.max(self.free(core, engine));
        self.dram = self.dram.max(start as f64) + bytes as f64 / self.shared;
        let end = (start + self.loading(bytes)).max(self.dram as u64);
        self.engines[core][engine as usize] = end;
        end
    }

    /// Sends bytes to another core; the cycle at which they have arrived.
    pub fn transfer(&mut self, core: usize, bytes: i64, from: u64) -> u64 {
        let start = from.max(self.free(core, Engine::So));
        let end = start + (bytes as f64 / self.link) as u64 + self.rates.transfer;
        self.engines[core][Engine::So as usize] = end;
        end
    }

    /// Occupies an engine for some cycles; the cycle at which that ends.
    pub fn computation(&mut self, core: usize, engine: Engine, cycles: u64, from: u64) -> u64 {
        let end = from.max(self.free(core, engine)) + cycles + self.rates.compute;
        self.engines[core][engine as usize] = end;
        end
    }
}
