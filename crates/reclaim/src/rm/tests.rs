use std::fs;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::path::Path;

use super::*;
use crate::Watch;
use crate::free::Free;

/// Paces nothing.
struct AtOnce;

impl Freers for AtOnce {
    fn paces(&mut self, _: BorrowedFd<'_>) -> bool {
        false
    }

    fn unpaced(&mut self, _: BorrowedFd<'_>) -> Option<String> {
        None
    }

    fn freer(
        &mut self,
        _: BorrowedFd<'_>,
        _: Amount,
    ) -> Result<(Box<dyn Free>, Vec<String>), ReclaimError> {
        Err(ReclaimError::Interrupted)
    }
}

/// Somebody who wants it to end, and says so only once.
#[derive(Default)]
struct Enough {
    said: bool,
}

impl Watch for Enough {
    fn tick(&mut self, _: &Progress) -> ControlFlow<()> {
        match std::mem::replace(&mut self.said, true) {
            false => ControlFlow::Break(()),
            true => ControlFlow::Continue(()),
        }
    }
}

impl Talk for Enough {
    fn removed(&mut self, _: &Path, _: bool) {}
    fn failed(&mut self, _: &Path, _: &Problem) {}
    fn note(&mut self, _: &str) {}
    fn ask(&mut self, _: &Path, _: What, _: bool) -> bool {
        true
    }
}

const OPTIONS: Options = Options {
    recursive: true,
    force: false,
    empty_directories: false,
    one_file_system: false,
    preserve_root: PreserveRoot::Yes,
    asking: Asking::Protected,
    trash: true,
};

#[test]
fn whoever_stops_it_while_it_looks_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("t");
    fs::create_dir(&tree).unwrap();
    for number in 0..3 {
        fs::write(tree.join(number.to_string()), "").unwrap();
    }
    let outcome = remove(
        std::slice::from_ref(&tree),
        &OPTIONS,
        &mut AtOnce,
        &mut Enough::default(),
    );
    assert!(outcome.stopped.is_some_and(|stopped| stopped.interrupted));
    assert_eq!((outcome.names, outcome.left.len()), (0, 0));
    assert_eq!(fs::read_dir(&tree).unwrap().count(), 3);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}
