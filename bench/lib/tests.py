"""Tests of what computes: `python3 -m unittest lib.tests` in bench/."""

import contextlib
import io
import json
import pathlib
import subprocess
import tempfile
import unittest

from .fio import latencies, steps
from .judge import COLUMNS, Machine, Run, rows
from .numbers import Step, losses, merged, percentile, spread, table, turns, windows
from .page import FIELDS, command, page
from .places import figure, size_of


def ran(*ops, at=0.0):
    return [Step(at + i * 0.05, 0.05, count) for i, count in enumerate(ops)]


class Tests(unittest.TestCase):
    def test_percentiles_are_values_that_occur(self):
        self.assertEqual([percentile([3, 1, 2], share) for share in (0, 0.5, 0.99, 1)], [1, 2, 3, 3])
        self.assertNotEqual(percentile([], 0.5), percentile([], 0.5))

    def test_a_spread_has_a_range_only_where_it_shows(self):
        self.assertEqual([spread([1.0, 3.0, 2.0]), spread([1.01, 1.02]), spread([None]), spread([2], 0)], ["2.0 (1.0 to 3.0)", "1.0", "", "2"])

    def test_a_window_slides_and_does_not_cross_a_gap(self):
        steps = ran(10, 10, 0, 10)
        self.assertEqual([round(loss, 9) for loss in losses(steps, 0.1, 200)], [0, 0.5, 0.5])
        self.assertEqual(len(list(windows(steps, 0.1, until=0.06))), 2)
        self.assertEqual(len(list(windows(steps + ran(10, 10, at=9.0), 0.1))), 4)
        self.assertEqual(list(windows(steps, 1.0)), [])

    def test_discards_keep_a_device_no_longer_than_a_step(self):
        self.assertAlmostEqual(next(windows([Step(0, 0.05, 1, discard_s=3.0), Step(0.05, 0.05, 1)], 0.1)).discard_s, 0.05)

    def test_merged_steps_keep_their_sums(self):
        self.assertEqual([(round(s.seconds, 2), s.ops) for s in merged(ran(1, 2, 3, 4, 5), 0.1)], [(0.1, 3), (0.1, 7), (0.05, 5)])

    def test_each_turn_has_every_case_and_another_first(self):
        found = list(turns(["a", "b", "c"], 4))
        self.assertEqual([case for turn, case in found if turn == 1], ["b", "c", "a"])
        self.assertEqual([case for _, case in found[::3]], ["a", "b", "c", "a"])

    def test_a_table_has_a_line_for_each_group(self):
        rows = [{"case": "rm", "s": 1}, {"case": "none"}, {"case": "rm", "s": 2}]
        self.assertEqual(table(rows, {"": "case", "ms": ("s", 0, 1e3), "n": len}),
                         "|  | ms | n |\n|---|---|---|\n| rm | 1500 (1000 to 2000) | 2 |\n| none |  | 1 |")

    def test_a_step_without_a_line_had_no_reads(self):
        found = steps("1700000000050, 200, 0, 0, 0\n1700000000101, 400, 0, 0, 0\n1700000000199, 200, 0, 0, 0\n")
        self.assertEqual([step.ops for step in found], [10, 20, 0, 10])
        self.assertAlmostEqual(found[0].at, 1700000000.0)
        self.assertEqual(steps(""), [])

    def test_a_log_of_latencies_is_in_milliseconds(self):
        self.assertEqual(latencies("1700000000050, 1500000, 0, 4096, 0\n"), [(1700000000.05, 1.5)])

    def test_sizes_and_figures_of_cards_have_units(self):
        self.assertEqual([size_of("1.5G"), size_of("64k"), size_of("7")], [3 << 29, 65536, 7])
        self.assertAlmostEqual(figure("crucial-t500-2tb", "discard", "a"), 976e-6)
        self.assertEqual(figure("crucial-t500-2tb", "read", "no-such-figure", 5), 5)

    def test_a_loss_is_measured_against_the_rate_before_and_after(self):
        device = lambda size: {"discards": size, "discard_bytes": size, "discard_ms": 0}
        steps = [(100, 0)] * 60 + [(45, 1)] * 20 + [(80, 0)] * 40
        lines = [{"line": "head", "devices": [{"leaf": True}], "started_unix_s": 0}, {"line": "phase", "name": "baseline", "at_s": 0.0},
                 {"line": "event", "kind": "deletion-began", "at_s": 3.0}]
        lines += [{"line": "interval", "at_s": i * 0.05, "seconds": 0.05, "devices": [device(size)], "actors": [{"ops": ops}]} for i, (ops, size) in enumerate(steps)]
        with tempfile.TemporaryDirectory() as home:
            record = pathlib.Path(home) / "run.jsonl"
            record.write_text("\n".join(map(json.dumps, lines)))
            run = Run(record)
        self.assertAlmostEqual(run.base, 90 / 0.05)
        self.assertAlmostEqual(run.drift, -0.2)
        self.assertAlmostEqual(run.mean, 0.5, delta=0.06)

    def test_a_goal_is_held_if_the_mean_and_the_worst_window_are(self):
        def run(mean, worst, lost=0.5):
            run = Run.__new__(Run)
            run.__dict__ |= {"lost": lost, "time": 5.0, "service": 0.01, "mean": mean, "during": [], "base": 1, "held": 0, "discards": 1, "drift": 0, "stood": 0}
            run.losses, run.held_window = (lambda length: [worst]), (lambda length: 0)
            return run

        runs = [("plain", run(0.9, 0.9)), ("none", run(0, 0.05)), ("10", run(0.11, 0.14)), ("10", run(0.13, 0.14)), ("10", run(0.1, 0.16))]
        found = rows("cell", runs)
        self.assertEqual([row.get("goal_held") for row in found], [None, None, True, False, False])
        self.assertEqual([row.get("missed") for row in found[2:]], [[], ["mean"], ["window"]])
        self.assertIn("| 10 % |", table(found, COLUMNS))

    def test_the_least_disturbed_run_is_kept(self):
        def attempts(*drifts):
            left = iter(drifts)
            def measure():
                run = Run.__new__(Run)
                run.drift, run.overlaps = next(left), lambda since, to: False
                return run
            machine = Machine.__new__(Machine)
            machine.stood = []
            with contextlib.redirect_stderr(io.StringIO()):
                return machine.undisturbed(measure).drift

        self.assertEqual([attempts(0.3, -0.1), attempts(0.3, -0.2, 0.4, 0.5)], [-0.1, -0.2])

    def test_a_page_says_how_its_figures_were_measured_and_keeps_its_notes(self):
        heads = [dict.fromkeys(FIELDS, "same") | {"Command": f"`bench/x --only {case}`"} for case in "ab"]
        rows = [{"case": "a", "s": 1, "goal_held": True}, {"case": "a", "s": 3, "goal_held": False}, {"case": "b", "s": 2, "goal_held": None}]
        text = page("How fast is it?\n\nA clock runs,\nthen stops.\n\nGoal: a second.\n", heads, rows, {"": "case", "s": ("s", 0)}, "old\n\n## Notes\n\nMine.\n")
        self.assertTrue(text.startswith("# How fast is it?\n\nA clock runs, then stops.\n\n- Command: `bench/x --only a`; `bench/x --only b`\n"), text)
        for expected in (*(f"\n- {field}: " for field in FIELDS), "\n- Date: same\n", "- Runs: 1 to 2 of each row", "- Goal: a second. **Held in 1 of 2 runs.**",
                         "| a | 2 (1 to 3) | 1 of 2 |\n| b | 2 |  |\n\n## Notes\n\nMine.\n"):
            self.assertIn(expected, text)
        text = page("Title", heads, rows[2:], {"": "case"}, picture="x.svg")
        self.assertIn("- Goal: none; these figures describe.\n", text)
        self.assertTrue(text.startswith("# Title\n\n![Title](x.svg)\n\n"), text)

    def test_a_page_names_no_folder_of_this_machine(self):
        options = {"only": ["t500/*"], "repeats": 3, "json": "/tmp/x", "write": True, "path": "/usr", "size": "2G"}
        self.assertEqual(command("x", options, {"repeats": 3}.get), "bench/x --only 't500/*' --path DIR --size 2G")

    def test_every_bench_has_a_help(self):
        for bench in pathlib.Path(__file__).parents[1].iterdir():
            if bench.is_file():
                done = subprocess.run([bench, "--help"], capture_output=True, text=True)
                self.assertIn("cases: ", done.stdout, f"{bench}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
