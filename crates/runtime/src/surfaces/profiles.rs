//! The table: one entry per adapter, with its limits in the order of the capabilities.

use super::CapabilitySupport::{Missing, Partial};
use super::SurfaceCapability::{
    AddContext, AnyArguments, AnyClient, AnyLine, AnyOrder, AnyResult, AnySessionId, AnyTool,
    AskPerson, CallsWithoutIds, EndAgent, EventIds, EventMeta, EventTimes, OverlappingEnds,
    OwnFirstRecord, PageResult, RefuseStop, RepeatedCallIds, ReplaceArguments, ReplaceOutput,
    SeeCallStatus, SeeDirectory, SeeExitStatus, SeeOutput, SeePlan, SeePrompt, SeeShownLines,
    SeeSubAgentSessions, SeeSubAgents, SeeUsage, StateDirectory, StrayResults,
};
use super::SurfaceProfile;

/// Every surface that is not made for one agent client.
pub static SURFACES: [&SurfaceProfile; 6] =
    [&ENGINE, &LIBRARY, &STDIO, &MCP_WRAP, &MCP_SERVE, &RUN];

/// The engine without a runtime.
pub static ENGINE: SurfaceProfile = SurfaceProfile {
    name: "engine",
    title: "the engine in a program of your own, without a runtime",
    limits: &[
        (AddContext, Partial("the verdict contains the text, and the program shows it")),
        (
            EventIds,
            Missing(
                "the engine stores no records; only the journal can answer an event that is sent again",
            ),
        ),
    ],
};

/// The runtime in a Rust program.
pub static LIBRARY: SurfaceProfile = SurfaceProfile {
    name: "library",
    title: "the runtime in a Rust program",
    limits: &[(
        StateDirectory,
        Missing("a store and a state home in memory have no directory, so there is no off switch"),
    )],
};

/// Events as lines on standard input.
pub static STDIO: SurfaceProfile =
    SurfaceProfile { name: "stdio", title: "`jackline stdio`", limits: &[] };

/// The proxy before an MCP server.
pub static MCP_WRAP: SurfaceProfile = SurfaceProfile {
    name: "mcp wrap",
    title: "`jackline mcp wrap`, the proxy before an MCP server",
    limits: &[
        (AskPerson, Partial("the call is refused, and the person answers with a command")),
        (ReplaceArguments, Missing("the server gets a call with its original arguments")),
        (ReplaceOutput, Missing("MCP has no plans and outputs")),
        (PageResult, Partial("a page can be requested only of a result that the server sent")),
        (RefuseStop, Missing("a proxy is not asked when the agent stops")),
        (EndAgent, Partial("every further call is refused; the agent itself may go on")),
        (SeeExitStatus, Missing("a server reports only that a call failed")),
        (SeeCallStatus, Partial("a call that timed out, crashed or was cancelled has no text")),
        (SeeShownLines, Missing("a server does not report which lines it shows")),
        (SeePrompt, Missing("a proxy sees only calls and results")),
        (SeeUsage, Missing("a proxy sees only calls and results")),
        (SeePlan, Missing("a proxy sees only calls and results")),
        (SeeOutput, Missing("a proxy sees only calls and results")),
        (SeeSubAgents, Missing("MCP does not report the caller")),
        (SeeSubAgentSessions, Missing("MCP does not report the caller")),
        (SeeDirectory, Missing("an MCP call has no working directory")),
        (EventIds, Missing("the proxy sends no ids")),
        (EventTimes, Missing("the proxy takes the time from this machine")),
        (EventMeta, Missing("only the proxy itself sets `meta`")),
        (AnyLine, Missing("the proxy itself makes the events")),
        (AnyClient, Missing("the session belongs to the client `mcp`")),
        (
            AnySessionId,
            Missing("the id is an argument of a command line, which can't contain a NUL"),
        ),
        (
            OwnFirstRecord,
            Missing(
                "the proxy records the start of its session itself, so every record has another number",
            ),
        ),
        (CallsWithoutIds, Missing("every request has an id")),
        (RepeatedCallIds, Partial("not while the first call is open")),
        (AnyArguments, Partial("only JSON of another type; other text is no MCP message")),
        (StrayResults, Missing("the proxy drops an answer that belongs to no running call")),
        (
            OverlappingEnds,
            Missing(
                "the proxy ends its session when the client leaves, and starts a new one for a later call",
            ),
        ),
    ],
};

