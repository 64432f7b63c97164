//! Intervals in memory: one column per figure, so that eight hours at 100 ms
//! with four actors take some fifty megabytes.

use std::collections::BTreeMap;

use super::{ActorInterval, DeviceInterval, Interval};
use crate::absence::Absent;

/// All intervals of a record, in order of time.
///
/// Every column of every actor and device has one entry per interval.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    /// Start of each interval, in seconds since the record's zero.
    pub at_s: Vec<f64>,
    /// Measured length of each interval, in seconds.
    pub seconds: Vec<f32>,
    /// Bytes handed over to be freed in each interval.
    pub freed_bytes: Vec<u64>,
    /// The intervals in a part of which trimbench itself did not run.
    pub absent: BTreeMap<usize, Absent>,
    /// One per actor of the head.
    pub actors: Vec<ActorColumns>,
    /// One per device of the head.
    pub devices: Vec<DeviceColumns>,
}

/// Makes columns of the fields of a row, beside others.
macro_rules! columns {
    (
        $(#[$meta:meta])*
        $columns:ident of $row:ident {
            $( $(#[$other_meta:meta])+ $other:ident: $other_cell:ident; )*
            $( $field:ident: $cell:ident, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        #[allow(missing_docs, reason = "a column is the row's field of that name")]
        pub struct $columns {
            $( $(#[$other_meta])+ pub $other: Vec<$other_cell>, )*
            $( pub $field: Vec<$cell>, )+
        }

        impl $columns {
            /// Puts a row in the place of another, or behind the last.
            fn put(&mut self, i: usize, row: $row) {
                $( match self.$field.get_mut(i) {
                    Some(cell) => *cell = Cell::of(row.$field),
                    None => self.$field.push(Cell::of(row.$field)),
                } )+
            }

            /// The row of an interval.
            pub(super) fn row(&self, i: usize) -> $row {
                $row { $( $field: self.$field[i].value(), )+ }
            }
        }
    };
}

columns! {
    /// One actor's columns. Latencies are in microseconds; NaN where there is none.
    ActorColumns of ActorInterval {
        /// Whether the actor ran in the interval.
        running: bool;
        /// Share of the interval, 0 to 1, that its threads waited for a processor; NaN where
        /// nobody looked.
        cpu_wait: f32;
        ops: u32,
        errors: u32,
        bytes: u64,
        p50_us: f32,
        p99_us: f32,
        max_us: f32,
        oldest_us: f32,
    }
}

columns! {
    /// One device's columns.
    DeviceColumns of DeviceInterval {
        reads: u32,
        read_bytes: u64,
        read_ms: u32,
        writes: u32,
        write_bytes: u64,
        write_ms: u32,
        discards: u32,
        discard_bytes: u64,
        discard_ms: u32,
        in_flight: u32,
    }
}

/// The form in which a column keeps a figure.
pub(super) trait Cell<T> {
    fn of(figure: T) -> Self;
    fn value(&self) -> T;
}

impl Cell<u64> for u64 {
    fn of(figure: u64) -> u64 {
        figure
    }

    fn value(&self) -> u64 {
        *self
    }
}

impl Cell<u64> for u32 {
    fn of(figure: u64) -> u32 {
        u32::try_from(figure).unwrap_or(u32::MAX)
    }

    fn value(&self) -> u64 {
        u64::from(*self)
    }
}

/// NaN for `None`.
impl Cell<Option<f64>> for f32 {
    fn of(figure: Option<f64>) -> f32 {
        figure.map_or(f32::NAN, |figure| figure as f32)
    }

    fn value(&self) -> Option<f64> {
        (!self.is_nan()).then_some(f64::from(*self))
    }
}

impl Intervals {
    /// Empty columns for so many actors and devices.
    pub fn new(actors: usize, devices: usize) -> Self {
        Intervals {
            actors: vec![ActorColumns::default(); actors],
            devices: vec![DeviceColumns::default(); devices],
            ..Intervals::default()
        }
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.at_s.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.at_s.is_empty()
    }

    /// When the last interval ends, in seconds since the record's zero; 0 when there is none.
    pub fn end_s(&self) -> f64 {
        match (self.at_s.last(), self.seconds.last()) {
            (Some(at), Some(&seconds)) => at + f64::from(seconds),
            _ => 0.0,
        }
    }

    /// Adds one interval. Actors and devices missing from it count as idle.
    pub fn push(&mut self, interval: &Interval) {
        let at = self.len();
        self.at_s.push(interval.at_s);
        self.seconds.push(interval.seconds as f32);
        self.freed_bytes.push(interval.freed_bytes);
        if let Some(absent) = interval.absent {
            self.absent.insert(at, absent);
        }
        for (i, columns) in self.actors.iter_mut().enumerate() {
            let row = interval.actors.get(i).copied().flatten();
            columns.running.push(row.is_some());
            columns.put(at, row.unwrap_or_default());
            let share = interval.cpu_wait.get(i).copied().flatten();
            columns.cpu_wait.push(Cell::of(share));
        }
        for (i, columns) in self.devices.iter_mut().enumerate() {
            columns.put(at, interval.devices.get(i).copied().unwrap_or_default());
        }
    }
}
