"""Run the benchmarks, all of them or those that are named: ``python -m bench queue_depth``."""

from __future__ import annotations

import importlib
import sys

from bench.peers import PeerMissingError

BENCHMARKS = (
    "durable_send",
    "group_commit",
    "queue_depth",
    "api_send",
    "long_poll",
    "srmp",
    "routing",
    "srmp_memory",
    "discovery",
    "management",
    "pipeline_source",
    "pipeline_tables",
    "pipeline_routes",
)


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
        return 2
    missed = 0
    for name in names or BENCHMARKS:
        try:
            targets = importlib.import_module(f"bench.{name}").main()
        except PeerMissingError as error:
            print(f"\n{name} was not measured: {error}")
            continue
        missed += sum(not target.is_met for target in targets)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
