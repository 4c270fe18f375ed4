//! The prompt for an advisor: a second model that is asked when the agent is stuck.

/// The system prompt of an advisor.
const SYSTEM_PROMPT: &str =
    "You are an out-of-band advisor. An autonomous agent is stuck, and you see what it did last.";

/// How many characters of an instruction are passed to the agent.
pub(crate) const INSTRUCTION_CHARS_MAX: usize = 2000;

/// The system prompt and the question for an advisor.
pub(crate) fn advisor_prompt(deadlock: &str, goal: &str, transcript: &str) -> (String, String) {
    let text = format!(
        "THE TASK:\n{goal}\n\nWHAT IS WRONG: {deadlock}\n\nTHE LAST LINES OF ITS TRANSCRIPT:\n{transcript}\n\n\
         Ask yourself: What is the root cause? Which completely different approach could work? Which instruction \
         helps the agent to take it?\nAnswer with one instruction for the agent, in the words that you would tell \
         the agent, and nothing else."
    );
    (SYSTEM_PROMPT.to_owned(), text)
}
