//! Checks that an event respects the limits of the wire protocol, whatever its origin is.
//!
//! Adapters parse their lines. Commands, the translations of clients and programs that embed the
//! runtime build events themselves. These events are checked here, so that every recorded event can
//! be parsed again.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use serde_json::Value;

use super::{TEXT_BYTES_MAX, WireError, type_error};
use crate::event::{
    AdvisorAnswered, Arguments, AttemptEnded, AttemptStage, AttemptStarted, CHANGED_FILES_MAX,
    CompactionFinished, Control, Event, EventKind, IterationEnded, ModelChanged, OutputProposed,
    PlanProposed, PromptSubmitted, SessionStarted, ShownLines, StopProposed, ToolFinished,
    ToolProposed, UsageReported, WorkspaceChanged,
};

use crate::json::DEPTH_MAX;

/// Checks what the types of an event do not enforce: the length of its texts, the nesting of its
/// values, and fields that exclude each other.
pub fn check_bounds(event: &Event) -> Result<(), WireError> {
    // The types of ids and times enforce their own limits.
    let Event { session: _, id: _, at: _, actor: _, kind, meta } = event;
    check_nesting("meta", meta.as_ref())?;
    match kind {
        EventKind::SessionStarted(SessionStarted {
            workspace,
            client,
            model,
            prompt_hash,
            tools_hash,
            parameters_hash,
            deadline: _,
            parent: _,
            role,
            compact_command,
        }) => check_texts([
            ("workspace", workspace),
            ("client", client),
            ("model", model),
            ("prompt_hash", prompt_hash),
            ("tools_hash", tools_hash),
            ("parameters_hash", parameters_hash),
            ("role", role),
            ("compact_command", compact_command),
        ]),
        EventKind::ToolProposed(ToolProposed { call: _, tool: _, args, cwd, asks_person: _ }) => {
            match args {
                Arguments::Parsed(args @ Value::Object(_)) => check_nesting("args", Some(args))?,
                Arguments::Parsed(other) => return Err(type_error("args", "an object", other)),
                Arguments::Text(_) => {}
            }
            check_texts([("cwd", cwd)])
        }
        EventKind::ToolFinished(ToolFinished {
            call: _,
            of: _,
            status: _,
            result: _,
            exit_code: _,
            seen,
            background: _,
        }) => seen.iter().try_for_each(|ShownLines { path, .. }| check_text_length("path", path)),
        EventKind::PlanProposed(PlanProposed { plan, plan_text }) => {
            if plan.is_some() && plan_text.is_some() {
                return Err(WireError::Both("plan", "plan_text"));
            }
            check_nesting("plan", plan.as_ref())
        }
        EventKind::OutputProposed(OutputProposed { name, text: _, truncated: _ }) => {
            check_texts([("name", name)])
        }
        EventKind::UsageReported(UsageReported { model, .. })
        | EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction: _, error: _ }) => {
            check_texts([("model", model)])
        }
        EventKind::IterationEnded(IterationEnded {
            phase,
            task,
            tests: _,
            build,
            files_changed: _,
            error: _,
        }) => check_texts([("phase", phase), ("task", task), ("build", build)]),
        EventKind::WorkspaceChanged(WorkspaceChanged { files, more: _ }) => {
            check_changed_files(files)
        }
        EventKind::StopProposed(StopProposed { reason, output: _, background: _ }) => {
            check_texts([("reason", reason)])
        }
        EventKind::AttemptStage(AttemptStage { attempt: _, stage }) => {
            check_text_length("stage", stage.as_str())
        }
        EventKind::ModelChanged(ModelChanged { from, to, reason }) => {
            check_texts([("from", from)])?;
            check_text_length("to", to)?;
            check_text_length("reason", reason.as_str())
        }
        EventKind::Control(Control {
            action: _,
            by,
            why,
            call: _,
            ask: _,
            seconds: _,
            constraint,
        }) => check_texts([("by", by), ("why", why), ("constraint", constraint)]),
        EventKind::PromptSubmitted(PromptSubmitted { source: _, text: _ })
        | EventKind::CompactionFinished(CompactionFinished { freed: _, summary: _ })
        | EventKind::AttemptStarted(AttemptStarted { attempt: _ })
        | EventKind::AttemptEnded(AttemptEnded { attempt: _, result: _ })
        | EventKind::SessionEnded(_) => Ok(()),
    }
}

