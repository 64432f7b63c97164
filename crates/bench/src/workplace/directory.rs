//! A directory of the run's own on a mounted file system.

use std::fs::File;
use std::path::PathBuf;

use linux::files::Caching;
use linux::owner::{Folder, Name, WorkDir};
use load::DeletionSpec;
use load::deleter::Files;
use record::Part;

use super::victims::Victims;
use super::{Item, ToFill, WorkArea, allow_open_files};
use crate::error::BenchError;
use crate::plan::{Deletion, Fstrim, Plan, Swap, Unlink, Work};
use crate::survey::Survey;

#[derive(Debug)]
pub(crate) struct Directory {
    work: WorkDir,
    victims: Victims,
}

impl Directory {
    /// Makes it, with whatever is empty at first: an appender's file, and the
    /// folders of those who name their files themselves.
    pub(super) fn make(plan: &Plan, survey: &Survey) -> Result<Directory, BenchError> {
        allow_open_files(plan)?;
        let work = WorkDir::create(survey.place.path())?;
        if plan.writes_at_most().is_some() {
            // Writes that go to a new place each time would be slower or faster by where that is.
            work.overwrite_in_place();
        }
        for (actor, number) in plan.actors.iter().zip(1..) {
            match &actor.work {
                Work::Task(_) => drop(work.create_folder(Folder::Actor(number))?),
                work_of if work_of.append_bytes().is_some() => {
                    work.create_file(Name::Append(number), Caching::Buffered)?;
                }
                Work::Blocks(_) => {}
            }
        }
        if plan
            .deletion
            .as_ref()
            .is_some_and(|d| d.method.how().has_folder)
        {
            work.create_folder(Folder::Deleter)?;
        }
        Ok(Directory {
            work,
            victims: Victims::of(plan),
        })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.work.path().to_path_buf()
    }

    pub(super) fn foreground_path(&self) -> PathBuf {
        self.work.path_of(Name::Foreground)
    }

    /// Creates a file, still empty.
    pub(super) fn create(&self, item: Item) -> Result<(File, PathBuf), BenchError> {
        Ok((item.create(&self.work)?, item.path(&self.work)))
    }

    pub(super) fn work_area(&self, plan: &Plan, actor: usize) -> WorkArea {
        let work = &plan.actors[actor].work;
        let number = u32::try_from(actor + 1).unwrap_or(u32::MAX);
        match work {
            Work::Task(_) => WorkArea::Folder(self.work.path_of_folder(Folder::Actor(number))),
            work if work.shares_file() => WorkArea::Bytes {
                path: self.foreground_path(),
                len: plan.file.size_bytes,
            },
            work => work
                .append_bytes()
                .map_or(WorkArea::Nothing, |len| WorkArea::Bytes {
                    path: self.work.path_of(Name::Append(number)),
                    len,
                }),
        }
    }

    pub(super) fn to_fill(&self, plan: &Plan) -> Vec<ToFill> {
        let mut wanted = Vec::new();
        if plan.needs_file() {
            wanted.push(ToFill {
                item: Some(Item::Plain(Name::Foreground)),
                len: plan.file.size_bytes,
                extent_bytes: None,
            });
        }
        let Some(deletion) = &plan.deletion else {
            return wanted;
        };
        let to_be_deleted = self.victims.to_make().map(|item| ToFill {
            item: Some(item),
            len: deletion.file_bytes(),
            extent_bytes: deletion.extent_bytes,
        });
        let replacements = self.victims.replacements().map(|item| ToFill {
            item: Some(item),
            len: Swap::REPLACEMENT_BYTES,
            extent_bytes: None,
        });
        wanted.extend(to_be_deleted.chain(replacements));
        wanted
    }

    pub(super) fn filled(&self) -> Result<(), BenchError> {
        for (first, second) in self.victims.second_names() {
            self.work.link(first, second)?;
        }
        Ok(())
    }

    pub(super) fn deletion(&self, plan: &Plan, deletion: &Deletion, part: Part) -> DeletionSpec {
        let path = |item: &Item| item.path(&self.work);
        let set = self.victims.of_part(part);
        DeletionSpec {
            method: deletion.method.clone(),
            files: Files {
                paths: set.victims.iter().map(path).collect(),
                replacements: set.replacements.iter().map(path).collect(),
                folder: self.work.path_of_folder(Folder::Deleter),
                dir: self.path(),
                device: None,
                size_bytes: deletion.size_bytes,
                file_bytes: deletion.file_bytes(),
                seed: plan.seed,
            },
        }
    }

    pub(super) fn unlinked_before(&self, plan: &Plan) -> Option<DeletionSpec> {
        let deletion = plan.deletion.as_ref()?;
        (deletion.method == Fstrim.into()).then(|| DeletionSpec {
            method: Unlink { parallel: 1 }.into(),
            ..self.deletion(plan, deletion, Part::Main)
        })
    }

    pub(super) fn clear_up(&self, plan: &Plan) -> Result<(), BenchError> {
        if let Some(deletion) = &plan.deletion
            && deletion.method.is_continuous()
        {
            self.work.empty_folder(Folder::Deleter)?;
        }
        Ok(())
    }

    pub(super) fn leave(self) -> Result<(), BenchError> {
        Ok(self.work.remove()?)
    }
}
