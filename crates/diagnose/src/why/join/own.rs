//! The calls of programs that sent discards themselves and waited for them. Their events show
//! exactly how long, whether or not a look met them.

use super::super::frames::Reason;
use super::super::observe::Observation;
use super::super::spans::Spans;
use super::super::trace::is_worker;
use super::Subject;

/// One thread's discards within its own calls.
pub(super) struct OwnCalls {
    /// Its process; the thread where that was never looked at.
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// The name of its process.
    pub(super) name: String,
    /// From the queue to their end, within the observation.
    pub(super) spans: Spans,
}

/// The calls of the subject's threads, and of the servers that were watched for it.
pub(super) fn calls(observation: &Observation, subject: &Subject) -> Vec<OwnCalls> {
    let trace = &observation.trace;
    let mut all: Vec<OwnCalls> = Vec::new();
    for sender in &trace.senders {
        let tid = sender.pid;
        let waits = is_within_call(sender.reason) && !is_worker(&sender.comm);
        if !waits || all.iter().any(|one| one.tid == tid) {
            continue;
        }
        let mut looked = observation.sampled.threads.iter();
        let looked = looked.find(|one| one.thread.tid == tid);
        let belongs = match (looked, subject) {
            (Some(looked), _) => !(looked.kernel && *subject == Subject::All),
            (None, Subject::All) => !is_btrfs_own(&sender.comm),
            (None, Subject::Process(pid) | Subject::Family(pid)) => *pid == tid,
            (None, Subject::Group(_)) => false,
        };
        let first = looked.and_then(|looked| {
            let mut all = observation.sampled.threads.iter();
            all.find(|one| one.thread.tid == looked.thread.pid)
        });
        let spans = trace.own.get(&tid);
        let spans = spans.map(|spans| spans.within(observation.from_s, observation.to_s));
        if let Some(spans) = spans.filter(|spans| belongs && spans.count() > 0) {
            all.push(OwnCalls {
                pid: looked.map_or(tid, |one| one.thread.pid),
                tid,
                name: first.map_or(&sender.comm, |one| &one.comm).clone(),
                spans,
            });
        }
    }
    all
}

/// Whether a thread has the name of one of btrfs' own, which commit.
fn is_btrfs_own(comm: &str) -> bool {
    comm.starts_with("btrfs-cleaner") || comm.starts_with("btrfs-transacti")
}

/// Whether the call that sends these waits for them.
fn is_within_call(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ExtCall | Reason::Fat | Reason::Trim | Reason::Device | Reason::BtrfsCommit
    )
}
