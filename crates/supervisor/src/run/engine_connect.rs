//! Resolves the engines of a run and connects to their models.

use std::time::Duration;

use jackline_engine::Definition;
use jackline_engine::definition::ModelKind;
use jackline_host::environment::named_variable;
use jackline_model::scripted::InProcessModel;
use jackline_model::{
    ApiKey, Model, ModelError, ModelErrorKind, RemoteModelSpec, connect, open_local_model,
};

use super::{RunError, RunOptions, program_check};
use crate::engines::{EngineKind, EngineSpec, RemoteModel};
use crate::run_task::{ActionMode, RunTask};
use crate::run_task_reader::PROGRAMS_NEED_MODEL;

/// How long a model may send nothing.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// The engines of a run, in order: the one that a person names or the task's own, then those of the
/// definition. `begun_by` is the model that started the run, if it is resumed.
pub(super) fn resolve_engines(
    task: &RunTask,
    opening: &RunOptions,
    definition: &Definition,
    begun_by: Option<&str>,
) -> Result<Vec<EngineSpec>, RunError> {
    let first = first_engine(task, opening, begun_by)?;
    // Relative model paths belong to the directory in which the run was started, also after a
    // resume.
    let begun_in = &opening.record.started_in;
    let mut engines: Vec<EngineSpec> =
        first.into_iter().map(|engine| engine.with_paths_in(begun_in)).collect();
    for choice in &definition.choices {
        engines.push(EngineSpec::from_choice(choice, &task.scripts)?.with_paths_in(begun_in));
    }
    for engine in &engines {
        check_reachable(engine)?;
        program_check::check_startable(engine, opening, &task.prompt)?;
        if task.action_mode == ActionMode::Programs && engine.is_worker() {
            let reason = format!("`acts: programs` {PROGRAMS_NEED_MODEL}");
            return Err(RunError::Model { label: engine.label.clone(), reason });
        }
    }
    for choice in definition.advisor.iter().flat_map(|advisor| &advisor.models) {
        check_reachable(&EngineSpec::from_choice(choice, &task.scripts)?)?;
    }
    Ok(engines)
}

/// The first engine, if the person or the task names one. A script must not continue the work of a
/// model, nor a model the work of a script.
fn first_engine(
    task: &RunTask,
    opening: &RunOptions,
    begun_by: Option<&str>,
) -> Result<Option<EngineSpec>, RunError> {
    let Some(own) = &task.engine else { return Ok(opening.engine.clone()) };
    let plays = matches!(own.kind, EngineKind::Script(_));
    match (begun_by, &opening.engine) {
        (Some(begun_by), _) if plays && begun_by == own.model_name() => Ok(Some(own.clone())),
        (Some(begun_by), None) if plays => {
            let reason = "it started this run, but the environment no longer names it; set the API key or the \
                          variable that was set at the start"
                .to_owned();
            Err(RunError::Model { label: begun_by.to_owned(), reason })
        }
        (_, named) => Ok(named.clone().or_else(|| Some(own.clone()))),
    }
}

/// The variables that contain API keys of models. Commands must not see them.
pub(super) fn key_variables(
    task: &RunTask,
    opening: &RunOptions,
    definition: &Definition,
) -> Vec<String> {
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

/// Reports missing variables and files before the run starts, as far as they can be checked.
fn check_reachable(engine: &EngineSpec) -> Result<(), RunError> {
    if let EngineKind::Model(RemoteModel { key_env: Some(name), .. }) = &engine.kind
        && named_variable(name).is_none()
    {
        let reason = format!("the variable `{name}`, which `key_env` names, is not set");
        return Err(RunError::Model { label: engine.label.clone(), reason });
    }
    connect_engine(engine, 0).map(drop)
}

/// Connects to the model of an engine; `None` for an agent program.
///
/// `asked` is the number of answers that the model gave before this process.
pub(super) fn connect_engine(
    engine: &EngineSpec,
    asked: usize,
) -> Result<Option<Box<dyn Model>>, RunError> {
    let failed = |error: ModelError| RunError::Model {
        label: engine.label.clone(),
        reason: error_text(engine, &error),
    };
    match &engine.kind {
        EngineKind::Script(script) => {
            Ok(Some(Box::new(InProcessModel::new(script.clone()).after(asked))))
        }
        EngineKind::Model(reach) => connect(&model_spec(reach)).map(Some).map_err(failed),
        EngineKind::Local(local) => open_local_model(local).map(Some).map_err(failed),
        EngineKind::Client { .. } | EngineKind::Command(_) => Ok(None),
    }
}

/// The text of a model error. If the engine names its own key variable, the text names that one.
pub(super) fn error_text(engine: &EngineSpec, error: &ModelError) -> String {
    let message = error.to_string();
    let EngineKind::Model(reach) = &engine.kind else { return message };
    match (error.kind, reach.provider.default_key_env(), &reach.key_env) {
        (ModelErrorKind::Auth, Some(usual), Some(named)) => message.replace(usual, named),
        _ => message,
    }
}

fn model_spec(reach: &RemoteModel) -> RemoteModelSpec {
    let usual = reach.provider.default_key_env();
    let variable = reach.key_env.as_deref().or(usual);
    RemoteModelSpec {
        provider: reach.provider,
        name: reach.model.clone(),
        url: reach.url.clone(),
        key: variable.and_then(named_variable).map(|key| ApiKey::new(&key)),
        timeout: reach.timeout,
        silence_max: SILENCE_MAX.min(reach.timeout),
    }
}
