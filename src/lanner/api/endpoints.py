"""Everything that can be asked of the API, in one table: routing, OpenAPI and tests follow it."""

from __future__ import annotations

from lanner.api.context import Endpoint
from lanner.api.handlers import (
    dead_letters,
    directory,
    history,
    manager,
    messages,
    queues,
    srmp,
    transactions,
)
from lanner.api.tokens import Right
from lanner.schema.base import DoneAnswer, In
from lanner.schema.dead_letters import (
    DeadLetterOut,
    DeadLettersAnswer,
    DeadLettersRequest,
    LookupRequest,
    ReplayAnswer,
    ReplayRequest,
    WhyAnswer,
    WhyRequest,
)
from lanner.schema.directory import DirectoryAnswer, ReplaceDirectoryRequest
from lanner.schema.history import (
    ConfirmRequest,
    HistoryRequest,
    HistoryStatus,
    ReaderOut,
    ReaderRequest,
)
from lanner.schema.manager import (
    BackupAnswer,
    BackupRequest,
    CompactAnswer,
    FlowControlRequest,
    StatusAnswer,
    TokenAnswer,
    TokenNameRequest,
    TokenRequest,
    TokensAnswer,
)
from lanner.schema.messages import (
    MessagesAnswer,
    MoveRequest,
    PeekRequest,
    ReceiveRequest,
    SendAnswer,
    SendRequest,
)
from lanner.schema.queues import (
    ChangeQueueRequest,
    CreateQueueRequest,
    PathAnswer,
    PlanAnswer,
    PlanRequest,
    PurgeAnswer,
    QueueOut,
    QueueRequest,
    QueuesAnswer,
)
from lanner.schema.srmp import (
    AddRedirectionRequest,
    RedirectionsAnswer,
    RedirectionsRequest,
    RemoveRedirectionRequest,
    ResetAnswer,
)
from lanner.schema.transactions import BeginRequest, TransactionAnswer, TransactionRequest

__all__ = ["ENDPOINTS"]

ADMIN, SEND, RECEIVE, PEEK = Right.ADMIN, Right.SEND, Right.RECEIVE, Right.PEEK

