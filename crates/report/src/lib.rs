//! Records and verdicts as text that a person reads.
//!
//! Pure: it is given a [`RunRecord`](record::RunRecord) and a
//! [`Verdict`](judge::Verdict) and returns text. It concludes nothing, so a picture and a
//! table can't disagree with the verdict. It prints nothing, so the same text goes to a
//! terminal, a file or a test.
#![forbid(unsafe_code)]

mod charts;
pub mod compare;
pub mod csv;
mod facts;
mod figures;
pub mod html;
pub mod json;
pub mod markdown;
pub mod rows;
mod series;
pub mod sheet;
pub mod svg;
pub mod terminal;
mod thin;
mod words;

#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
