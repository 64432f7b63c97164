//! Removes what trashes of interrupted deletions hold, by their journals.

use std::ffi::CString;

use super::amounts::Amounts;
use super::close::{Rested, close};
use super::removal::give_back;
use super::remover::{Item, Remover};
use super::survey::{Surveyed, survey};
use super::{Asking, Outcome, Stopped};
use crate::ReclaimError;
use crate::event::{Event, Listener};
use crate::reclaimer::Reclaimers;
use crate::rm::trash::{FILE, Trash};
use units::names::quoted;

/// Removes what the journals of these trashes name.
pub(crate) fn resume_trashes(
    trashes: Vec<Trash>,
    reclaimers: &mut dyn Reclaimers,
    listener: &mut Listener<'_>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut amounts = Amounts::default();
    let mut items = Vec::new();
    for (index, trash) in trashes.iter().enumerate() {
        let entries = trash
            .entries
            .iter()
            .map(|entry| (Some(entry), Trash::name(entry.number)));
        // The half-emptied file first: it has the place where others like it are emptied.
        for (entry, name) in [(None, FILE.to_owned())].into_iter().chain(entries) {
            if !trash.has(&name) {
                if let Some(entry) = entry
                    && trash.has_stayed(entry)
                {
                    let path = quoted(entry.path.to_path());
                    listener(Event::Note(&format_args!(
                        "{path} is there: it was not taken away, or there is another now"
                    )));
                }
                continue;
            }
            let path = match entry {
                Some(entry) => entry.path.to_path(),
                None => trash.path().join("file"),
            };
            // Another process had swapped it before the rename, and it wasn't given back any more.
            if let Some(entry) = entry
                && !trash.is_as_seen(entry.number, entry.directory)
                && let Ok(old) = CString::new(entry.name.as_bytes())
            {
                let failures = give_back(trash, entry.number, &old, &path, listener);
                if failures == 0 {
                    let path = quoted(&path);
                    listener(Event::Note(&format_args!(
                        "{path} isn't what was to be removed: it has its name back"
                    )));
                }
                outcome.failures += failures;
                continue;
            }
            items.push((index, entry, name, path));
        }
    }
    let mut rested = Rested::new();
    let ended = (|| {
        for (index, entry, name, path) in &items {
            let trash = &trashes[*index];
            if !reclaimers.paces(trash.directory()) {
                continue;
            }
            let surveyed = Surveyed {
                parent: trash.directory(),
                name,
                path,
                one_file_system: entry.is_some_and(|entry| entry.one_file_system),
            };
            survey(&surveyed, &mut amounts, Some(&mut *reclaimers), listener)?;
        }
        let mut remover = Remover::new(listener, reclaimers, amounts, Asking::Never);
        let ended = (|| {
            for (index, entry, name, path) in &items {
                let trash = &trashes[*index];
                let item = Item {
                    parent: trash.directory(),
                    name,
                    path,
                    trash: Some(trash),
                    one_file_system: entry.is_some_and(|entry| entry.one_file_system),
                    recursive: entry.is_some_and(|entry| entry.directory),
                };
                let gone = remover.remove(&item)?;
                if let (false, Some(entry)) = (gone, entry)
                    && let Ok(old) = CString::new(entry.name.as_bytes())
                {
                    let put = trash.put_back(entry.number, &old);
                    if let Err(errno) = put {
                        remover.dialogue.note(&format_args!(
                            "what remains of {} stays in {}: {}",
                            quoted(path),
                            quoted(trash.path()),
                            crate::words::of(errno)
                        ));
                    }
                }
            }
            (outcome.summary, rested) = remover.finish()?;
            Ok(())
        })();
        outcome.names = remover.names();
        outcome.spared = remover.spared();
        outcome.failures += remover.failures();
        ended
    })();
    outcome.left = close(trashes, &outcome, &rested, listener);
    outcome.stopped = ended.err().map(|error: ReclaimError| Stopped::new(&error));
    outcome
}
