"""What Attaché costs: beside the model server alone, Envoy alone and agentic-api, in one run on one machine.

`python -m benchmarks` measures, which takes about a quarter of an hour, and writes to `results/`: `latest.md`, the
report, which begins with a summary (`summary.md` by itself); `latest.json`, everything, and the ratios that the next
run compares its own with; `latest.png`. A `--quick` run takes a few minutes and is called `quick`. Absolute numbers
belong to the machine; the ratios are what to read.
"""
