//! Tests of the answers of programs.

use jackline_attempt::{ArtifactFault, ArtifactOutcome, InternalOutcome, OutcomeError};
use serde_json::{Value, json};

use crate::world::{INTERNAL_TEXT, SandboxWorld, violation_text};

#[test]
fn data_goes_in_and_out_unchanged() {
    let world = SandboxWorld::new();
    let data = json!({
        "none": null, "yes": true, "int": -7, "huge": u64::MAX, "half": 0.5,
        "text": "ä\n\"", "list": [1, [2, {"deep": []}]],
    });
    world.state.borrow_mut().context.insert("data".to_owned(), data.clone());
    assert_eq!(world.answer("ok(context['data'])"), data);
    assert_eq!(world.answer("ok(tool('echo')(data=context['data']))"), json!({ "data": data }));
    assert_eq!(world.answer("ok((1, (2, 3)))"), json!([1, [2, 3]]));
    assert_eq!(world.answer("ok()"), Value::Null);
}

#[test]
fn the_first_answer_ends_the_program() {
    let world = SandboxWorld::new();
    let source = "def work():\n    return ok(1)\nwork()\ntool('echo')(a=1)\nok(2)";
    assert_eq!(world.answer(source), json!(1));
    assert_eq!(world.answer("try:\n    ok(1)\nfinally:\n    ok(2)"), json!(1));
    assert_eq!(world.answer("try:\n    ok(1)\nexcept BaseException:\n    ok(2)"), json!(1));
    assert_eq!(world.answer("if __name__ == '__main__':\n    return ok(3)"), json!(3));
    assert!(world.called().is_empty());
}

#[test]
fn an_error_is_an_outcome_of_its_own() {
    let world = SandboxWorld::new();
    let expected = OutcomeError::new("not_found", "no such film", false);
    assert_eq!(
        world.run("error('not_found', 'no such film')"),
        Ok(ArtifactOutcome::Error(expected))
    );
    let expected = OutcomeError::new("busy", "later", true);
    let source = "error(type='busy', message='later', retriable=True)";
    assert_eq!(world.run(source), Ok(ArtifactOutcome::Error(expected)));
}

#[test]
fn a_program_without_an_answer_has_failed() {
    let world = SandboxWorld::new();
    for source in ["", "1 + 1", "tool('echo')(a=1)", "x = {'status': 'ok', 'value': 1}\nx"] {
        let (error_type, message) = world.fault(source);
        assert_eq!(error_type, "execution", "{source}");
        assert!(message.contains("ok(value) or error(type, message)"), "{message}");
    }
}

#[test]
fn the_context_is_stored_only_after_a_success() {
    let world = SandboxWorld::new();
    world.answer("context['seen'] = [1]\nok(1)");
    assert_eq!(Value::from(world.state.borrow().context.clone()), json!({ "seen": [1] }));
    world.run("context['seen'].append(2)\nerror('busy', 'later')").unwrap();
    world.run("context['seen'].append(3)\nraise ValueError('x')").unwrap_err();
    assert_eq!(world.answer("context['seen'].append(4)\nok(context['seen'])"), json!([1, 4]));
    // The keys of the host are not stored, whatever the program does with them.
    world.answer("context['tools'].clear()\ndelegates = context['delegates']\nok(1)");
    assert_eq!(Value::from(world.state.borrow().context.clone()), json!({ "seen": [1, 4] }));
    let fault = world.fault("context['seen'] = {1, 2}\nok(1)");
    assert_eq!(fault.0, "non_serializable_result");
    assert!(fault.1.starts_with("context[\"seen\"] is a set"), "{}", fault.1);
}

#[test]
fn an_answer_with_external_data_needs_sources() {
    let world = SandboxWorld::new();
    let source = |answer: &str| format!("page = tool('fetch')(url='https://a')\n{answer}");
    let judged = |answer: &str| {
        let (outcome, violations, ran) = world.run_and_judge(&source(answer));
        assert!(outcome.is_ok());
        assert_eq!(ran.external, ["fetch"]);
        violations.iter().map(violation_text).collect::<Vec<_>>()
    };
    let missing = ["missing_external_provenance 2:1".to_owned()];
    assert_eq!(judged("ok(page['body'])"), missing);
    assert_eq!(judged("ok(page['body'], sources=[{'uri': 'https://a'}])"), missing);
    let complete = |mode: &str| {
        format!(
            "ok(1, sources=[{{'uri': 'https://a', 'fetched_at': '2026-01-01T00:00:00Z', \
             'retrieval_tool': 'fetch', 'retrieval_mode': '{mode}'}}])"
        )
    };
    assert_eq!(judged(&complete("guessed")), missing);
    for mode in ["live", "cached", "fixture"] {
        assert_eq!(judged(&complete(mode)), [""; 0]);
    }
    // There is no external data here, and an error is no answer.
    assert_eq!(judged("error('low_utility', 'nothing there')"), [""; 0]);
    assert!(world.run_and_judge("ok(tool('echo')(a=1))").1.is_empty());
    let (_, violations, _) = world.run_and_judge("ok(delegate('scout', q='x')['value'])");
    assert_eq!(violations.len(), 1);
}

#[test]
fn a_delegate_runs_one_level_deeper_and_its_outcome_can_be_passed_on() {
    let world = SandboxWorld::new();
    assert_eq!(world.answer("ok(delegate('helper', task='x')['value'])"), json!({ "task": "x" }));
    assert_eq!(world.state.borrow().depths, [1]);

    for source in ["delegate('lost', a=1)", "it = delegate('lost', a=1)\nreturn it"] {
        let Ok(ArtifactOutcome::Child(child)) = world.run(source) else { panic!("{source}") };
        let InternalOutcome::InternalError { error, .. } = *child else { panic!("{child:?}") };
        assert_eq!(error.error_message, INTERNAL_TEXT, "the parent gets the internal text");
    }
    // A dictionary with the same shape is no outcome of a delegate.
    let forged = "delegate('helper', a=1)\nreturn {'status': 'ok', 'value': {'a': 2}}";
    assert_eq!(world.fault(forged).0, "execution");
}

#[test]
fn internal_text_of_a_delegate_must_not_be_in_the_answer() {
    let world = SandboxWorld::new();
    let judged = |answer: &str| {
        let source = format!("it = delegate('lost', a=1)\n{answer}");
        world.run_and_judge(&source).1.iter().map(violation_text).collect::<Vec<_>>()
    };
    let leak = ["internal_text_leak 2:1".to_owned()];
    assert_eq!(judged("ok({'why': ['It said: ' + it['error_message']]})"), leak);
    assert_eq!(judged("error('failed', it['error_message'])"), leak);
    assert_eq!(judged("error('failed', 'the helper failed: ' + it['error_type'])"), [""; 0]);
    assert_eq!(judged("return it"), [""; 0]);
}

#[test]
fn the_depth_of_delegates_is_limited() {
    let mut world = SandboxWorld::new();
    world.depth = world.limits.depth_max;
    let Err(ArtifactFault::Refused(violations)) = world.run("x = 1\nok(delegate('helper', a=1))")
    else {
        panic!("it went deeper")
    };
    assert_eq!(violations.iter().map(violation_text).collect::<Vec<_>>(), ["tool_denied 2:4"]);
    assert!(world.called().is_empty());
}
