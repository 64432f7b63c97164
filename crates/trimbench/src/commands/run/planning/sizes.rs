//! Sizes that are safe at the place.

use bench::plan::{ActorSpec, Control, Method, Place, Swap};
use bench::scenario::Scenario;
use bench::sizes::{self, Fragments, Sizes, Wanted};
use bench::{BenchError, Survey};
use record::units::GIB;

use crate::exit::Error;

/// The most bytes that a continuous deletion has at once by default. It is written again
/// and again.
const CONTINUOUS: u64 = 4 * GIB;

/// All that decides.
pub(super) struct Choice<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) actors: &'a [ActorSpec],
    /// Whether anybody works on the shared file.
    pub(super) needs_file: bool,
    pub(super) reuse: bool,
    /// The bytes of fio's files.
    pub(super) fio_bytes: u64,
    /// The way to delete, as far as it is known before the size.
    pub(super) method: Option<&'a Method>,
    pub(super) control: Option<Control>,
    pub(super) survey: &'a Survey,
}

/// Chooses what wasn't asked for and checks that all fits.
pub(super) fn choose(choice: &Choice<'_>) -> Result<Sizes, Error> {
    let survey = choice.survey;
    let asked = choice.scenario.foreground.size_bytes;
    let kept = survey.kept_foreground.filter(|_| choice.reuse);
    let kept = kept.filter(|&kept| asked.is_none_or(|asked| kept >= asked));
    let foreground = if choice.needs_file { asked } else { Some(0) };
    let event = choice.method.and_then(Method::event);
    let deletion = match choice.method {
        None => Some(0),
        Some(_) if event.is_some() => Some(0),
        Some(_) => choice.scenario.deletion.size_bytes,
    };
    let chosen = match &survey.place {
        Place::Directory(path) => {
            let wanted = Wanted {
                deletion_bytes: deletion,
                deletion_copies: choice
                    .method
                    .map_or(1, |method| sizes::copies(method, choice.control)),
                foreground_bytes: if kept.is_some() { Some(0) } else { foreground },
                other_bytes: other_bytes(choice),
                fragments: fragments(choice)?,
                into_reserve: event.is_some(),
            };
            sizes::choose(&survey.space, wanted).map_err(|source| {
                let path = path.clone();
                limited(survey, BenchError::Space { path, source })
            })?
        }
        Place::Device { path, .. } => {
            sizes::choose_on_device(survey.space.size_bytes, deletion, foreground).map_err(
                |source| {
                    let (path, why) = (path.clone(), source.to_string());
                    limited(survey, BenchError::Place { path, why })
                },
            )?
        }
    };
    let continuous = choice.method.is_some_and(Method::is_continuous) && deletion.is_none();
    Ok(Sizes {
        foreground_bytes: match kept {
            Some(kept) if choice.needs_file => asked.unwrap_or(kept),
            _ => chosen.foreground_bytes,
        },
        deletion_bytes: match continuous {
            true => chosen.deletion_bytes.min(CONTINUOUS),
            false => chosen.deletion_bytes,
        },
    })
}

/// Adds to a refusal the reason why less space is left than the file system reports.
fn limited(survey: &Survey, refused: BenchError) -> Error {
    match &survey.limited {
        Some(why) => Error::Usage(format!("{refused}; {why}")),
        None => refused.into(),
    }
}

/// The bytes of the files of actors and fio, and of the replacements of swapped tables.
fn other_bytes(choice: &Choice<'_>) -> u64 {
    let own = choice.actors.iter().map(ActorSpec::own_bytes);
    let own = own.fold(choice.fio_bytes, u64::saturating_add);
    match choice.method {
        Some(Method::Swap(_)) => {
            let files = u64::from(choice.scenario.deletion.files_made());
            own.saturating_add(files * Swap::REPLACEMENT_BYTES)
        }
        _ => own,
    }
}

fn fragments(choice: &Choice<'_>) -> Result<Option<Fragments>, Error> {
    let deletion = &choice.scenario.deletion;
    let Some(extent) = deletion.extent_bytes else {
        return Ok(None);
    };
    let unit = choice.survey.space.block_bytes.max(4096);
    if extent == 0 || !extent.is_multiple_of(unit) {
        return Err(Error::Usage(format!(
            "deletion.extent-size {extent}: extents are whole blocks, so give a multiple of {unit} bytes"
        )));
    }
    let files = deletion.files_made();
    Ok(Some(Fragments::on(choice.survey, files, extent)))
}
