//! An operation and its modifiers: `ld.global.v4.f32`.

use crate::float::Rounding;
use crate::types::Type;

/// An operation with its modifiers.
#[derive(Debug, Clone)]
pub struct Opcode<'s> {
    /// The part before the first dot.
    pub name: &'s str,
    /// The other parts.
    pub modifiers: Vec<&'s str>,
}

impl<'s> Opcode<'s> {
    /// Divides a text at its dots.
    pub fn new(text: &'s str) -> Self {
        let mut parts = text.split('.');
        Self { name: parts.next().unwrap_or(""), modifiers: parts.collect() }
    }

    /// The oldest architecture that has the operation, as in `sm_90`, if it is newer than 80, and whether code must be for
    /// one architecture alone, as in `sm_90a`. Source: the PTX ISA, "Target ISA Notes" of each instruction.
    pub fn architecture(&self) -> Option<(u32, bool)> {
        match self.name {
            "wgmma" | "setmaxnreg" => Some((90, true)),
            "tensormap" if self.has("replace") => Some((90, true)),
            "cp" if self.has("bulk") => Some((90, false)),
            "mbarrier" if self.any(&["try_wait", "expect_tx"]) => Some((90, false)),
            "fence" if self.has("mbarrier_init") => Some((90, false)),
            "fence" if self.has("proxy") && !self.has("alias") => Some((90, false)),
            _ => None,
        }
    }

    /// Whether there is a modifier.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Whether there is any of the modifiers.
    pub fn any(&self, modifiers: &[&str]) -> bool {
        modifiers.iter().any(|modifier| self.has(modifier))
    }

    /// The modifiers that are types, in order.
    pub fn types(&self) -> Vec<Type> {
        self.modifiers.iter().filter_map(|modifier| Type::parse(modifier)).collect()
    }

    /// The last type.
    pub fn ty(&self) -> Option<Type> {
        self.modifiers.iter().rev().find_map(|modifier| Type::parse(modifier))
    }

    /// The rounding; to the nearest if there is none.
    pub fn rounding(&self) -> Rounding {
        let rounding = |modifier: &&str| match *modifier {
            "rn" | "rni" => Some(Rounding::Nearest),
            "rna" => Some(Rounding::NearestAway),
            "rz" | "rzi" => Some(Rounding::Zero),
            "rm" | "rmi" => Some(Rounding::Down),
            "rp" | "rpi" => Some(Rounding::Up),
            _ => None,
        };
        self.modifiers.iter().find_map(rounding).unwrap_or(Rounding::Nearest)
    }

    /// Whether every modifier is a type or one of those given.
    pub fn only(&self, modifiers: &[&str]) -> bool {
        let known =
            |modifier: &&str| Type::parse(modifier).is_some() || modifiers.contains(modifier);
        self.modifiers.iter().all(known)
    }
}
