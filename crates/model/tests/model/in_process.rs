//! The scripted model without a server.

use std::ops::ControlFlow;
use std::time::Duration;

use jackline_model::scripted::{Broken, InProcess, Script, Step, Usage as Cost};
use jackline_model::{Delta, End, ErrorKind, Model, Usage};
use serde_json::json;

use crate::world::{Heard, ask, request};

#[test]
fn it_says_and_calls_what_the_script_does() {
    let cost = Cost { input: 1, output: 2, cache_read: 3, cache_creation: 4 };
    let step = Step::say("well")
        .and_call("Bash", json!({ "command": "ls" }))
        .and_call_with("Read", "{broken")
        .costing(cost);
    let mut model = InProcess::new(Script::new([step]).part("SUB", [Step::say("sub")]));
    assert_eq!(model.name(), "scripted");
    let mut heard = Heard::default();
    let reply = model.ask(&request("go"), &mut |delta| heard.take(delta)).unwrap();
    assert_eq!((reply.said.text.as_str(), reply.end), ("well", End::Calls));
    let calls: Vec<(String, String)> =
        reply.said.calls.iter().map(|it| (it.name.clone(), it.arguments.clone())).collect();
    let expected = [("Bash", "{\"command\":\"ls\"}"), ("Read", "{broken")];
    assert_eq!(calls, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(heard, Heard { text: "well".to_owned(), calls });
    let usage = Usage { input: 1, cache_read: 3, cache_creation: 4, output: 2 };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(ask(&mut model, &request("SUB")).unwrap().said.text, "sub");
    assert_eq!(ask(&mut model, &request("go")).unwrap().said.text, "DONE");
}

#[test]
fn its_failures_are_those_of_a_server() {
    for (step, kind) in [
        (Step::fail(401), ErrorKind::Auth),
        (Step::fail(402), ErrorKind::PlanLimit),
        (Step::fail(413), ErrorKind::ContextLength),
        (
            Step { text: "prompt is too long".to_owned(), ..Step::fail(400) },
            ErrorKind::ContextLength,
        ),
        (Step::fail(429), ErrorKind::RateLimit),
        (Step::fail(503), ErrorKind::Overload),
        (Step::fail(529), ErrorKind::Overload),
        (Step::say("text").broken(Broken::Half), ErrorKind::BadAnswer),
        (Step::default().broken(Broken::Html), ErrorKind::BadAnswer),
        (Step::default().broken(Broken::Nothing), ErrorKind::Timeout),
    ] {
        let mut model = InProcess::new(Script::new([step.clone()]));
        let error = ask(&mut model, &request("go")).unwrap_err();
        assert_eq!((error.kind, error.status), (kind, step.status), "{step:?}");
    }
    let mut model = InProcess::new(Script::new([Step::default().broken(Broken::Huge)]));
    assert_eq!(ask(&mut model, &request("go")).unwrap().said.text.len(), 1 << 20);
}

#[test]
fn it_can_be_broken_off_while_it_waits_and_while_it_speaks() {
    let steps = [Step::say("late").after(Duration::from_mins(10)), Step::say("now")];
    let mut model = InProcess::new(Script::new(steps));
    for expected in [Delta::Waiting, Delta::Text("now")] {
        let found = model.ask(&request("go"), &mut |delta| {
            assert_eq!(delta, expected);
            ControlFlow::Break(())
        });
        assert_eq!(found.map_err(|error| error.kind), Err(ErrorKind::Cancelled));
    }
}

#[test]
fn after_a_restart_it_goes_on_where_it_was_and_no_id_comes_twice() {
    let script = Script::new([Step::call("a", json!({})), Step::call("b", json!({}))]);
    let mut before = InProcess::new(script.clone());
    let mut after = InProcess::new(script).after(1);
    let call = |model: &mut InProcess| ask(model, &request("go")).unwrap().said.calls.remove(0);
    let first = call(&mut before);
    let second = call(&mut after);
    assert_eq!((first.name.as_str(), second.name.as_str()), ("a", "b"));
    assert_ne!(first.id, second.id);
    assert_eq!(call(&mut before), second);
}
