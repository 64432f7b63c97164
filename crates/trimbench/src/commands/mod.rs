//! The commands, a folder each: arguments, call, output.

pub(crate) mod blkdiscard;
pub(crate) mod compare;
pub(crate) mod fit;
pub(crate) mod fstrim;
pub(crate) mod guard;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod lab;
pub(crate) mod report;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod scenarios;
pub(crate) mod sim;
pub(crate) mod suite;
pub(crate) mod table;
pub(crate) mod tune;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod why;
