//! Runs on all processors, with their results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Does `work` for each item on so many threads, and hands the results over in the items' order.
/// `receive_one` returns whether to go on; when it does not, no more are begun.
pub fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    mut receive_one: impl FnMut(usize, R) -> bool,
) {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            let send = send.clone();
            let (next, stop, work) = (&next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    if send.send((at, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (at, result) in receive {
            early.insert(at, result);
            while let Some(result) = early.remove(&due) {
                if !receive_one(due, result) {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
                due += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_stop_when_they_are_to() {
        let items: Vec<u64> = (0..100).collect();
        let mut got = Vec::new();
        in_order(
            &items,
            4,
            |n| n * 2,
            |at, n| {
                got.push((at, n));
                true
            },
        );
        let expected: Vec<(usize, u64)> = (0..100).map(|n| (n, n as u64 * 2)).collect();
        assert_eq!(got, expected);
        let mut taken = 0;
        in_order(
            &items,
            4,
            |n| *n,
            |_, _| {
                taken += 1;
                taken < 3
            },
        );
        assert_eq!(taken, 3);
    }
}
