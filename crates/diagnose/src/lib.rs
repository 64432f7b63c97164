//! Explains what a machine does about TRIM: from its files and the drives' own pages.
//!
//! | module | question it answers |
//! |---|---|
//! | [`forecast`] | which discards will a deletion or a trim send? |
//! | [`inspect`] | does TRIM arrive, what stops it, and what will it cost? |

#![forbid(unsafe_code)]

pub mod forecast;
pub mod inspect;
