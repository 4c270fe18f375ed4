//! Somebody else is asked what to do where the agent is stuck.

/// What an advisor is.
const SYSTEM: &str =
    "You are an out-of-band advisor. An autonomous agent is stuck, and you see what it did last.";

/// How much of an instruction is passed on.
pub(crate) const INSTRUCTION_CHARS_MAX: usize = 2000;

/// What an advisor is asked: the three questions, and one answer.
pub(crate) fn question(deadlock: &str, goal: &str, transcript: &str) -> (String, String) {
    let text = format!(
        "THE TASK:\n{goal}\n\nWHAT IS WRONG: {deadlock}\n\nTHE LAST LINES OF ITS TRANSCRIPT:\n{transcript}\n\n\
         Ask yourself: what is the root cause of this? Which completely different approach could work? With \
         which words is the agent to be told?\nAnswer with these words alone: one instruction for the agent, \
         and nothing else."
    );
    (SYSTEM.to_owned(), text)
}
