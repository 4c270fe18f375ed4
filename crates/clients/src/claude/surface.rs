//! What the hook can do in this client (tested with 2.1.325).

use jackline_runtime::surfaces::CapabilitySupport::{Missing, Partial};
use jackline_runtime::surfaces::SurfaceCapability::{
    AnyArguments, AnyClient, AnyLine, AskPerson, CallsWithoutIds, EndAgent, EventIds, EventMeta,
    EventTimes, PageRead, PageResult, RepeatedCallIds, ReplaceArguments, ReplaceOutput,
    SeeCallStatus, SeeExitStatus, SeeOutput, SeePlan, SeeShownLines, SeeSubAgentSessions, SeeUsage,
};
use jackline_runtime::surfaces::SurfaceProfile;

/// The hooks of Claude Code.
pub(super) static SURFACE: SurfaceProfile = SurfaceProfile {
    name: "hook claude",
    title: "`jackline hook claude`, the hooks of Claude Code",
    limits: &[
        (
            AskPerson,
            Partial(
                "in the dialog of the client if a person is present; else the call is refused, and the person answers with a command",
            ),
        ),
        (ReplaceArguments, Missing("the client runs a call with its original arguments")),
        (ReplaceOutput, Missing("the client hands over an output as the model wrote it")),
        (
            PageResult,
            Partial(
                "only results of `Bash` and `Grep`; the client limits the results of its other tools itself",
            ),
        ),
        (PageRead, Missing("the client limits a read itself, and reports which lines it showed")),
        (
            EndAgent,
            Partial(
                "the client ends the turn; its process waits for the next prompt, which is refused",
            ),
        ),
        (SeeExitStatus, Partial("only of `Bash`")),
        (SeeCallStatus, Missing("the client reports a timeout and a crash as an error")),
        (SeeShownLines, Partial("only `Read` reports lines, of one file per call")),
        (SeeUsage, Partial("from the transcript of the client, after each answer of the model")),
        (SeePlan, Missing("the client reports no plans")),
        (
            SeeOutput,
            Partial(
                "complete JSON objects without a name, before the tool `StructuredOutput` runs",
            ),
        ),
        (
            SeeSubAgentSessions,
            Missing("the client reports only the start, the calls and the stop of a sub-agent"),
        ),
        (EventIds, Partial("a call that is reported twice; other events have no ids")),
        (EventTimes, Missing("the hook takes the time from this machine")),
        (EventMeta, Missing("only the hook itself sets `meta`")),
        (AnyLine, Missing("the hook itself makes the events")),
        (AnyClient, Missing("the hook reports its own client")),
        (CallsWithoutIds, Partial("only for clients that give no ids")),
        (
            RepeatedCallIds,
            Missing("a second call under the same id counts as a report that was sent twice"),
        ),
        (AnyArguments, Missing("the client passes only JSON objects")),
    ],
};
