//! Asks the model for artifacts, and extracts them from its answers.

use std::cell::RefCell;

use jackline_attempt::{GenerationRequest, Generator, ProviderError, Subtype, Validator as _};
use jackline_model::ModelReply;
use jackline_sandbox_host::{ProgramHost as _, PythonProgram, checker_and_runner};
use serde_json::Map;

use crate::attempt_event::AttemptEventKind;
use crate::author::{model_failure, provider_error};
use crate::extract;
use crate::prompt::{PromptParts, render_request};
use crate::running_call::RunningCall;
use crate::running_call::attempt_host::AttemptHost;

pub(super) struct ArtifactWriter<'a, 's, 'r> {
    pub(super) calling: &'a RunningCall<'s, 'r>,
}

/// Generates programs.
pub(super) struct ProgramWriter<'a, 's, 'r>(pub(super) ArtifactWriter<'a, 's, 'r>);

/// Generates plans.
pub(super) struct PlanWriter<'a, 's, 'r>(pub(super) ArtifactWriter<'a, 's, 'r>);

/// The text of a plan, as the model wrote it.
pub(super) struct WrittenPlan {
    pub(super) text: String,
}

impl Generator for ProgramWriter<'_, '_, '_> {
    type Artifact = PythonProgram;

    fn generate(&mut self, ask: &GenerationRequest) -> Result<PythonProgram, ProviderError> {
        let arguments = self.0.calling.arguments.clone();
        let calling = self.0.calling;
        let check = |source: &str| check_syntax(calling, source);
        let source = self.0.write(ask, |reply| extract::extract_program(reply, check))?;
        Ok(PythonProgram { source, arguments })
    }
}

impl Generator for PlanWriter<'_, '_, '_> {
    type Artifact = WrittenPlan;

    fn generate(&mut self, ask: &GenerationRequest) -> Result<WrittenPlan, ProviderError> {
        let text = self.0.write(ask, extract::extract_plan)?;
        Ok(WrittenPlan { text })
    }
}

/// Why a text is no program at all. A program that breaks another rule passes here; the check of
/// programs refuses it.
fn check_syntax(calling: &RunningCall<'_, '_>, source: &str) -> Result<(), String> {
    let shared = calling.shared;
    let host = RefCell::new(AttemptHost::new(calling));
    let (mut checker, _) = checker_and_runner(&shared.workers, &host, shared.limits, calling.depth);
    let program = PythonProgram { source: source.to_owned(), arguments: Map::new() };
    let violations = checker.validate(&program);
    match violations.iter().find(|violation| violation.subtype == Subtype::SyntaxError.into()) {
        Some(violation) => Err(violation.message.clone()),
        None => Ok(()),
    }
}

impl ArtifactWriter<'_, '_, '_> {
    fn write(
        &mut self,
        ask: &GenerationRequest,
        find: impl FnOnce(&ModelReply) -> Result<String, ProviderError>,
    ) -> Result<String, ProviderError> {
        let written = self.ask(ask).and_then(|reply| find(&reply));
        match &written {
            Ok(text) => {
                self.calling.last_artifact.replace(text.clone());
                self.calling.emit(AttemptEventKind::Generated { lines: text.lines().count() });
            }
            Err(error) => self.calling.emit(AttemptEventKind::NotGenerated {
                error_type: error.error_type.clone(),
                message: error.message.clone(),
            }),
        }
        written
    }

    fn ask(&self, ask: &GenerationRequest) -> Result<ModelReply, ProviderError> {
        let Self { calling } = self;
        if calling.shared.is_cancelled() {
            return Err(provider_error("cancelled", "the task was cancelled"));
        }
        let texts = calling.shared.front.borrow_mut().take_texts();
        let request = render_request(&PromptParts {
            artifact: calling.task.artifact,
            prompt: &calling.task.prompt,
            arguments: &calling.arguments,
            context: &calling.context(),
            known: &AttemptHost::new(calling).callables(),
            texts: texts.as_deref(),
            ask,
        });
        let mut author = calling.author.borrow_mut();
        let reply = author.write(&request).map_err(|error| model_failure(&error))?;
        if let Some(usage) = reply.usage {
            let mut front = calling.shared.front.borrow_mut();
            let input = usage.input + usage.cache_read + usage.cache_creation;
            front.report_usage(author.name(), input, usage.output);
        }
        Ok(reply)
    }
}
