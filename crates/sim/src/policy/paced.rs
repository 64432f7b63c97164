//! Asks `pace` what may be freed now, as `reclaim` does.

use std::time::Duration;

use pace::{Advice, Discards, Feedback, Flushes, Goal, Io, Others, Pacer, Space, Why, Work};

use ssd::Time;

use super::{Desk, Order};

/// A pacer and the canary's reads for it.
#[derive(Debug)]
pub(super) struct Paced {
    pacer: Pacer,
    /// Bytes freed (or discarded) so far, by its advice.
    pub(super) freed: u64,
    canary: Vec<pace::Canary>,
    /// When it began, and the reads before that.
    began: Time,
    reads_before: u64,
    is_warm: bool,
}

/// The next step of paced work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Ask again after this pause.
    Sleep(Duration),
    /// A commit was ordered: wait for it.
    Commit,
    /// Free so many bytes at most.
    Free {
        allow: u64,
        /// At most so many of an extent at once.
        part: u64,
    },
}

/// The foreground is observed for so long before anything is freed, and for the longer time if it
/// reads, as `reclaim` does.
const WARM_UP: Duration = Duration::from_millis(50);
const BASELINE: Duration = Duration::from_millis(300);
const FOREGROUND_READS: u64 = 10;

impl Paced {
    /// A pacer for work that can't be refused any more; `None` if the goal is none.
    pub(super) fn new(goal: Goal, work: &Work, desk: &Desk<'_>) -> Option<Paced> {
        let mut pacer = Pacer::new(pace::Policy::Adaptive(goal), work, None).ok()?;
        pacer.commit_to_goal();
        Some(Paced {
            pacer,
            freed: 0,
            canary: Vec::new(),
            began: desk.now,
            reads_before: desk.seen.reads.ops,
            is_warm: false,
        })
    }

    /// The next step now, with `left` bytes still to be freed. When the work is done, `slot`
    /// becomes empty; without a pacer everything may be freed.
    pub(super) fn turn(slot: &mut Option<Paced>, desk: &mut Desk<'_>, left: u64) -> Turn {
        const ALL: Turn = Turn::Free {
            allow: u64::MAX,
            part: u64::MAX,
        };
        let Some(paced) = slot else {
            return ALL;
        };
        if let Some(pause) = paced.warms_up(desk) {
            return Turn::Sleep(pause);
        }
        let advice = paced.ask(desk, left);
        match advice.why {
            Why::Done | Why::Refused => {
                *slot = None;
                desk.order(Order::Canary(false));
                ALL
            }
            _ if advice.commit => {
                desk.order(Order::Commit);
                Turn::Commit
            }
            _ if advice.allow > 0 && left > 0 => Turn::Free {
                allow: advice.allow,
                part: advice.piece,
            },
            _ => Turn::Sleep(advice.ask_again.max(Duration::from_micros(100))),
        }
    }

    /// How much longer the foreground is only observed; `None`: it was.
    fn warms_up(&mut self, desk: &Desk<'_>) -> Option<Duration> {
        let elapsed = desk.now - self.began;
        let is_alone = desk.seen.reads.ops - self.reads_before < FOREGROUND_READS;
        self.is_warm |= elapsed >= BASELINE || elapsed >= WARM_UP && is_alone;
        let until = match elapsed < WARM_UP {
            true => WARM_UP,
            false => BASELINE,
        };
        (!self.is_warm).then(|| until - elapsed)
    }

    /// Keeps what the canary read, for the next question.
    pub(super) fn look(slot: &mut Option<Paced>, desk: &Desk<'_>) {
        if let Some(paced) = slot {
            paced.canary.extend_from_slice(desk.seen.canary);
        }
    }

    /// Asks for the next step; `left` bytes are still to be freed.
    fn ask(&mut self, desk: &Desk<'_>, left: u64) -> Advice {
        let seen = &desk.seen;
        // The kernel's statistics are in milliseconds.
        let in_ms = |busy: Duration| Duration::from_millis(busy.as_millis() as u64);
        let advice = self.pacer.advise(&Feedback {
            now: desk.now,
            freed: self.freed,
            left: Some(left),
            commits: seen.commits,
            own_commits: seen.commits,
            discards: Discards {
                commands: seen.discards.ops,
                bytes: seen.discards.bytes,
                busy: Some(in_ms(seen.discards.busy)),
            },
            flushes: Flushes {
                commands: seen.flushes.ops,
                busy: in_ms(seen.flushes.busy),
            },
            canary: &self.canary,
            others: Some(Others {
                reads: Io {
                    ops: seen.reads.ops,
                    wait: seen.reads.busy,
                },
                writes: seen.writes,
            }),
            space: Some(Space {
                free: desk.volume.free_bytes(),
                size: desk.volume.bytes(),
            }),
            ..Feedback::default()
        });
        self.canary.clear();
        advice
    }
}
