//! Calls, and the functions that the machine provides.

use super::error::Error;
use super::{Flow, Fragment, Frame, MAX_DEPTH, MAX_OUTPUT, Machine, Warp, lanes};
use crate::code::{Call, Target};
use crate::compile::{FUNCTIONS, MAX_FRAME};
use crate::parser::MAX_REGISTERS;
use crate::types::Space;

type Result<T> = std::result::Result<T, Error>;

impl Machine<'_> {
    pub(super) fn call(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        call: &Call,
    ) -> Result<Flow> {
        if mask != fragment.mask {
            // The threads that call do so as a fragment of their own; the others go on.
            self.split(warp, fragment, fragment.mask & !mask, fragment.at + 1);
        }
        let number = match call.target {
            Target::Printf => {
                self.printf(warp, fragment, mask, call)?;
                return Ok(Flow::Next);
            }
            Target::Assert => return Err(self.assertion(warp, fragment, mask, call)),
            Target::Function(number) => number,
            Target::Indirect(target) => {
                let target = *self.row(warp, fragment, target);
                let first = lanes(mask).next().unwrap_or(0);
                let other = lanes(mask).filter(|lane| target[*lane] != target[first]);
                let other = other.fold(0, |mask, lane| mask | 1 << lane);
                if other != 0 {
                    self.split(warp, fragment, other, fragment.at);
                }
                let number = target[first].wrapping_sub(FUNCTIONS) / 16;
                if !target[first].is_multiple_of(16)
                    || number >= self.program.functions.len() as u64
                {
                    let message = format!(
                        "a call of {:#x}, which is not the address of a function",
                        target[first]
                    );
                    return Err(Error::new("ptx-call", message).at_lane(first));
                }
                number as u32
            }
        };
        if fragment.frames.len() >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} calls in one another");
            return Err(Error::new("ptx-call", message).at_lane(lanes(mask).next().unwrap_or(0)));
        }
        let program = self.program;
        let caller = &program.functions[fragment.function as usize];
        let callee = &program.functions[number as usize];
        let local = (fragment.local + caller.local).next_multiple_of(16);
        let registers =
            u64::from(fragment.registers + caller.registers) + u64::from(callee.registers);
        if local + callee.local > MAX_FRAME || registers > u64::from(MAX_REGISTERS) {
            let message = format!(
                "the calls need more than {MAX_FRAME} bytes of local memory or {MAX_REGISTERS} registers"
            );
            return Err(Error::new("ptx-call", message).at_lane(lanes(mask).next().unwrap_or(0)));
        }
        let frame = Frame {
            at: fragment.at,
            function: fragment.function,
            registers: fragment.registers,
            predicates: fragment.predicates,
            local: fragment.local,
        };
        fragment.registers += caller.registers;
        fragment.predicates += caller.predicates;
        let registers = (fragment.registers + callee.registers) as usize;
        if warp.registers.len() < registers {
            warp.registers.resize(registers, [0; 32]);
        }
        let predicates = (fragment.predicates + callee.predicates) as usize;
        if warp.predicates.len() < predicates {
            warp.predicates.resize(predicates, 0);
        }
        for lane in lanes(fragment.mask) {
            let memory = &mut warp.local[lane];
            memory.resize(memory.len().max((local + callee.local) as usize), 0);
            for (index, (here, there, size)) in call.arguments.iter().enumerate() {
                let (there, size) = match call.target {
                    Target::Indirect(_) => callee.params.get(index).copied().unwrap_or((0, 0)),
                    _ => (*there, *size),
                };
                let from = (fragment.local + here) as usize;
                memory.copy_within(from..from + size as usize, (local + there) as usize);
            }
        }
        fragment.frames.push(frame);
        fragment.local = local;
        fragment.function = number;
        Ok(Flow::Jump(callee.entry))
    }

    pub(super) fn return_from(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
    ) -> Result<Flow> {
        if mask != fragment.mask {
            self.split(warp, fragment, fragment.mask & !mask, fragment.at + 1);
        }
        let Some(frame) = fragment.frames.pop() else {
            return Err(Error::new("ptx-call", "a return that is in no call"));
        };
        let program = self.program;
        let callee = &program.functions[fragment.function as usize];
        if let crate::code::Op::Call(call) = &program.code[frame.at as usize].op {
            for lane in lanes(fragment.mask) {
                let memory = &mut warp.local[lane];
                for (index, (here, there, size)) in call.results.iter().enumerate() {
                    let (there, size) = match call.target {
                        Target::Indirect(_) => callee.results.get(index).copied().unwrap_or((0, 0)),
                        _ => (*there, *size),
                    };
                    let from = (fragment.local + there) as usize;
                    memory.copy_within(from..from + size as usize, (frame.local + here) as usize);
                }
            }
        }
        fragment.function = frame.function;
        fragment.registers = frame.registers;
        fragment.predicates = frame.predicates;
        fragment.local = frame.local;
        fragment.spin.leave(fragment.frames.len());
        Ok(Flow::Jump(frame.at + 1))
    }

    /// An argument of a function of the machine.
    fn argument(
        &self,
        warp: &Warp,
        fragment: &Fragment,
        lane: usize,
        call: &Call,
        index: usize,
    ) -> u64 {
        let Some((here, _, size)) = call.arguments.get(index) else { return 0 };
        let from = (fragment.local + here) as usize;
        let bytes = &warp.local[lane][from..from + (*size).min(8) as usize];
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(value)
    }

    /// A string of memory that ends with a zero.
    fn string(&self, warp: &Warp, lane: usize, mut address: u64) -> Result<Vec<u8>> {
        let mut string = vec![];
        while string.len() < 4096 {
            let place = self.place(warp, lane, Space::Generic, address, 1)?;
            match self.read_place(warp, place, 1) {
                0 => break,
                byte => string.push(byte as u8),
            }
            address += 1;
        }
        Ok(string)
    }

    fn assertion(&self, warp: &Warp, fragment: &Fragment, mask: u32, call: &Call) -> Error {
        let lane = lanes(mask).next().unwrap_or(0);
        let text = |index: usize| {
            let address = self.argument(warp, fragment, lane, call, index);
            let string = self.string(warp, lane, address).unwrap_or_default();
            String::from_utf8_lossy(&string).into_owned()
        };
        let line = self.argument(warp, fragment, lane, call, 2) as u32;
        let message = format!("assertion `{}` failed in {}:{line}: {}", text(0), text(1), text(3));
        Error::new("ptx-assert", message).at_lane(lane)
    }

    /// `vprintf(format, arguments)`: the arguments are in memory, each aligned to its size.
    fn printf(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        call: &Call,
    ) -> Result<()> {
        for lane in lanes(mask) {
            let format = self.argument(warp, fragment, lane, call, 0);
            let format = self.string(warp, lane, format).map_err(|fault| fault.at_lane(lane))?;
            let mut next = self.argument(warp, fragment, lane, call, 1);
            let mut value = |machine: &Self, size: u64| -> Result<u64> {
                next = next.next_multiple_of(size);
                let place = machine.place(warp, lane, Space::Generic, next, size)?;
                next += size;
                Ok(machine.read_place(warp, place, size))
            };
            let mut output = vec![];
            let mut rest = &format[..];
            while let Some((byte, after)) = rest.split_first() {
                rest = after;
                if *byte != b'%' {
                    output.push(*byte);
                    continue;
                }
                let end = rest.iter().position(|byte| {
                    byte.is_ascii_alphabetic() && !b"lhzjt".contains(byte) || *byte == b'%'
                });
                let Some(end) = end else { break };
                let (spec, conversion) = (&rest[..end], rest[end]);
                rest = &rest[end + 1..];
                let long = spec.contains(&b'l') || spec.contains(&b'z') || spec.contains(&b'j');
                let size = if long { 8 } else { 4 };
                let text = match conversion {
                    b'%' => "%".to_owned(),
                    b'd' | b'i' => {
                        let value = value(self, size)?;
                        if long { (value as i64).to_string() } else { (value as i32).to_string() }
                    }
                    b'u' => value(self, size)?.to_string(),
                    b'x' => format!("{:x}", value(self, size)?),
                    b'X' => format!("{:X}", value(self, size)?),
                    b'o' => format!("{:o}", value(self, size)?),
                    b'p' => format!("{:#x}", value(self, 8)?),
                    b'c' => char::from(value(self, 4)? as u8).to_string(),
                    b's' => {
                        let address = value(self, 8)?;
                        String::from_utf8_lossy(&self.string(warp, lane, address)?).into_owned()
                    }
                    b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
                        float_text(f64::from_bits(value(self, 8)?), spec, conversion)
                    }
                    _ => String::new(),
                };
                output.extend(padded(text, spec).into_bytes());
            }
            let room = MAX_OUTPUT.saturating_sub(self.output.len());
            self.output.extend(output.into_iter().take(room));
        }
        let registers = call.results.first().map(|(here, _, size)| (*here, *size));
        if let Some((here, size)) = registers {
            for lane in lanes(mask) {
                let at = (fragment.local + here) as usize;
                warp.local[lane][at..at + size as usize].fill(0);
            }
        }
        Ok(())
    }
}

