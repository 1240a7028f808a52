//! Names in a file and names in the IR.
use irc_ark_format::model::OpKind;

/// The op name of a kind, without its dialect: `ReduceSum` is `reduce_sum`.
///
/// `Tensor` is `view`: `ark.tensor` declares a tensor that no op produces.
pub fn mnemonic(kind: OpKind) -> String {
    match kind {
        OpKind::Tensor => "view".to_owned(),
        kind => attr_name(kind.name()),
    }
}

/// The kind of a full op name such as `ark.reduce_sum`.
pub fn kind_of(op_name: &str) -> Option<OpKind> {
    let name = op_name.strip_prefix("ark.")?;
    OpKind::ALL.iter().copied().find(|kind| is_name_of(*kind, name))
}

/// Whether `name` is the mnemonic of `kind`, without building the mnemonic.
fn is_name_of(kind: OpKind, name: &str) -> bool {
    if kind == OpKind::Tensor {
        return name == "view";
    }
    let letters = |text: &str| text.bytes().filter(|byte| *byte != b'_').count();
    letters(name) == kind.name().len() && mnemonic(kind) == name
}

/// A file's key in snake case: `NPeers` is `n_peers`.
pub fn attr_name(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    let mut name = String::with_capacity(key.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        let next_is_small = letters.get(index + 1).is_some_and(|next| next.is_ascii_lowercase());
        let after_small = index > 0 && letters[index - 1].is_ascii_lowercase();
        if index > 0 && letter.is_ascii_uppercase() && (next_is_small || after_small) {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_name() {
        for kind in OpKind::ALL {
            assert_eq!(kind_of(&format!("ark.{}", mnemonic(*kind))), Some(*kind));
        }
        assert_eq!(kind_of("ark.tensor"), None);
    }

    #[test]
    fn keys_become_snake_case() {
        assert_eq!(attr_name("NPeers"), "n_peers");
        assert_eq!(attr_name("TransposeInput"), "transpose_input");
        assert_eq!(mnemonic(OpKind::RecvReduceSendPacket), "recv_reduce_send_packet");
    }
}
