//! Has the model write, and finds what it wrote in what it said.

use jackline_attempt::{Ask, Generator, ProviderError};
use jackline_model::Reply;
use jackline_sandbox_host::{Host as _, Program};

use crate::author::{model_failure, provider_error};
use crate::call::Calling;
use crate::call::caller::Caller;
use crate::extract;
use crate::prompt::{Says, render};
use crate::told::What;

pub(super) struct Writer<'a, 's, 'r> {
    pub(super) calling: &'a Calling<'s, 'r>,
}

/// Has programs written.
pub(super) struct ProgramWriter<'a, 's, 'r>(pub(super) Writer<'a, 's, 'r>);

/// Has plans written.
pub(super) struct PlanWriter<'a, 's, 'r>(pub(super) Writer<'a, 's, 'r>);

/// A plan as the model wrote it.
pub(super) struct Written {
    pub(super) text: String,
}

impl Generator for ProgramWriter<'_, '_, '_> {
    type Artifact = Program;

    fn generate(&mut self, ask: &Ask) -> Result<Program, ProviderError> {
        let arguments = self.0.calling.arguments.clone();
        let source = self.0.write(ask, extract::program)?;
        Ok(Program { source, arguments })
    }
}

impl Generator for PlanWriter<'_, '_, '_> {
    type Artifact = Written;

    fn generate(&mut self, ask: &Ask) -> Result<Written, ProviderError> {
        // Fences and prose are the decoder's matter.
        let text = self.0.write(ask, |reply| extract::said(reply).map(ToOwned::to_owned))?;
        Ok(Written { text })
    }
}

impl Writer<'_, '_, '_> {
    fn write(
        &mut self,
        ask: &Ask,
        find: impl FnOnce(&Reply) -> Result<String, ProviderError>,
    ) -> Result<String, ProviderError> {
        let written = self.ask(ask).and_then(|reply| find(&reply));
        match &written {
            Ok(text) => {
                self.calling.written.replace(text.clone());
                self.calling.tell(What::Generated { lines: text.lines().count() });
            }
            Err(error) => self.calling.tell(What::NotGenerated {
                error_type: error.error_type.clone(),
                message: error.message.clone(),
            }),
        }
        written
    }

    fn ask(&self, ask: &Ask) -> Result<Reply, ProviderError> {
        let Self { calling } = self;
        if calling.shared.is_cancelled() {
            return Err(provider_error("cancelled", "the task was cancelled"));
        }
        let texts = calling.shared.front.borrow_mut().take_texts();
        let request = render(&Says {
            artifact: calling.task.artifact,
            prompt: &calling.task.prompt,
            arguments: &calling.arguments,
            context: &calling.context(),
            known: &Caller::new(calling).known(),
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