/// The digits after the point, of a conversion such as `%8.3f`.
fn precision(spec: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(spec).ok()?;
    let digits = text.split_once('.')?.1;
    Some(digits.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0).min(64))
}

fn float_text(value: f64, spec: &[u8], conversion: u8) -> String {
    let digits = precision(spec).unwrap_or(6);
    match conversion {
        b'f' | b'F' => format!("{value:.digits$}"),
        b'e' | b'E' => {
            let text = format!("{value:.digits$e}");
            let Some((mantissa, exponent)) = text.split_once('e') else { return text };
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{exponent:0>2}")
        }
        _ => format!("{value}"),
    }
}

fn padded(text: String, spec: &[u8]) -> String {
    let spec = std::str::from_utf8(spec).unwrap_or("");
    let width = spec.split('.').next().unwrap_or("");
    let flags = width.len() - width.trim_start_matches(['-', '+', ' ', '#', '0']).len();
    let (flags, width) = width.split_at(flags);
    let width =
        width.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0_usize).min(256);
    let fill = width.saturating_sub(text.len());
    match () {
        () if flags.contains('-') => text + &" ".repeat(fill),
        () if flags.contains('0') => match text.strip_prefix('-') {
            Some(digits) => format!("-{}{digits}", "0".repeat(fill)),
            None => "0".repeat(fill) + &text,
        },
        () => " ".repeat(fill) + &text,
    }
}
