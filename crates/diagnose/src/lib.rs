//! Explains what a machine does about TRIM: from its files and the drives' own pages.
//!
//! | module | question it answers |
//! |---|---|
//! | [`forecast`] | which discards will a deletion or a trim send? |
//! | [`inspect`] | does TRIM arrive, what stops it, and what will it cost? |
//! | [`watch`] | what do devices do now, who sends discards, and who is blocked? |
//! | [`why`] | who waits, for whom, and what has TRIM to do with it? |

#![forbid(unsafe_code)]

pub mod forecast;
pub mod inspect;
pub mod watch;
pub mod why;