fn check_texts<const N: usize>(fields: [(&str, &Option<String>); N]) -> Result<(), WireError> {
    fields
        .into_iter()
        .try_for_each(|(field, value)| value.iter().try_for_each(|it| check_text_length(field, it)))
}

/// Checks the files of a changed workspace.
pub(super) fn check_changed_files(files: &[String]) -> Result<(), WireError> {
    if files.len() > CHANGED_FILES_MAX {
        return Err(WireError::Type {
            field: "files".to_owned(),
            expected: format!("at most {CHANGED_FILES_MAX} files"),
            got: format!("{} files", files.len()),
        });
    }
    files.iter().try_for_each(|file| check_text_length("files", file))
}

/// Checks the length of a text that is not a payload.
pub(super) fn check_text_length(field: &str, text: &str) -> Result<(), WireError> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(WireError::Type {
        field: field.to_owned(),
        expected: format!("at most {TEXT_BYTES_MAX} bytes long"),
        got: format!("{} bytes", text.len()),
    })
}

fn check_nesting(field: &str, value: Option<&Value>) -> Result<(), WireError> {
    // The event itself is one more level.
    let deepest = DEPTH_MAX - 1;
    if value.is_none_or(|value| nests_within(value, deepest)) {
        return Ok(());
    }
    Err(WireError::Type {
        field: field.to_owned(),
        expected: format!("nested at most {deepest} deep"),
        got: "deeper".to_owned(),
    })
}

