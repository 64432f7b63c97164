//! Turns the output of other programs into a record or a part of one.
//!
//! A recording is worth as much as its reader: fio's windows that end at the
//! logged time, its gaps that are stalls, iostat's columns that moved with
//! every version. This crate knows them, so that nobody else must.
//!
//! - [`fio`]: its logs and its JSON -> series that fit into a record's intervals;
//! - [`iostat`]: extended reports of any version -> a record that can be judged;
//! - [`together()`]: one record of both;
//! - [`sniff()`]: which of these a text is, by its content.
//!
//! It is pure: text comes in through any `BufRead`, and no file is opened here.

#![forbid(unsafe_code)]

mod finer;
pub mod fio;
mod foreign;
pub mod iostat;
mod lines;
mod options;
mod parts;
mod prefix;
mod sniff;
mod together;

pub use foreign::Foreign;
pub use options::{First, Moment, Options, Unfit};
pub use prefix::plain;
pub use sniff::{ENOUGH, Kind, sniff};
pub use together::together;
