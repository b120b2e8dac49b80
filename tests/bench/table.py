"""Turns the records of the runs into one table: medians over the rounds, and ratios taken within a round."""

import statistics
from collections import defaultdict

HEADER = [
    "workload", "peer", "calls/s", "p50 ms", "p99 ms", "p50 − direct", "CPU µs/call", "÷ hop-envelope", "RSS MB",
    "Postgres CPU µs", "upstream CPU µs", "errors",
]


def cpu(record, tree):
    return record["trees"].get(tree, {}).get("cpu_us_per_call")


def median(values):
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def number(value, digits):
    return "–" if value is None else f"{value:,.{digits}f}"


def paired(ours, theirs, combine):
    """The median over the rounds that both have of `combine(our record, their record)`."""
    return median([combine(ours[r], theirs[r]) for r in ours if r in theirs])


def ratio(ours, theirs):
    over = lambda a, b: cpu(a, "peer") / cpu(b, "peer") if cpu(a, "peer") and cpu(b, "peer") else None
    return paired(ours, theirs, over)


def row(workload, peer, runs, failed):
    ours = runs.get((workload, peer), {})
    records = list(ours.values())
    added = paired(ours, runs.get((workload, "direct"), {}), lambda a, b: a["p50_ms"] - b["p50_ms"])
    figures = [
        number(median([r["rate"] for r in records]), 0),
        number(median([r["p50_ms"] for r in records]), 3),
        number(median([r["p99_ms"] for r in records]), 2),
        number(added, 3),
        number(median([cpu(r, "peer") for r in records]), 1),
        number(ratio(ours, runs.get((workload, "hop-envelope"), {})), 2),
        number(median([r["trees"].get("peer", {}).get("rss_peak_mb") for r in records]), 1),
        number(median([cpu(r, "postgres") for r in records]), 1),
        number(median([cpu(r, "upstream") for r in records]), 1),
        str(sum(r["errors"] for r in records)) + (f" + {failed} runs" if failed else ""),
    ]
    return [workload, peer, *figures]


def render(records):
    """The table as Markdown, and a line on how much else ran on the machine."""
    runs, failed = defaultdict(dict), defaultdict(int)
    for record in records:
        key = (record["workload"], record["peer"])
        if record.get("failed") or not record["ok"]:
            failed[key] += 1
        else:
            runs[key][record["round"]] = record
    order = dict.fromkeys((record["workload"], record["peer"]) for record in records if record["round"] == 0)
    rows = [row(workload, peer, runs, failed[(workload, peer)]) for workload, peer in order]
    lines = [" | ".join(cells) for cells in [HEADER, ["---"] * len(HEADER), *rows]]
    text = "\n".join(f"| {line} |" for line in lines)
    noise = [record["other_cores"] for by_round in runs.values() for record in by_round.values()]
    if noise:
        text += f"\n\nOther programs used {statistics.median(noise):.2f} cores in the median run, {max(noise):.2f} at most."
    return text
