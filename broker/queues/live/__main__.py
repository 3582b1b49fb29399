"""The program that asks one service and prints what it says as JSON; one line on stderr when it cannot."""

import importlib
import json
import sys
from datetime import datetime
from typing import Any

from broker.queues.live import LIVE, Unasked

_MODULES = {
    "kubernetes": "cluster",
    "aws-batch": "batch",
    "sagemaker": "training",
    "vertex": "custom_jobs",
    "azure-ml": "workspace",
}


def main(words: list[str]) -> int:
    name, at = words
    assert name in LIVE
    try:
        answer = importlib.import_module(f"broker.queues.live.{_MODULES[name]}").ask(at)
        json.dump(answer, sys.stdout, default=_written)
    except Unasked as why:
        sys.stderr.write(" ".join(str(why).split())[:400] + "\n")
        return 1
    return 0


def _written(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
