//! Joins the watching of threads (`--why`) to a run.

use std::collections::HashMap;

use bench::Claimed;
use bench::roster::{Member, Roster};
use diagnose::why::beside::{Began, Beside, Cast, Joined, Who};
use linux::SysRoot;
use record::Head;

/// Has the run's own threads watched beside it, and its record say in what they waited.
pub(super) fn watched<'a>(claimed: Claimed<'a>, head: &Head) -> Claimed<'a> {
    let devices: Vec<String> = head.devices.iter().map(|one| one.name.clone()).collect();
    let cast = Members::of(claimed.roster());
    let beside = Beside::begin(SysRoot::host(), &devices, Box::new(cast));
    claimed.explained_by(Box::new(move |record, zero_s| {
        beside.finish(record, zero_s)
    }))
}

/// The roster of the run, from which only what is new is read.
struct Members {
    roster: Roster,
    /// Each with how many of its threads and programs are known.
    known: Vec<(Member, usize, usize)>,
    /// The member that each thread is of.
    of_thread: HashMap<u32, usize>,
    phases: usize,
}

impl Members {
    fn of(roster: Roster) -> Members {
        Members {
            roster,
            known: Vec::new(),
            of_thread: HashMap::new(),
            phases: 0,
        }
    }
}

impl Cast for Members {
    fn joined(&mut self) -> Vec<Joined> {
        let fresh = self.roster.members(self.known.len());
        self.known
            .extend(fresh.into_iter().map(|member| (member, 0, 0)));
        let mut joined = Vec::new();
        for (index, (member, threads, programs)) in self.known.iter_mut().enumerate() {
            let fresh = member.crew.threads(*threads);
            *threads += fresh.len();
            self.of_thread
                .extend(fresh.iter().map(|&thread| (thread, index)));
            let fresh = fresh.into_iter().map(Who::Thread);
            let started = member.crew.programs(*programs);
            *programs += started.len();
            joined.extend(
                fresh
                    .chain(started.into_iter().map(Who::Program))
                    .map(|who| Joined {
                        actor: member.name.clone(),
                        who,
                    }),
            );
        }
        joined
    }

    fn has_idle_queue(&self, thread: u32) -> bool {
        let member = self.of_thread.get(&thread);
        let member = member.and_then(|&index| self.known.get(index));
        member.is_some_and(|(member, ..)| member.crew.has_idle_queue())
    }

    fn began(&mut self) -> Vec<Began> {
        let fresh = self.roster.phases(self.phases);
        self.phases += fresh.len();
        let began = |phase: bench::roster::Began| Began {
            monotonic_s: phase.monotonic_s,
            name: phase.name,
            part: phase.part,
        };
        fresh.into_iter().map(began).collect()
    }
}