/// The MCP server of workspace tools.
pub static MCP_SERVE: SurfaceProfile = SurfaceProfile {
    name: "mcp serve",
    title: "`jackline mcp serve`, the server of workspace tools",
    limits: &[
        (AskPerson, Partial("the call is refused, and the person answers with a command")),
        (ReplaceOutput, Missing("MCP has no plans and outputs")),
        (
            PageResult,
            Partial(
                "a tool limits its results itself; of a command, it shows the start and the end",
            ),
        ),
        (RefuseStop, Missing("a server is not asked when the agent stops")),
        (EndAgent, Partial("every further call is refused; the agent itself may go on")),
        (SeePrompt, Missing("a server sees only calls and results")),
        (SeeUsage, Missing("a server sees only calls and results")),
        (SeePlan, Missing("a server sees only calls and results")),
        (SeeOutput, Missing("a server sees only calls and results")),
        (SeeSubAgents, Missing("MCP does not report the caller")),
        (SeeSubAgentSessions, Missing("MCP does not report the caller")),
        (SeeDirectory, Missing("an MCP call has no working directory")),
        (EventIds, Missing("the server sends no ids")),
        (EventTimes, Missing("the server takes the time from this machine")),
        (EventMeta, Missing("only the server itself sets `meta`")),
        (AnyLine, Missing("the server itself makes the events")),
        (AnyClient, Missing("the session belongs to the client `mcp`")),
        (
            AnySessionId,
            Missing("the id is an argument of a command line, which can't contain a NUL"),
        ),
        (
            OwnFirstRecord,
            Missing(
                "the server records the start of its session itself, so every record has another number",
            ),
        ),
        (AnyTool, Missing("only the tools of the workspace exist")),
        (
            AnyResult,
            Partial("the tools really run: only a command can have any output and exit status"),
        ),
        (CallsWithoutIds, Missing("every request has an id")),
        (RepeatedCallIds, Partial("not while the first call is open")),
        (AnyArguments, Partial("only JSON of another type; other text is no MCP message")),
        (StrayResults, Missing("the server itself runs every call")),
        (
            OverlappingEnds,
            Missing(
                "the server ends its session when the client leaves, and starts a new one for a later call",
            ),
        ),
    ],
};

/// A supervised run with a model.
pub static RUN: SurfaceProfile = SurfaceProfile {
    name: "run",
    title: "`jackline run` with a model; an agent program has the row of its hook",
    limits: &[
        (AskPerson, Partial("the run waits, and the person answers with a command")),
        (ReplaceOutput, Missing("the run proposes no plans and outputs")),
        (
            PageResult,
            Partial(
                "a tool limits its results itself; of a command, it shows the start and the end",
            ),
        ),
        (SeePrompt, Partial("the prompt of the task, and those of the run itself")),
        (SeePlan, Missing("the run proposes no plans")),
        (SeeOutput, Missing("the run proposes no outputs")),
        (SeeSubAgents, Missing("a run has one agent")),
        (SeeSubAgentSessions, Missing("a run has one agent")),
        (SeeDirectory, Missing("every call works in the workspace")),
        (EventIds, Missing("the run sends no ids")),
        (EventTimes, Missing("the run takes the time from this machine")),
        (EventMeta, Missing("only the run itself sets `meta`")),
        (AnyLine, Missing("the run itself makes the events")),
        (AnyClient, Missing("the run reports its own name")),
        (AnySessionId, Missing("the run makes the id itself")),
        (OwnFirstRecord, Missing("the run records the start of its session itself")),
        (
            AnyOrder,
            Missing(
                "the run decides the order: one call at a time, no call in a paused session, and the end of an iteration after each refused stop",
            ),
        ),
        (AnyTool, Missing("only the tools of the workspace exist")),
        (
            AnyResult,
            Partial("the tools really run: only a command can have any output and exit status"),
        ),
        (CallsWithoutIds, Missing("the run gives every call an id")),
        (RepeatedCallIds, Missing("the run gives every call another id")),
        (StrayResults, Missing("the run itself runs every call")),
        (OverlappingEnds, Missing("the run ends its session after its last call")),
    ],
};
