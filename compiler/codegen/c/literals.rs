//! Numbers as C writes them.
use super::super::layout::Element;

/// A scalar from its bits; `None` for a float that has no literal.
pub fn plain(element: Element, bits: u128) -> Option<String> {
    Some(match element {
        Element::Int(1) => (bits & 1).to_string(),
        Element::Int(128) => {
            format!("((u128)0x{:x}ull << 64 | 0x{:x}ull)", (bits >> 64) as u64, bits as u64)
        }
        Element::Int(width) => unsigned(width, bits),
        Element::Half | Element::Bfloat => format!("0x{:04x}u", bits as u16),
        Element::Pointer if bits == 0 => "NULL".to_owned(),
        Element::Pointer => format!("(void *)0x{:x}ull", bits as u64),
        Element::Float => {
            let value = f32::from_bits(bits as u32);
            value.is_finite().then(|| signed(format!("{value:?}f")))?
        }
        Element::Double => {
            let value = f64::from_bits(bits as u64);
            value.is_finite().then(|| signed(format!("{value:?}")))?
        }
    })
}

/// The bits of a scalar, as an integer of its width.
pub fn bits(element: Element, bits: u128) -> String {
    unsigned(element.bytes() * 8, bits)
}

/// Large numbers are usually bit patterns or negative, rather than counts.
fn unsigned(width: u32, bits: u128) -> String {
    let value = (bits & (u128::MAX >> (128 - width))) as u64;
    let suffix = if width == 64 { "ull" } else { "u" };
    if value >> (width - 1) == 1 {
        format!("0x{value:x}{suffix}")
    } else {
        format!("{value}{suffix}")
    }
}

/// In parentheses if negative, as two adjacent minus signs would be a decrement.
fn signed(text: String) -> String {
    if text.starts_with('-') { format!("({text})") } else { text }
}

/// A C string of bytes without their final zero; `None` if they are not text.
pub fn string(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'"' => text += "\\\"",
            b'\\' => text += "\\\\",
            // Two question marks may begin a trigraph.
            b'?' => text += "\\?",
            b'\n' => text += "\\n",
            b'\t' => text += "\\t",
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => return None,
        }
    }
    Some(format!("\"{text}\""))
}
