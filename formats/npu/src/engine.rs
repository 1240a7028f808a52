//! Engines, which run their instructions in order, and the tokens between them.

use std::fmt;

/// A unit that runs its own queue of instructions in order, concurrently with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Engine {
    /// Control: begin and end of a task, ring regions of L2.
    Ct,
    /// DRAM to L2.
    Ld,
    /// DRAM or L2 to the weight memory WL0.
    Lw,
    /// Convolution and matrix product.
    Pe,
    /// Vector operations, pooling.
    Vp,
    /// L2 to L2.
    Dt,
    /// L2 to DRAM.
    St,
    /// L2 of another core to L2.
    Si,
    /// L2 to L2 of another core.
    So,
}

impl Engine {
    /// Number of engines per core.
    pub const COUNT: usize = 9;

    /// All engines, by number.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Ct, Self::Ld, Self::Lw, Self::Pe, Self::Vp, Self::Dt, Self::St, Self::Si, Self::So];

    /// Name in token lists.
    pub fn name(self) -> &'static str {
        ["CT", "LD", "LW", "PE", "VP", "DT", "ST", "SI", "SO"][self as usize]
    }

    /// The engine with a name in token lists.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// The engine with a number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A list of distinct engines, in the order in which it was written.
///
/// The order has no meaning and is preserved so that a listing prints as it was read;
/// [`Engines::same`] ignores it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Engines {
    /// Engine `i` in bits `4 i` to `4 i + 3`, the number of engines in the highest byte.
    packed: u64,
}

/// The lowest bit of the number of engines.
const COUNT_SHIFT: u32 = 56;

impl Engines {
    /// No engine.
    pub const NONE: Self = Self { packed: 0 };

    /// Appends an engine; returns false if it is present already.
    pub fn push(&mut self, engine: Engine) -> bool {
        if self.contains(engine) {
            return false;
        }
        self.packed |= (engine as u64) << (4 * self.len());
        self.packed += 1 << COUNT_SHIFT;
        true
    }

    /// Removes an engine; returns false if it is absent.
    pub fn remove(&mut self, engine: Engine) -> bool {
        let kept: Self = self.iter().filter(|other| *other != engine).collect();
        let removed = kept.len() < self.len();
        *self = kept;
        removed
    }

    /// Whether the engine is in the list.
    pub fn contains(&self, engine: Engine) -> bool {
        self.iter().any(|other| other == engine)
    }

    /// The engines in order.
    pub fn iter(&self) -> impl Iterator<Item = Engine> + use<> {
        let packed = self.packed;
        (0..self.len()).map(move |i| Engine::ALL[(packed >> (4 * i) & 15) as usize])
    }

    /// Number of engines.
    pub fn len(&self) -> usize {
        (self.packed >> COUNT_SHIFT) as usize
    }

    /// Whether there are no engines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both contain the same engines, in any order.
    pub fn same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|engine| other.contains(engine))
    }
}

impl FromIterator<Engine> for Engines {
    /// Repeated engines are dropped.
    fn from_iter<I: IntoIterator<Item = Engine>>(engines: I) -> Self {
        let mut list = Self::NONE;
        for engine in engines {
            list.push(engine);
        }
        list
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_holds_each_engine_once() {
        let mut list: Engines = [Engine::Vp, Engine::Ld, Engine::Vp].into_iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), [Engine::Vp, Engine::Ld]);
        assert!(!list.push(Engine::Ld));
        let other: Engines = [Engine::Ld, Engine::Vp].into_iter().collect();
        assert!(list.same(&other) && list != other);
        assert!(list.remove(Engine::Vp) && !list.remove(Engine::Vp));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn all_engines_fit_into_a_list() {
        let list: Engines = Engine::ALL.into_iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), Engine::ALL);
    }
}
