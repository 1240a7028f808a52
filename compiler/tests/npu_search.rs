//! The search of schedules for an NPU, as part of a session.
use irc::{ImportOptions, NpuOptions, Session};
use std::sync::{Arc, Mutex};

#[test]
fn a_search_reports_its_progress() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../lit_tests/npu/inputs/cnn.pbtxt");
    let text = std::fs::read(file).expect("a file");
    let session = Session::new();
    let model = session.import_bytes("cnn.pbtxt", text.into(), &ImportOptions::default());
    let model = model.expect("a model");
    let reports = Arc::new(Mutex::new(vec![]));
    let own = Arc::clone(&reports);
    model.observe_search(move |progress| own.lock().expect("no panic").push(progress));
    let target: irc::npu::Target = "npu:mesh=2x2".parse().expect("a target");
    model.npu(&NpuOptions::from(target)).expect("a schedule");
    let reports = reports.lock().expect("no panic");
    let last = reports.last().expect("a report");
    assert!(last.best.is_finite() && last.evaluations > 0, "{last:?}");
    assert!(reports.is_sorted_by_key(|one| one.evaluations), "{reports:?}");
}
