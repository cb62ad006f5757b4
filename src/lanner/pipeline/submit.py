"""The file for ``spark-submit``, which runs a file and no module.

``python -m lanner.pipeline.jobs --where`` says where it is.
"""

import sys

if __name__ == "__main__":
    # Python looks for modules beside a script first, where `schema` and `session` are ours.
    del sys.path[0]
    from lanner.pipeline.command import main

    raise SystemExit(main())
