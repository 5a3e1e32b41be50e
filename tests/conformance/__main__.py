"""`python -m conformance`, in `tests/`: run the end-to-end tests and keep their result in docs/conformance.md.

Arguments go to pytest. Nothing is written, and the exit status is not 0, when a test fails or when an event type of the
API was neither seen nor explained.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """The exit status of the run."""
    status = int(pytest.main([f"--rootdir={ROOT}", *(arguments or [str(ROOT / "tests" / "e2e")])]))
    # Only now: what is imported before pytest runs escapes the rewriting of its asserts, of which pytest warns.
    from conformance.judge import judge_of_answers
    from conformance.result import PAGE, rendered, unexplained

    seen = judge_of_answers().seen
    complaints = unexplained(seen)
    if status or complaints:
        print("\n".join([f"{PAGE.name} was not written.", *complaints]), file=sys.stderr)
        return status or 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(rendered(seen))
    print(f"{PAGE} was written.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