fn nests_within(value: &Value, levels: u8) -> bool {
    match value {
        Value::Array(items) => levels
            .checked_sub(1)
            .is_some_and(|levels| items.iter().all(|item| nests_within(item, levels))),
        Value::Object(map) => levels
            .checked_sub(1)
            .is_some_and(|levels| map.values().all(|item| nests_within(item, levels))),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::wire::{parse_event, parse_line, parse_recorded};

    /// Every event with every field that may contain a text.
    fn full() -> Vec<Value> {
        let lines = [
            r#"{"event":"session_started","workspace":"","client":"","model":"","prompt_hash":"","tools_hash":"","parameters_hash":"","role":"","compact_command":""}"#,
            r#"{"event":"prompt_submitted","text":""}"#,
            r#"{"event":"tool_proposed","call":"c","tool":"t","args":{},"cwd":""}"#,
            r#"{"event":"tool_proposed","call":"c","tool":"t","args_text":""}"#,
            r#"{"event":"tool_finished","call":"c","status":"ok","result":"","seen":[{"path":"","from":1,"to":2}]}"#,
            r#"{"event":"plan_proposed","plan":{}}"#,
            r#"{"event":"plan_proposed","plan_text":""}"#,
            r#"{"event":"output_proposed","name":"","text":""}"#,
            r#"{"event":"usage_reported","request":"r","model":"","input":1,"output":1}"#,
            r#"{"event":"compaction_finished","summary":""}"#,
            r#"{"event":"iteration_ended","phase":"","task":"","build":"","error":""}"#,
            r#"{"event":"workspace_changed","files":[""]}"#,
            r#"{"event":"stop_proposed","reason":"","output":""}"#,
            r#"{"event":"attempt_started","attempt":"a"}"#,
            r#"{"event":"attempt_stage","attempt":"a","stage":""}"#,
            r#"{"event":"attempt_ended","attempt":"a","result":"commit"}"#,
            r#"{"event":"advisor_answered","model":"","instruction":"","error":""}"#,
            r#"{"event":"model_changed","from":"","to":"","reason":""}"#,
            r#"{"event":"control","action":"pause","by":"","why":"","call":"c","constraint":""}"#,
            r#"{"event":"session_ended"}"#,
        ];
        let mut events: Vec<Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        for event in &mut events {
            event["session"] = json!("s");
            event["meta"] = json!({});
        }
        events
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, level| match level % 2 {
            0 => json!([inner]),
            _ => json!({"k": inner}),
        })
    }

    /// Replaces every empty text by a new text, and every empty object by a nested value.
    fn fill(value: &mut Value, texts: &mut dyn FnMut() -> String, levels: usize) {
        match value {
            Value::String(text) if text.is_empty() => *text = texts(),
            Value::Object(map) if map.is_empty() => {
                map.insert("k".to_owned(), nested(levels));
            }
            Value::Object(map) => map.values_mut().for_each(|it| fill(it, texts, levels)),
            Value::Array(items) => items.iter_mut().for_each(|it| fill(it, texts, levels)),
            _ => {}
        }
    }

    #[test]
    fn the_first_text_that_is_too_long_is_named_as_when_parsing() {
        for event in full() {
            for long in 0..6 {
                let (mut value, mut number) = (event.clone(), 0);
                let mut text = || {
                    number += 1;
                    "x".repeat(if number == long + 1 { TEXT_BYTES_MAX + 1 } else { 1 })
                };
                fill(&mut value, &mut text, 1);
                let built = parse_recorded(value.clone()).unwrap();
                assert_eq!(check_bounds(&built), parse_event(value.clone()).map(|_| ()), "{event}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// An accepted event can be parsed again, and the parser accepts the same events.
        #[test]
        fn an_accepted_event_can_be_parsed_again(
            kind in 0..20_usize,
            lengths in prop::collection::vec(
                prop_oneof![0..99_usize, TEXT_BYTES_MAX - 1..TEXT_BYTES_MAX + 2], 6),
            levels in prop_oneof![0..9_usize, 95..130_usize],
            letter in prop::sample::select(&["x", "\"", "\u{0}", "\n"][..]),
        ) {
            let mut value = full().swap_remove(kind);
            let mut lengths = lengths.into_iter();
            fill(&mut value, &mut || letter.repeat(lengths.next().unwrap_or(1)), levels);
            let event = parse_recorded(value.clone()).unwrap();
            let line = value.to_string();
            let accepted = check_bounds(&event);
            prop_assert_eq!(accepted.is_ok(), parse_line(line.as_bytes(), None).is_ok());
            if accepted.is_ok() {
                let recorded = serde_json::to_string(&event).unwrap();
                let read = parse_recorded(serde_json::from_str(&recorded).unwrap());
                prop_assert_eq!(read, Ok(event));
            }
        }
    }

    #[test]
    fn a_changed_workspace_names_a_limited_number_of_files() {
        let named = |count: usize| {
            let files: Vec<&str> = core::iter::repeat_n("a", count).collect();
            parse_event(json!({"session":"s","event":"workspace_changed","files":files}))
        };
        assert!(named(CHANGED_FILES_MAX).is_ok());
        let error = named(CHANGED_FILES_MAX + 1).unwrap_err();
        assert!(error.to_string().contains("at most 64 files"), "{error}");
    }

    #[test]
    fn an_event_that_no_line_can_contain_is_refused() {
        let recorded = |line: &str| parse_recorded(serde_json::from_str(line).unwrap()).unwrap();
        let mut event =
            recorded(r#"{"session":"s","event":"tool_proposed","call":"c","tool":"t","args":{}}"#);
        if let EventKind::ToolProposed(ToolProposed { args, .. }) = &mut event.kind {
            *args = Arguments::Parsed(json!([1]));
        }
        let message = check_bounds(&event).unwrap_err().to_string();
        assert_eq!(message, "`args` must be an object, not an array");
        let mut event = recorded(r#"{"session":"s","event":"plan_proposed","plan_text":"a"}"#);
        if let EventKind::PlanProposed(PlanProposed { plan, .. }) = &mut event.kind {
            *plan = Some(json!({}));
        }
        assert_eq!(
            check_bounds(&event).unwrap_err().to_string(),
            "give `plan` or `plan_text`, not both"
        );
    }
}
