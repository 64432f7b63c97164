//! Where the arguments of a removal are, and how each is removed.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::io::Errno;

use super::arguments::{Argument, Parent, Parents};
use super::survey::{is_protected, would_ask};
use super::trash::Trash;
use super::{Asking, Options};
use crate::event::{Event, Listener, Problem};
use crate::volume::LARGE;
use crate::{Result, directory};

/// Why something stays in its place.
pub(super) const ASKED_ABOUT: &str = "it holds what is asked about";

/// How an argument is removed.
pub(super) enum Method {
    /// By one call that frees little.
    Unlink,
    /// Through the trash, under this number.
    Trash(u32),
    /// Where it is, with the reason for the user.
    InPlace(Option<String>),
}

/// An argument, and how it is removed.
pub(super) struct Planned {
    pub(super) argument: Argument,
    pub(super) method: Method,
}

/// The directories of the arguments, and their trashes.
pub(super) struct Places<'a> {
    pub(super) options: &'a Options,
    pub(super) parents: Parents,
    /// By the number of the parent.
    pub(super) trashes: HashMap<usize, Trash>,
}

impl Planned {
    /// Returns whether both are files to be unlinked whole from the same directory.
    pub(super) fn goes_with(&self, other: &Planned) -> bool {
        let file = matches!(self.method, Method::Unlink) && !self.argument.is_directory();
        file && self.argument.parent == other.argument.parent
    }
}

impl<'a> Places<'a> {
    /// None so far.
    pub(super) fn new(options: &'a Options) -> Places<'a> {
        Places {
            options,
            parents: Parents::default(),
            trashes: HashMap::new(),
        }
    }

    /// Returns the arguments that may be removed. Reports the others, and returns how many of them
    /// are failures.
    pub(super) fn look(
        &mut self,
        paths: &[PathBuf],
        listener: &mut Listener<'_>,
    ) -> (Vec<Argument>, u64) {
        // Each directory that arguments are in stays open, and so does its trash.
        linux::files::allow_most_open();
        let mut all = Vec::with_capacity(paths.len());
        let mut failures = 0;
        let mut named = HashSet::new();
        for path in paths {
            let looked = self.parents.look(path, self.options).and_then(|argument| {
                let first = named.insert((argument.parent, argument.name.clone()));
                // The first removes it, unless somebody says no.
                match first || self.asks(&argument) {
                    true => Ok(argument),
                    false => Err(Problem::System(Errno::NOENT)),
                }
            });
            match looked {
                Ok(argument) => all.push(argument),
                Err(Problem::System(Errno::NOENT | Errno::NOTDIR)) if self.options.force => {}
                Err(problem) => {
                    failures += 1;
                    listener(Event::Failed(path, &problem));
                }
            }
        }
        (all, failures)
    }

    /// Returns the directory that an argument is in.
    pub(super) fn parent(&self, argument: &Argument) -> &Parent {
        self.parents.get(argument.parent)
    }

    /// Returns whether one call removes it, and frees little or isn't paced.
    pub(super) fn goes_at_once(&self, argument: &Argument, paces: bool) -> bool {
        match argument.is_directory() {
            true => !self.options.recursive,
            false => !paces || argument.bytes() < LARGE,
        }
    }

    /// Returns whether the user will be asked about something in it, and is to see where that is.
    pub(super) fn is_asked_about(
        &self,
        argument: &Argument,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        let parent = self.parent(argument).fd.as_fd();
        Ok(self.options.asking == Asking::Protected && would_ask(argument, parent, listener)?)
    }

    /// Returns whether the user is asked about this name, whatever is in it.
    fn asks(&self, argument: &Argument) -> bool {
        match self.options.asking {
            Asking::Never => false,
            Asking::Always => true,
            Asking::Protected => is_protected(self.parent(argument).fd.as_fd(), &argument.name),
        }
    }

    /// Returns whether the user is asked about this name, or about one in it.
    pub(super) fn asks_within(&self, planned: &Planned) -> bool {
        let within = matches!(&planned.method, Method::InPlace(Some(why)) if why == ASKED_ABOUT);
        within || self.asks(&planned.argument)
    }

    /// Returns why an argument isn't renamed first, as far as that is known before.
    pub(super) fn reason(&self, argument: &Argument) -> Option<String> {
        if !self.options.trash || self.options.asking == Asking::Always {
            return Some("as asked".to_owned());
        }
        self.parents.elsewhere(argument).map(str::to_owned)
    }

    /// Returns how an argument is removed. `paces`: freeing is paced where it is.
    pub(super) fn method(
        &self,
        argument: &Argument,
        paces: bool,
        listener: &mut Listener<'_>,
    ) -> Result<Method> {
        if self.goes_at_once(argument, paces) {
            return Ok(Method::Unlink);
        }
        if self.is_asked_about(argument, listener)? {
            return Ok(Method::InPlace(Some(ASKED_ABOUT.to_owned())));
        }
        Ok(match self.reason(argument) {
            // A user who is asked about each name sees where it goes.
            Some(_) if self.options.asking == Asking::Always => Method::InPlace(None),
            Some(why) => Method::InPlace(Some(why)),
            None => Method::Trash(0),
        })
    }

    /// Returns whether an argument still has its name.
    pub(super) fn is_there(&self, argument: &Argument) -> bool {
        directory::has(&self.parent(argument).fd, &*argument.name)
    }

    /// Returns where an argument is now: the directory, and its name there.
    pub(super) fn of(&self, planned: &Planned) -> (BorrowedFd<'_>, CString) {
        let argument = &planned.argument;
        match (&planned.method, self.trashes.get(&argument.parent)) {
            (Method::Trash(number), Some(trash)) => (trash.directory(), Trash::name(*number)),
            _ => (self.parent(argument).fd.as_fd(), argument.name.clone()),
        }
    }

    /// Renames every argument that is in a trash back to its old name.
    pub(super) fn put_all_back(&self, all: &[Planned]) {
        for Planned { argument, method } in all {
            if let (Method::Trash(number), Some(trash)) =
                (method, self.trashes.get(&argument.parent))
            {
                let _ = trash.put_back(*number, &argument.name);
            }
        }
    }
}
