//! Who can be asked: the models of engines, and why one can't be.

use std::time::Duration;

use jackline_engine::Definition;
use jackline_engine::definition::ModelKind;
use jackline_host::environment::named_variable;
use jackline_model::scripted::InProcess;
use jackline_model::{ErrorKind, Key, Model, ModelError, ModelSpec, connect, open_local};

use super::{Opening, RunError, startable};
use crate::engines::{EngineKind, EngineSpec, Reach};
use crate::load::NOT_BY_WORKERS;
use crate::spec::{Acts, RunTask};

/// The longest silence of a model.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// Who works on a task: the one that a person names, the task's own, or the definition's.
/// `begun_by` is who has begun what goes on.
pub(super) fn engines(
    task: &RunTask,
    opening: &Opening,
    definition: &Definition,
    begun_by: Option<&str>,
) -> Result<Vec<EngineSpec>, RunError> {
    let first = first(task, opening, begun_by)?;
    // Where a run was begun, wherever it goes on.
    let begun_in = &opening.kept.started_in;
    let mut engines: Vec<EngineSpec> =
        first.into_iter().map(|engine| engine.beneath(begun_in)).collect();
    for choice in &definition.choices {
        engines.push(EngineSpec::of(choice, &task.scripts)?.beneath(begun_in));
    }
    for engine in &engines {
        can_be_asked(engine)?;
        startable::check(engine, opening, &task.prompt)?;
        if task.acts == Acts::Programs && engine.is_worker() {
            let reason = format!("`acts: programs` {NOT_BY_WORKERS}");
            return Err(RunError::Model { label: engine.label.clone(), reason });
        }
    }
    for choice in definition.advisor.iter().flat_map(|advisor| &advisor.models) {
        can_be_asked(&EngineSpec::of(choice, &task.scripts)?)?;
    }
    Ok(engines)
}

/// Who works first, where the definition does not say it. What a model has begun no script
/// goes on with, nor the other way round.
fn first(
    task: &RunTask,
    opening: &Opening,
    begun_by: Option<&str>,
) -> Result<Option<EngineSpec>, RunError> {
    let Some(own) = &task.engine else { return Ok(opening.engine.clone()) };
    let plays = matches!(own.kind, EngineKind::Script(_));
    match (begun_by, &opening.engine) {
        (Some(begun_by), _) if plays && begun_by == own.model_name() => Ok(Some(own.clone())),
        (Some(begun_by), None) if plays => {
            let reason = "it has begun this run, and the environment does not name it any more; set the key \
                          or the variable with which it was begun"
                .to_owned();
            Err(RunError::Model { label: begun_by.to_owned(), reason })
        }
        (_, named) => Ok(named.clone().or_else(|| Some(own.clone()))),
    }
}

/// The variables that hold keys of models, which are nothing for commands.
pub(super) fn key_names(task: &RunTask, opening: &Opening, definition: &Definition) -> Vec<String> {
    let first = [&opening.engine, &task.engine].into_iter().flatten();
    let first = first.filter_map(|engine| match &engine.kind {
        EngineKind::Model(reach) => reach.key_env.clone(),
        _ => None,
    });
    let advisors = definition.advisor.iter().flat_map(|advisor| &advisor.models);
    let named = definition.choices.iter().chain(advisors);
    let named = named.filter_map(|choice| match &choice.kind {
        ModelKind::Provider { key_env, .. } => key_env.clone(),
        _ => None,
    });
    first.chain(named).collect()
}

/// What is missing is said before anything is done, as far as anybody can know.
fn can_be_asked(engine: &EngineSpec) -> Result<(), RunError> {
    if let EngineKind::Model(Reach { key_env: Some(name), .. }) = &engine.kind
        && named_variable(name).is_none()
    {
        let reason = format!("the variable `{name}`, which `key_env` names, is not set");
        return Err(RunError::Model { label: engine.label.clone(), reason });
    }
    reach(engine, 0).map(drop)
}

/// The model of an engine; none where it is an agent program.
///
/// `asked` is how often it has answered before the supervisor was started again.
pub(super) fn reach(engine: &EngineSpec, asked: usize) -> Result<Option<Box<dyn Model>>, RunError> {
    let failed = |error: ModelError| RunError::Model {
        label: engine.label.clone(),
        reason: worded(engine, &error),
    };
    match &engine.kind {
        EngineKind::Script(script) => {
            Ok(Some(Box::new(InProcess::new(script.clone()).after(asked))))
        }
        EngineKind::Model(reach) => connect(&spec(reach)).map(Some).map_err(failed),
        EngineKind::Local(local) => open_local(local).map(Some).map_err(failed),
        EngineKind::Client { .. } | EngineKind::Command(_) => Ok(None),
    }
}

/// Why a model does not answer. Whoever has named a variable for the key is told of that one.
pub(super) fn worded(engine: &EngineSpec, error: &ModelError) -> String {
    let message = error.to_string();
    let EngineKind::Model(reach) = &engine.kind else { return message };
    match (error.kind, reach.provider.default_key_env(), &reach.key_env) {
        (ErrorKind::Auth, Some(usual), Some(named)) => message.replace(usual, named),
        _ => message,
    }
}

fn spec(reach: &Reach) -> ModelSpec {
    let usual = reach.provider.default_key_env();
    let variable = reach.key_env.as_deref().or(usual);
    ModelSpec {
        provider: reach.provider,
        name: reach.model.clone(),
        url: reach.url.clone(),
        key: variable.and_then(named_variable).map(|key| Key::new(&key)),
        timeout: reach.timeout,
        silence_max: SILENCE_MAX.min(reach.timeout),
    }
}
