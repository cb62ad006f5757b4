"""The queue manager itself: no protocol, no socket.

What a program needs to use one in-process::

    from lanner.manager import QueueManager
    from lanner.model.message import Message
"""

from lanner.manager.clock import Clock, ManualClock, SystemClock, Timer
from lanner.manager.cursors import Cursor
from lanner.manager.handles import OpenQueue
from lanner.manager.info import QueueInfo
from lanner.manager.manager import QueueManager
from lanner.manager.outcomes import Outcome
from lanner.manager.plan import DeclaredQueue, Plan
from lanner.manager.settings import ManagerSettings
from lanner.manager.transactions import Transaction
from lanner.manager.transfers import Transfers

__all__ = [
    "Clock",
    "Cursor",
    "DeclaredQueue",
    "ManagerSettings",
    "ManualClock",
    "OpenQueue",
    "Outcome",
    "Plan",
    "QueueInfo",
    "QueueManager",
    "SystemClock",
    "Timer",
    "Transaction",
    "Transfers",
]
