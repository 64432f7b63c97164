//! Errors in words, as rm writes them.

use std::io;

use rustix::io::Errno;

/// Returns the system's message for an error, without its number.
pub fn of_io(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// Returns the system's message for an error number.
pub fn of(errno: Errno) -> String {
    of_io(&errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_without_their_number() {
        assert_eq!(of(Errno::NOENT), "No such file or directory");
    }
}
