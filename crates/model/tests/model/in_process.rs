//! The scripted model without a server.

use std::ops::ControlFlow;
use std::time::Duration;

use jackline_model::scripted::{
    AnswerDefect, InProcessModel, ModelScript, ScriptStep, ScriptUsage as Cost,
};
use jackline_model::{AnswerDelta, AnswerEnd, Model, ModelErrorKind, TokenUsage};
use serde_json::json;

use crate::world::{ReceivedPieces, ask, request};

#[test]
fn it_answers_with_the_texts_and_calls_of_the_script() {
    let cost = Cost { input: 1, output: 2, cache_read: 3, cache_creation: 4 };
    let step = ScriptStep::say("well")
        .and_call("Bash", json!({ "command": "ls" }))
        .and_call_with("Read", "{broken")
        .with_usage(cost);
    let mut model =
        InProcessModel::new(ModelScript::new([step]).part("SUB", [ScriptStep::say("sub")]));
    assert_eq!(model.name(), "scripted");
    let mut pieces = ReceivedPieces::default();
    let reply = model.ask(&request("go"), &mut |delta| pieces.add(delta)).unwrap();
    assert_eq!((reply.message.text.as_str(), reply.end), ("well", AnswerEnd::Calls));
    let calls: Vec<(String, String)> =
        reply.message.calls.iter().map(|it| (it.name.clone(), it.arguments.clone())).collect();
    let expected = [("Bash", "{\"command\":\"ls\"}"), ("Read", "{broken")];
    assert_eq!(calls, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(pieces, ReceivedPieces { text: "well".to_owned(), calls });
    let usage = TokenUsage { input: 1, cache_read: 3, cache_creation: 4, output: 2 };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(ask(&mut model, &request("SUB")).unwrap().message.text, "sub");
    assert_eq!(ask(&mut model, &request("go")).unwrap().message.text, "DONE");
}

#[test]
fn its_errors_are_those_of_a_server() {
    for (step, kind) in [
        (ScriptStep::fail(401), ModelErrorKind::Auth),
        (ScriptStep::fail(402), ModelErrorKind::PlanLimit),
        (ScriptStep::fail(413), ModelErrorKind::ContextLength),
        (
            ScriptStep { text: "prompt is too long".to_owned(), ..ScriptStep::fail(400) },
            ModelErrorKind::ContextLength,
        ),
        (ScriptStep::fail(429), ModelErrorKind::RateLimit),
        (ScriptStep::fail(503), ModelErrorKind::Overload),
        (ScriptStep::fail(529), ModelErrorKind::Overload),
        (ScriptStep::say("text").broken(AnswerDefect::Incomplete), ModelErrorKind::BadAnswer),
        (ScriptStep::default().broken(AnswerDefect::Html), ModelErrorKind::BadAnswer),
        (ScriptStep::default().broken(AnswerDefect::Nothing), ModelErrorKind::Timeout),
    ] {
        let mut model = InProcessModel::new(ModelScript::new([step.clone()]));
        let error = ask(&mut model, &request("go")).unwrap_err();
        assert_eq!((error.kind, error.status), (kind, step.status), "{step:?}");
    }
    let mut model =
        InProcessModel::new(ModelScript::new([ScriptStep::default().broken(AnswerDefect::Huge)]));
    assert_eq!(ask(&mut model, &request("go")).unwrap().message.text.len(), 1 << 20);
}

#[test]
fn it_can_be_cancelled_while_it_waits_and_while_it_answers() {
    let steps =
        [ScriptStep::say("late").with_delay(Duration::from_mins(10)), ScriptStep::say("now")];
    let mut model = InProcessModel::new(ModelScript::new(steps));
    for expected in [AnswerDelta::Waiting, AnswerDelta::Text("now")] {
        let result = model.ask(&request("go"), &mut |delta| {
            assert_eq!(delta, expected);
            ControlFlow::Break(())
        });
        assert_eq!(result.map_err(|error| error.kind), Err(ModelErrorKind::Cancelled));
    }
}

#[test]
fn after_a_restart_it_continues_and_repeats_no_id() {
    let script =
        ModelScript::new([ScriptStep::call("a", json!({})), ScriptStep::call("b", json!({}))]);
    let mut before = InProcessModel::new(script.clone());
    let mut after = InProcessModel::new(script).after(1);
    let call =
        |model: &mut InProcessModel| ask(model, &request("go")).unwrap().message.calls.remove(0);
    let first = call(&mut before);
    let second = call(&mut after);
    assert_eq!((first.name.as_str(), second.name.as_str()), ("a", "b"));
    assert_ne!(first.id, second.id);
    assert_eq!(call(&mut before), second);
}