ENDPOINTS = (
    Endpoint("GET", "/v1/status", "How the manager is", manager.status, In, StatusAnswer, PEEK),
    Endpoint("POST", "/v1/backup", "Copy the store", manager.backup, BackupRequest, BackupAnswer, ADMIN),
    Endpoint("POST", "/v1/compact", "Give unused space back", manager.compact, In, CompactAnswer, ADMIN),
    Endpoint("POST", "/v1/offline", "Exchange nothing", manager.take_offline, In, DoneAnswer, ADMIN),
    Endpoint("POST", "/v1/online", "Exchange messages again", manager.bring_online, In, DoneAnswer, ADMIN),
    Endpoint(
        "POST",
        "/v1/flow-control",
        "Take in nothing",
        manager.flow_control,
        FlowControlRequest,
        DoneAnswer,
        ADMIN,
    ),
    Endpoint("GET", "/v1/tokens", "List tokens", manager.list_tokens, In, TokensAnswer, ADMIN),
    Endpoint("POST", "/v1/tokens", "Make a token", manager.create_token, TokenRequest, TokenAnswer, ADMIN),
    Endpoint(
        "DELETE", "/v1/tokens", "Remove a token", manager.remove_token, TokenNameRequest, DoneAnswer, ADMIN
    ),
    Endpoint("GET", "/metrics", "Metrics for Prometheus", manager.metrics, In, "text/plain", PEEK),
    Endpoint("GET", "/v1/queues", "List queues", queues.list_queues, In, QueuesAnswer, PEEK),
    Endpoint("POST", "/v1/queues", "Create a queue", queues.create, CreateQueueRequest, QueueOut, ADMIN),
    Endpoint("POST", "/v1/queues/plan", "Compare and apply", queues.plan, PlanRequest, PlanAnswer, ADMIN),
    Endpoint("GET", "/v1/queue", "Show a queue", queues.show, QueueRequest, QueueOut, PEEK),
    Endpoint("GET", "/v1/queue/path", "Where a queue is", queues.path, QueueRequest, PathAnswer, PEEK),
    Endpoint("PATCH", "/v1/queue", "Change a queue", queues.change, ChangeQueueRequest, QueueOut, ADMIN),
    Endpoint("DELETE", "/v1/queue", "Delete a queue", queues.delete, QueueRequest, DoneAnswer, ADMIN),
    Endpoint("POST", "/v1/queue/purge", "Drop every message", queues.purge, QueueRequest, PurgeAnswer, ADMIN),
    Endpoint(
        "POST", "/v1/queue/pause", "Hold an outgoing queue", queues.pause, QueueRequest, DoneAnswer, ADMIN
    ),
    Endpoint("POST", "/v1/queue/resume", "Let it go on", queues.resume, QueueRequest, DoneAnswer, ADMIN),
    Endpoint("POST", "/v1/messages/send", "Send messages", messages.send, SendRequest, SendAnswer, SEND),
    Endpoint(
        "POST",
        "/v1/messages/receive",
        "Receive messages",
        messages.receive,
        ReceiveRequest,
        MessagesAnswer,
        RECEIVE,
        waits=True,
    ),
    Endpoint(
        "POST",
        "/v1/messages/peek",
        "Look at messages",
        messages.peek,
        PeekRequest,
        MessagesAnswer,
        PEEK,
        waits=True,
    ),
    Endpoint("POST", "/v1/messages/move", "Move a message", messages.move, MoveRequest, DoneAnswer, RECEIVE),
    Endpoint("POST", "/v1/transactions", "Begin", transactions.begin, BeginRequest, TransactionAnswer, None),
    Endpoint(
        "POST",
        "/v1/transactions/renew",
        "Stay alive",
        transactions.renew,
        TransactionRequest,
        DoneAnswer,
        None,
    ),
    Endpoint(
        "POST", "/v1/transactions/commit", "Commit", transactions.commit, TransactionRequest, SendAnswer, None
    ),
    Endpoint(
        "POST", "/v1/transactions/abort", "Abort", transactions.abort, TransactionRequest, DoneAnswer, None
    ),
    Endpoint(
        "GET",
        "/v1/deadletters",
        "List dead letters",
        dead_letters.list_dead_letters,
        DeadLettersRequest,
        DeadLettersAnswer,
        ADMIN,
    ),
    Endpoint(
        "GET", "/v1/deadletter", "Show a dead letter", dead_letters.show, LookupRequest, DeadLetterOut, ADMIN
    ),
    Endpoint(
        "POST",
        "/v1/deadletters/replay",
        "Send dead letters again",
        dead_letters.replay,
        ReplayRequest,
        ReplayAnswer,
        ADMIN,
    ),
    Endpoint("GET", "/v1/why", "What happened", dead_letters.why, WhyRequest, WhyAnswer, ADMIN),
    Endpoint(
        "GET", "/v1/history", "Read the history", history.read, HistoryRequest, history.JSON_LINES, ADMIN
    ),
    Endpoint("GET", "/v1/directory", "The enterprise", directory.show, In, DirectoryAnswer, ADMIN),
    Endpoint(
        "PUT",
        "/v1/directory",
        "Take another",
        directory.replace,
        ReplaceDirectoryRequest,
        DirectoryAnswer,
        ADMIN,
    ),
    Endpoint("POST", "/v1/directory/refresh", "Read it now", directory.refresh, In, DirectoryAnswer, ADMIN),
    Endpoint("GET", "/v1/history/status", "How far it goes", history.status, In, HistoryStatus, ADMIN),
    Endpoint("POST", "/v1/history/readers", "Register", history.register, ReaderRequest, ReaderOut, ADMIN),
    Endpoint("POST", "/v1/history/confirm", "Confirm", history.confirm, ConfirmRequest, ReaderOut, ADMIN),
    Endpoint("DELETE", "/v1/history/readers", "Forget", history.forget, ReaderRequest, DoneAnswer, ADMIN),
    Endpoint(
        "GET",
        "/v1/srmp/redirections",
        "Show what is redirected",
        srmp.list_redirections,
        In,
        RedirectionsAnswer,
        ADMIN,
    ),
    Endpoint(
        "PUT",
        "/v1/srmp/redirections",
        "Replace all redirections",
        srmp.replace,
        RedirectionsRequest,
        RedirectionsAnswer,
        ADMIN,
    ),
    Endpoint(
        "POST",
        "/v1/srmp/redirections",
        "Add a redirection",
        srmp.add,
        AddRedirectionRequest,
        RedirectionsAnswer,
        ADMIN,
    ),
    Endpoint(
        "DELETE",
        "/v1/srmp/redirections",
        "Remove a redirection",
        srmp.remove,
        RemoveRedirectionRequest,
        RedirectionsAnswer,
        ADMIN,
    ),
    Endpoint("POST", "/v1/srmp/reset", "Begin a stream anew", srmp.reset, QueueRequest, ResetAnswer, ADMIN),
)
