"""Every error of this project, in one tree. Each carries the exit code that a command ends with.

The text of an error says what happened, which value, what is possible and what to do: a command prints it as it is.
What is raised inside a run becomes a result, a step or a stop reason, and only reaches a command where a tool or a
model is tried by hand. In brackets the exit code, where it is not the one of the line above.

OpsleuthError (1)
├── UsageError (2): the request is not possible as it was made
│   ├── _ArchiveTooLargeError: an archive unpacks to more than its limits
│   ├── InvalidSwitchError: the lab's control plane has no such switch, or not this value
│   ├── UnknownFaultError: the lab has no such fault
│   ├── NothingLeftError: a follow-up question has no steps, time, tokens or money left
│   ├── NoSuchPathError: the path leads to nothing in the state
│   └── ZonelessTimeError: a time without a zone can be read in two ways
├── ConfigError (8): configuration, trust or credentials are missing or wrong
├── StoreError (1): what is stored cannot be read or changed
│   ├── NotFoundError (9): no such run, evidence, approval
│   ├── AmbiguousIdError (9): a prefix fits several runs
│   ├── RunBusyError (10): another live process holds the run
│   │   └── RunLostError: this process held it, and was considered dead
│   ├── UnreadableStoreError (11): no database, damaged, or written by a newer version; nothing was changed
│   │   └── InvalidRowError: a row that the tables do not take
│   ├── ConflictError (2): a compare-and-set changed no row: another one was faster, or it is not allowed
│   │   ├── AlreadyDecidedError: the approval was answered before
│   │   ├── WrongDigestError: the answer names another call than the one that was asked
│   │   ├── NotApprovedError: no valid approval for this effect: pending, denied, used, expired or stale
│   │   ├── AlreadyStartedError: the ledger holds this effect already
│   │   └── ReusedKeyError: the idempotency key stands for another request
│   └── StoreFailedError (1): the database cannot be used now: disk full, locked, I/O error
│       └── NotWritableError (8): no permission to create or to write it
├── ToolError (1): a failure that a tool foresaw
│   ├── InvalidArgumentsError (2): the request is wrong; the text says the accepted form
│   ├── NotPermittedError (8): the backend or the policy refuses
│   ├── TransientError (7): may heal by itself: retried by the executor (reads only)
│   ├── UnavailableError (7): the backend is down, or none is configured
│   │   ├── McpAnswerError: an MCP server answered with an error of its own
│   │   ├── NotConnectedError: no connection came about, so nothing was sent
│   │   ├── RefusedStatementError: a database says no to a statement
│   │   └── HttpStatusError: the server answered with a status that says no
│   ├── OutcomeUnknownError (13): an effect was sent and its outcome was not seen
│   └── NotACaseError (8): the folder is not a recorded incident
├── PlannerError (7): a turn without a decision
│   ├── MalformedReplyError: the reply is not a valid decision
│   └── ModelUnavailableError: the endpoint cannot be used
│       └── ModelRefusedError (8): not before its configuration is changed
├── UnsupportedModeError (7): the model's server does not know this way of asking
├── ContextTooLongError (8): the request is longer than the model's window
├── ReplyTooLongError (7): the model's reply is longer than what is read of one
├── ReplayDivergedError (8): a replay asks for something that was not recorded
├── NodeFailureError (1): a node of the graph raised
├── NothingToDoError (2): the run is over, or still waits for an answer
├── SpanExportError (7): the collector of traces did not take the spans
├── AlertFetchError (7): a server of alerts could not be asked
├── ConnectTimeoutError (7): no connection came about in time, so nothing was sent
├── CommandNotStartedError (8): a program cannot be started, so nothing was done
├── CountingProcessError (1): a process that counts log lines ended before its work
├── DamagedFileError (8): a packed file ends too early, or is not one
├── UncertainMappingError (7): a search index may hold what it cannot find
├── UnusableToolError (8): a foreign tool cannot be offered
├── TooManyStrikesError (1): a run whose attempts end before they get anywhere
├── ResultsInUseError (10): another process writes these results of an evaluation
├── SnsRefusedError (1): a message of Amazon SNS that is not of a configured topic, or not signed
├── RequestRefusedError (1): the API does not serve this request
├── PlaneError (1): the lab's control plane cannot do what it was asked
├── LabRequestError (1): a service of the lab does not serve this request
└── LabStartError (1): a process of the lab did not come up
"""

from opsleuth.state.run_status import ExitCode


class OpsleuthError(Exception):
    """Root of the tree: `exit_code` is what a command ends with; the text says what happened and what to do."""

    exit_code = ExitCode.INTERNAL


class UsageError(OpsleuthError):
    """The request is not possible as it was made; the text says what is accepted."""

    exit_code = ExitCode.USAGE


class ConfigError(OpsleuthError):
    """Something about configuration, trust or credentials is missing or wrong."""

    exit_code = ExitCode.CONFIG
