//! Removes a file of the test as `trimbench rm` does.

use std::io;
use std::path::Path;

use pace::Policy;
use reclaim::throttle::{CanaryFile, Pacing};
use reclaim::{Asking, Event, Options, PreserveRoot, Reply, Volumes};

const OPTIONS: Options = Options {
    recursive: false,
    force: false,
    empty_directories: false,
    one_file_system: false,
    preserve_root: PreserveRoot::Yes,
    asking: Asking::Never,
    trash: true,
};

/// Removes a file in pieces, as fast as the file system frees them: the test wants many discards,
/// and no foreground waits.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let paths = [path.to_path_buf()];
    let mut volumes = Volumes::new(Pacing {
        skip_commits: true,
        canary: CanaryFile::Without,
        ..Pacing::new(Policy::Fixed {
            chunk: 16 << 20,
            sleep: std::time::Duration::ZERO,
        })
    });
    let mut kept = None;
    let mut quiet = |event: Event<'_>| {
        if let Event::Failed(path, problem) = event {
            kept = Some(problem.message(path));
        }
        Reply::Yes
    };
    let outcome = reclaim::remove(&paths, &OPTIONS, &mut volumes, &mut quiet);
    match (outcome.failures, outcome.stopped, kept) {
        (0, None, _) => Ok(()),
        (_, Some(stopped), _) => Err(io::Error::other(stopped.why)),
        (_, None, why) => Err(io::Error::other(why.unwrap_or_default())),
    }
}
