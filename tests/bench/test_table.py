"""The arithmetic of the table. Run by `./dev test`."""

import unittest

import table


def record(peer, number, rate, cpu, p50, **more):
    trees = {"peer": {"cpu_us_per_call": cpu, "rss_peak_mb": 10.0}, "postgres": {"cpu_us_per_call": 1.5}}
    fixed = {"workload": "echo-1", "ok": 5, "errors": 0, "p99_ms": 1.0, "other_cores": 0.1, "trees": trees}
    return fixed | {"peer": peer, "round": number, "rate": rate, "p50_ms": p50} | more


def cells(text, peer):
    line = next(line for line in text.splitlines() if f"| {peer} |" in line)
    return [cell.strip() for cell in line.strip("|").split("|")]


class Table(unittest.TestCase):
    def test_ratios_are_taken_within_a_round_and_then_the_median(self):
        runs = [record("hop-envelope", n, 100, cpu, 0.1) for n, cpu in enumerate([10, 20, 30])]
        runs += [record("gatehouse", n, 100, cpu, 0.2) for n, cpu in enumerate([20, 80, 90])]
        # 2, 4, 3: not the ratio of the medians, which is 4.
        self.assertEqual(cells(table.render(runs), "gatehouse")[7], "3.00")

    def test_the_added_time_is_measured_against_the_direct_connection(self):
        runs = [record("direct", 0, 100, None, 0.1), record("gatehouse", 0, 1234.4, 50, 0.25)]
        row = cells(table.render(runs), "gatehouse")
        self.assertEqual((row[2], row[5], row[9]), ("1,234", "0.150", "1.5"))
        self.assertEqual(cells(table.render(runs), "direct")[6], "–")

    def test_failed_runs_are_counted_and_not_averaged(self):
        runs = [record("gatehouse", 0, 100, 50, 0.2, errors=2), {"peer": "gatehouse", "workload": "echo-1", "round": 1, "failed": "x"}]
        self.assertEqual(cells(table.render(runs), "gatehouse")[11], "2 + 1 runs")
        self.assertIn("| echo-1 | direct |", table.render([{"peer": "direct", "workload": "echo-1", "round": 0, "failed": "x"}]))


if __name__ == "__main__":
    unittest.main()
