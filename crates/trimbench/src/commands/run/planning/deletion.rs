//! The control of a deletion.

use bench::Survey;
use bench::plan::{Control, Fstrim, Method};
use bench::scenario;
use storage::FileSystem;

use crate::exit::Error;

/// The control, if one was asked for and can be had.
pub(super) fn control(
    general: &scenario::General,
    method: Option<&Method>,
    survey: &Survey,
) -> Result<Option<Control>, Error> {
    let Some(wanted) = general.control() else {
        return Ok(None);
    };
    let remount = wanted == Control::Nodiscard;
    let remounts = FileSystem::named(&survey.target).remount_switches_discard();
    match method {
        None => Err(Error::Usage(
            "--control compares deletions, and --delete none asks for none".into(),
        )),
        Some(method) if method.event().is_some() => Err(Error::Usage(
            "--control repeats a deletion, and an event happens only once: leave out --control"
                .into(),
        )),
        Some(_) if remount && remounts => Ok(Some(Control::Nodiscard)),
        Some(method) if Control::SecondName.suits(method) => Ok(Some(Control::SecondName)),
        Some(_) if remount => Err(Error::Usage(
            "XFS keeps discard when it is remounted, so --control=remount can't be had here: \
             use --delete unlink, or make a run of its own on the file system mounted nodiscard"
                .into(),
        )),
        Some(method) if !method.how().has_files || *method == Fstrim.into() => Err(Error::Usage(
            "--control unlinks second names of the files, and this deletion has no files that could \
             get one: use --control=remount, or leave it out"
                .into(),
        )),
        // Whether it can be had, the preflight tells.
        Some(_) => Ok(Some(Control::SecondName)),
    }
}
