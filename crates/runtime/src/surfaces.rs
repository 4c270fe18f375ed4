//! What each adapter can do, in one table.
//!
//! Adapters, the conformance drivers and `docs/reference/surfaces.md` use this table. The row of an
//! agent client stands in the folder of the client. An adapter can do everything that its row does
//! not list. A scenario that needs more than a surface can do is not played there.

mod profiles;

pub use profiles::{ENGINE, LIBRARY, MCP_SERVE, MCP_WRAP, RUN, STDIO, SURFACES};

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $label:literal;)*) => {
        /// Something that an adapter may be able to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum SurfaceCapability {
            $($(#[$doc])* $name,)*
        }

        impl SurfaceCapability {
            /// Every capability, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word of the capability in scenarios.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// The capability in words.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

capabilities! {
    /// A refused call does not run.
    RefuseCall = "refuse_call", "refuse a call before it runs";
    /// A person can be asked.
    AskPerson = "ask_person", "ask a person about a call";
    /// The call runs with other arguments.
    ReplaceArguments = "replace_arguments", "replace the arguments of a call";
    /// A plan or output is used in its cleaned form.
    ReplaceOutput = "replace_output", "replace a plan or an output by its cleaned form";
    /// A long result is shown as a page.
    PageResult = "page_result", "show a long result as a page";
    /// A long read is shown as a page.
    PageRead = "page_read", "show a long read as a page";
    /// Texts reach the agent.
    AddContext = "add_context", "add text to a call, a result or a prompt";
    /// A stop is refused.
    RefuseStop = "refuse_stop", "refuse the end of a turn";
    /// The agent is ended.
    EndAgent = "end_agent", "end the agent when its session stops";
    /// Results are seen.
    SeeResult = "see_result", "see the result of a call";
    /// The exit status of a command is seen.
    SeeExitStatus = "see_exit_status", "see the exit status of a command";
    /// Timeouts and crashes are distinguished from errors.
    SeeCallStatus = "see_call_status", "tell a timeout and a crash from an error";
    /// Parts of files in a result are seen.
    SeeShownLines = "see_shown_lines", "see which lines of several files a result shows";
    /// Prompts are seen.
    SeePrompt = "see_prompt", "see prompts";
    /// Token counts are seen.
    SeeUsage = "see_usage", "see token counts";
    /// Plans are seen.
    SeePlan = "see_plan", "see plans";
    /// Structured outputs are seen.
    SeeOutput = "see_output", "see structured outputs";
    /// Sub-agents are distinguished.
    SeeSubAgents = "see_sub_agents", "see which sub-agent makes a call";
    /// All events of sub-agents are seen.
    SeeSubAgentSessions = "see_sub_agent_sessions", "see the start, compaction and background work of a sub-agent";
    /// The directory of a call is seen.
    SeeDirectory = "see_directory", "see the working directory of a call";
    /// Events have ids.
    EventIds = "event_ids", "answer an event that is sent again with its first answer";
    /// Events have times.
    EventTimes = "event_times", "take the time of an event from the sender";
    /// Events carry data of the sender.
    EventMeta = "event_meta", "record `meta` of the sender";
    /// Lines that are no event are answered.
    AnyLine = "any_line", "answer a line that is not an event";
    /// Sessions of any client.
    AnyClient = "any_client", "report the name of any client";
    /// Any session id.
    AnySessionId = "any_session_id", "use any text as a session id";
    /// The sender's first event is the first record.
    OwnFirstRecord = "own_first_record", "begin the journal with the first event of the sender";
    /// Events in any order.
    AnyOrder = "any_order", "see any events in any order";
    /// Tools of any name.
    AnyTool = "any_tool", "see calls of tools with any name and any arguments";
    /// Results of any text and status.
    AnyResult = "any_result", "see any result of a call, whatever the call does";
    /// Calls without ids.
    CallsWithoutIds = "calls_without_ids", "match a result to a call without an id";
    /// Ids used again.
    RepeatedCallIds = "repeated_call_ids", "propose a call again under the same id";
    /// Arguments in any form.
    AnyArguments = "any_arguments", "see arguments that are no JSON object";
    /// Results out of order.
    StrayResults = "stray_results", "see results of calls that do not run";
    /// Calls after the end.
    OverlappingEnds = "overlapping_ends", "see calls during or after the end of their session or server";
    /// A state directory exists.
    StateDirectory = "state_directory", "have a directory for its state, with the off switch";
}

impl SurfaceCapability {
    /// The capability with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == word)
    }
}

/// How well an adapter supports a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapabilitySupport {
    /// Always.
    Full,
    /// With the limits in the text.
    Partial(&'static str),
    /// Not, for the reason in the text.
    Missing(&'static str),
}

/// One adapter with everything that it can't do.
#[derive(Debug)]
pub struct SurfaceProfile {
    /// Its name, in tests and on the reference page.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The capabilities that are not fully supported.
    pub limits: &'static [(SurfaceCapability, CapabilitySupport)],
}

impl SurfaceProfile {
    /// How well this adapter supports a capability.
    pub fn support(&self, capability: SurfaceCapability) -> CapabilitySupport {
        let listed = self.limits.iter().find(|(listed, _)| *listed == capability);
        listed.map_or(CapabilitySupport::Full, |(_, support)| *support)
    }

    /// Whether this adapter supports a capability at least in part.
    pub fn supports(&self, capability: SurfaceCapability) -> bool {
        self.reason_against(capability).is_none()
    }

    /// The limit of a capability, or why it is missing.
    pub fn limit(&self, capability: SurfaceCapability) -> Option<&'static str> {
        match self.support(capability) {
            CapabilitySupport::Missing(text) | CapabilitySupport::Partial(text) => Some(text),
            CapabilitySupport::Full => None,
        }
    }

    /// Why this adapter does not support a capability at all.
    pub fn reason_against(&self, capability: SurfaceCapability) -> Option<&'static str> {
        match self.support(capability) {
            CapabilitySupport::Missing(why) => Some(why),
            CapabilitySupport::Full | CapabilitySupport::Partial(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_has_its_own_word_and_is_listed_once_per_surface() {
        for capability in SurfaceCapability::ALL {
            assert_eq!(SurfaceCapability::parse(capability.as_str()), Some(*capability));
        }
        for surface in SURFACES {
            let mut listed: Vec<SurfaceCapability> =
                surface.limits.iter().map(|(capability, _)| *capability).collect();
            let ordered = listed.is_sorted();
            listed.dedup();
            assert!(ordered && listed.len() == surface.limits.len(), "{}", surface.name);
        }
    }
}
