//! Joins the watching of threads (`--why`) to a run.

use bench::ReadyRun;
use diagnose::why::beside::RunObserver;
use linux::SysRoot;
use record::DeviceInfo;

/// Has the run's own threads watched beside it, and its record say in what they waited.
pub(super) fn watched<'a>(claimed: ReadyRun<'a>, devices: &[DeviceInfo]) -> ReadyRun<'a> {
    let devices: Vec<String> = devices.iter().map(|one| one.name.clone()).collect();
    let beside = RunObserver::begin(SysRoot::host(), &devices, claimed.workers());
    claimed.explained_by(Box::new(move |record, zero_s| {
        beside.finish(record, zero_s)
    }))
}
