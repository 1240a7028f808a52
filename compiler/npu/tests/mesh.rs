//! Programs of several cores.

use crate::support::{corpus, diagnostics, open, plan};
use irc_npu::{Engine, Op};

/// Schedules of dialects B and C, and the code of the diagnostic if there is no program.
const PUBLISHED: [(&str, Option<&str>); 12] = [
    ("multi_core/gir_resnet_b1_2x2.json", None),
    ("multi_core/gir_goog_b1_4x4.json.gz", None),
    ("multi_core/set_darknet_b1_4x4_r10_SET_IR.json.gz", None),
    ("address_allocated/ires_block_b1_2x2_LP-SA_allocated.json.gz", None),
    ("address_allocated/ires_block_b1_2x2_LP-SA_raw.json.gz", None),
    ("multi_core/gir_bert_b1_2x2.json", None),
    ("multi_core/gir_gpt_prefill_b1_2x2.json", None),
    ("multi_core/set_bert_b1_4x4_r10_SET_IR.json.gz", None),
    ("multi_core/set_gnmt_b1_2x2_r10_SET_IR.json", None),
    ("multi_core/mb1_p2p_ir.json", Some("emit-windows")),
    ("multi_core/mb2_dram_only_ir.json", Some("emit-windows")),
    ("multi_core/test_ir.json", Some("emit-windows")),
];

#[test]
fn published_schedules_of_several_cores_become_right_programs() {
    let Some(folder) = corpus() else { return };
    for (path, rejected) in PUBLISHED {
        let schedule = plan(&open(&folder.join(path)));
        let program = match (irc_npu_emit::emit(&schedule, None), rejected) {
            (Ok(program), None) => program,
            (Err(found), Some(code)) => {
                println!("{path}: {:?}: {}", found[0].diagnostic.path, found[0].diagnostic.message);
                assert_eq!(found[0].diagnostic.code, code, "{path}");
                continue;
            }
            (Ok(_), Some(code)) => panic!("{path}: expected {code}"),
            (Err(found), None) => panic!("{path}: {found:#?}"),
        };
        let sends = |op: &Op| op.engine() == Engine::So && !op.is_config();
        let code = program.cores.iter().flat_map(|core| &core.code);
        let sent = code.filter(|instruction| sends(&instruction.op)).count();
        println!(
            "{path}: {} cores, {} instructions, {sent} sent",
            program.cores.len(),
            program.len()
        );
        let found = diagnostics(&program);
        let other = found.iter().find(|diagnostic| diagnostic.code != "npu-vector-batch");
        assert_eq!(other, None, "{path}: {} diagnostics", found.len());
    }
}
