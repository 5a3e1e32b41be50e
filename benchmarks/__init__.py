"""What Attaché costs: beside the model server alone and beside Envoy alone, in one run on one machine.

`python -m benchmarks` measures and writes `results/latest.json` and `results/latest.md`. Absolute numbers belong to the
machine; the ratios are what to read.
"""
