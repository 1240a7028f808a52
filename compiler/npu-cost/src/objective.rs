//! The objective that selects schemes.

/// A power of the energy times a power of the delay, to be minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    /// Exponent of the energy.
    pub energy: u32,
    /// Exponent of the delay.
    pub delay: u32,
}

impl Objective {
    /// The energy-delay product.
    pub const EDP: Self = Self { energy: 1, delay: 1 };

    /// The value of an energy, in pJ, and a delay, in cycles.
    pub fn of(self, energy: f64, delay: u64) -> f64 {
        power(energy, self.energy) * power(delay as f64, self.delay)
    }
}

fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}
