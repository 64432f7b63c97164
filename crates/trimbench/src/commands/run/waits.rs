//! Joins the watching of threads (`--why`) to a run.

use bench::ReadyRun;
use diagnose::why::beside::RunObserver;
use linux::SysRoot;
use record::{DeviceInfo, RunRecord};

/// Has the run's own threads watched beside it, and its record say in what they waited.
pub(super) fn watch(run: &mut ReadyRun<'_>, devices: &[DeviceInfo]) {
    let devices: Vec<String> = devices.iter().map(|one| one.name.clone()).collect();
    let beside = RunObserver::begin(SysRoot::host(), &devices, run.workers.clone());
    let explain = move |record: &RunRecord, zero_s| beside.finish(record, zero_s);
    run.explain = Some(Box::new(explain));
}
