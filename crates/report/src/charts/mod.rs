//! The charts, thinned to as many points as an eye or a browser can take. Pages and
//! files have the same points.

mod curves;
mod spans;
mod time;
mod waits;

pub(crate) use curves::{Curves, curves};
pub(crate) use spans::{Kind, Spans, events, spans};
pub(crate) use time::{Chart, Unit, over_time};
