//! How many files may be open at once.

use linux::files::allow_most_open;

use crate::error::BenchError;
use crate::plan::{Method, Plan, Work};

/// Files that a run has open in any case, and some to spare.
const OTHER_FILES: u64 = 256;
/// Files that each thread of a task may have open: the one it writes, its
/// directory, and what it has just replaced.
const OF_A_TASK: u64 = 4;

/// Allows as many open files as the plan needs.
///
/// # Errors
/// When the system doesn't.
pub(crate) fn allow_open_files(plan: &Plan) -> Result<(), BenchError> {
    let needed = needed(plan);
    let limit = match allow_most_open() {
        Some(limit) if limit < needed => limit,
        _ => return Ok(()),
    };
    Err(BenchError::Plan(if spacers(plan) > 0 {
        format!(
            "deletion.extent-size needs {needed} open files for that many --files, and the limit is \
             {limit}: lower --files or raise the limit (ulimit -n)"
        )
    } else {
        format!(
            "the run needs {needed} open files, and the limit is {limit}: raise the limit \
             (ulimit -n), or lower the depth of tasks that have files of their own"
        )
    }))
}

fn needed(plan: &Plan) -> u64 {
    let of_actors = plan.actors.iter().map(|actor| match actor.work {
        Work::Task(_) => u64::from(actor.arrival.depth()) * OF_A_TASK,
        Work::Blocks(_) => 1,
    });
    let of_deletion = match plan.deletion.as_ref().map(|d| &d.method) {
        Some(Method::Spill(spill)) => u64::from(spill.parallel),
        _ => 0,
    };
    OTHER_FILES + spacers(plan) + of_actors.sum::<u64>() + of_deletion
}

/// Each fragmented file has another beside it open until the end.
fn spacers(plan: &Plan) -> u64 {
    let Some(deletion) = plan.deletion.as_ref().filter(|d| d.extent_bytes.is_some()) else {
        return 0;
    };
    u64::from(deletion.files * plan.control.deletions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Control, LoopKind, TaskSpec, Unlink, example, example_deletion};

    #[test]
    fn what_keeps_files_open_counts() {
        let mut plan = example();
        let few = needed(&plan);
        let deletion = example_deletion(Unlink { parallel: 1 });
        plan.deletion = Some(deletion.clone());
        assert_eq!(needed(&plan), few, "unlinking opens nothing");
        plan.deletion.as_mut().unwrap().extent_bytes = Some(4096);
        assert_eq!(needed(&plan), few + 4);
        plan.control = Control::Nodiscard;
        assert_eq!(needed(&plan), few + 8);
        plan.actors[0].work = Work::Task(TaskSpec::of(load::task::KINDS[0]));
        plan.actors[0].arrival = LoopKind::Closed { depth: 100 };
        assert!(needed(&plan) >= few + 8 + 100);
    }
}
