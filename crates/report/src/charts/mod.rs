//! The charts, thinned to as many points as an eye or a browser can take. Pages and
//! files have the same points.

mod cost;
mod curves;
mod spans;
mod time;
mod waits;

pub(crate) use cost::{Cost, cost};
pub(crate) use curves::{Curve, Curves, curves, points, response, shares};
pub(crate) use spans::{Kind, Lane, Moment, Spans, spans};
pub(crate) use time::{Chart, Line, Unit, far_below_the_most, over_time};
