//! The side that answers: a thread that has the model, and everything that it has read.

use std::num::NonZeroU32;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_2::token_type::LlamaTokenAttr;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};

use super::asked::{Heard, Question, Written};
use super::grammar::Form;
use super::prompt::{PROBE, harmless, marks, messages};
use super::words::Words;
use super::{LocalSpec, unusable};
use crate::ask::{End, Request, Usage};
use crate::error::{ErrorKind, ModelError};
use crate::refusal::shortened;

/// How many tokens a context holds unless told: the memory for what some models were trained
/// with would be more than a machine has.
const WINDOW_MAX: u32 = 8192;

/// How many tokens are read at once. Between two of these is looked whether anybody waits.
const BATCH: usize = 128;

/// The same choice among the same words every time.
const SEED: u32 = 1;

/// How long the reason of a grammar may be that can't be followed.
const REASON_CHARS_MAX: usize = 240;

/// The library, which a process has once and keeps.
static BACKEND: LazyLock<Result<LlamaBackend, String>> = LazyLock::new(|| {
    let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
    backend.void_logs();
    Ok(backend)
});

/// Answers questions until nobody has any. A model that can't be loaded answers the first
/// with the reason, and is gone.
pub(super) fn run(spec: &LocalSpec, questions: Receiver<Question>) {
    let Ok(mut question) = questions.recv() else { return };
    let sit = || {
        let backend =
            BACKEND.as_ref().map_err(|reason| bad(&format!("no model runs: {reason}")))?;
        Ok((backend, load(spec, backend, &question)?))
    };
    // Whoever is told that nobody sits here asks somebody new, so the seat is gone by then.
    let (backend, model) = match sit() {
        Ok(sat) => sat,
        Err(error) => {
            drop(questions);
            return tell(&question, Err(error));
        }
    };
    let mut seat = match Seat::new(spec, backend, &model) {
        Ok(seat) => seat,
        Err(error) => {
            drop(questions);
            return tell(&question, Err(error));
        }
    };
    loop {
        let written = seat.write(&question);
        tell(&question, written);
        match questions.recv() {
            Ok(next) => question = next,
            Err(_) => return,
        }
    }
}

/// Tells how it ended; nobody may be there any more.
fn tell(question: &Question, written: Result<Written, ModelError>) {
    let _ = question.answers.send(Heard::Ended(written));
}

fn load(
    spec: &LocalSpec,
    backend: &LlamaBackend,
    question: &Question,
) -> Result<LlamaModel, ModelError> {
    let left = Arc::clone(&question.left);
    let goes_on = move |_: f32| !left.load(std::sync::atomic::Ordering::SeqCst);
    let params = LlamaModelParams::default().with_progress_callback(goes_on);
    LlamaModel::load_from_file(backend, &spec.path, &params).map_err(|_| {
        question.goes_on().err().unwrap_or_else(|| {
            let why =
                "can't be loaded: it is cut off, damaged, or of a kind that is not known here";
            unusable(spec, why)
        })
    })
}

/// A model and its context.
struct Seat<'m> {
    model: &'m LlamaModel,
    context: LlamaContext<'m>,
    template: LlamaChatTemplate,
    /// What makes grammars ready for this model's words.
    factory: ParserFactory,
    /// Signs of the template's own.
    signs: Vec<String>,
    /// What the context has read, and written.
    held: Vec<LlamaToken>,
    /// Where in the last batch the next word is foretold.
    last: i32,
}

impl<'m> Seat<'m> {
    fn new(
        spec: &LocalSpec,
        backend: &LlamaBackend,
        model: &'m LlamaModel,
    ) -> Result<Self, ModelError> {
        let template = model.chat_template(None).map_err(|_| {
            unusable(
                spec,
                "has no chat template, so it can't be talked to: take one that is tuned for chats",
            )
        })?;
        let trained = model.n_ctx_train();
        let wanted = spec.window.map(|window| u32::try_from(window).unwrap_or(u32::MAX));
        let window = wanted.unwrap_or(WINDOW_MAX).min(trained).max(1);
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = i32::try_from(threads).unwrap_or(1);
        let batch = u32::try_from(BATCH).unwrap_or(1);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(window))
            .with_n_batch(batch)
            .with_n_ubatch(batch)
            .with_n_threads(threads)
            .with_n_threads_batch(threads);
        let context = model.new_context(backend, params).map_err(|_| {
            bad(&format!(
                "there is no room for a context of {window} tokens; set a smaller `window`"
            ))
        })?;
        let mut factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model))
            .map_err(|error| bad(&format!("the words of the model can't be used: {error}")))?;
        factory.quiet();
        let signs = signs(model, &template);
        Ok(Self { model, context, template, factory, signs, held: Vec::new(), last: 0 })
    }

    /// Answers one question.
    fn write(&mut self, question: &Question) -> Result<Written, ModelError> {
        let request = &question.request;
        let prompt = self.prompt(request)?;
        let window = usize::try_from(self.context.n_ctx()).unwrap_or(usize::MAX);
        if prompt.len() >= window {
            let length = prompt.len();
            let message =
                format!("the conversation has {length} tokens, and the model's context {window}");
            return Err(ModelError::new(ErrorKind::ContextLength, message));
        }
        let mut matcher = self.matcher(&question.forms)?;
        let known = self.rewind(&prompt);
        for part in prompt.get(known..).unwrap_or_default().chunks(BATCH) {
            question.goes_on()?;
            self.read(part)?;
        }
        // Whatever is asked for, the context is full some time.
        let wanted = usize::try_from(request.output_tokens_max).unwrap_or(usize::MAX);
        let room = if wanted == 0 { usize::MAX } else { wanted }.min(window - prompt.len());
        let mut sampler = LlamaSampler::chain_simple([
            LlamaSampler::top_k(40),
            LlamaSampler::min_p(0.05, 1),
            LlamaSampler::temp(0.3),
            LlamaSampler::dist(SEED),
        ]);
        let (mut words, mut count) = (Words::default(), 0);
        let end = loop {
            if count >= room {
                break End::Length;
            }
            question.goes_on()?;
            let token = self.choose(matcher.as_mut(), &mut sampler)?;
            count += 1;
            if self.model.vocab().is_eog(token) {
                break End::Turn;
            }
            let text = words.take(&self.model.vocab().token_to_piece(token, false, None));
            // That nobody is there any more is seen in the next round.
            let _ = question.answers.send(Heard::Text(text));
            if let Some(matcher) = &mut matcher {
                matcher.consume_token(token.0.cast_unsigned()).map_err(|error| off(&error))?;
                if matcher.is_stopped() {
                    break End::Turn;
                }
            }
            self.read(&[token])?;
        };
        let tokens = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let usage = Usage {
            input: tokens(prompt.len() - known),
            cache_read: tokens(known),
            cache_creation: 0,
            output: tokens(count),
        };
        Ok(Written { end, usage, window: tokens(window) })
    }

    /// The conversation in the words of the model's own template.
    fn prompt(&self, request: &Request) -> Result<Vec<LlamaToken>, ModelError> {
        let said = messages(request).into_iter().map(|(role, text)| {
            let text = harmless(&text, &self.signs).replace('\0', "\u{fffd}");
            LlamaChatMessage::new(role.as_str().to_owned(), text)
        });
        let said: Vec<LlamaChatMessage> = said
            .collect::<Result<_, _>>()
            .map_err(|error| bad(&format!("the conversation can't be told: {error}")))?;
        let text = self.model.apply_chat_template(&self.template, &said, true).map_err(|_| {
            bad("the model's chat template is none that is known here; ask a server of llama.cpp instead")
        })?;
        Ok(self.model.vocab().tokenize(text.as_bytes(), true, true))
    }

    /// The first form that can be followed; none where the answer is free.
    fn matcher(&self, forms: &[Form]) -> Result<Option<Matcher>, ModelError> {
        let mut reason = None;
        for form in forms {
            let grammar = match form {
                Form::Document(schema) => TopLevelGrammar::from_json_schema(schema.clone()),
                Form::Grammar(text) => TopLevelGrammar::from_lark(text.clone()),
            };
            let matcher = Matcher::new(self.factory.create_parser(grammar));
            match matcher.get_error() {
                None => return Ok(Some(matcher)),
                Some(error) => reason = reason.or(Some(error)),
            }
        }
        match reason {
            None => Ok(None),
            Some(reason) => {
                let reason = shortened(&reason, REASON_CHARS_MAX);
                Err(bad(&format!(
                    "no answer can be held to this schema while it is written: {reason}"
                )))
            }
        }
    }

    /// Forgets what does not belong to the conversation; how much of it is known already. The
    /// last word is always read again: what follows it is foretold only then.
    fn rewind(&mut self, prompt: &[LlamaToken]) -> usize {
        let same = self.held.iter().zip(prompt).take_while(|(held, wanted)| held == wanted).count();
        let known = same.min(prompt.len().saturating_sub(1));
        let from = u32::try_from(known).ok();
        // Some kinds of models can't forget the end of what they have read.
        let kept = self.context.clear_kv_cache_seq(Some(0), from, None).unwrap_or(false);
        let known = if kept { known } else { 0 };
        if !kept {
            self.context.clear_kv_cache();
        }
        self.held.truncate(known);
        known
    }

    /// Reads tokens, at most a batch.
    fn read(&mut self, tokens: &[LlamaToken]) -> Result<(), ModelError> {
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        let begin = i32::try_from(self.held.len()).unwrap_or(i32::MAX);
        for (position, (number, token)) in (begin..).zip(tokens.iter().enumerate()) {
            let is_last = number + 1 == tokens.len();
            batch.add(*token, position, &[0], is_last).map_err(|error| fault(&error))?;
        }
        self.context.decode(&mut batch).map_err(|error| {
            // What of it was read is not known.
            self.held.clear();
            self.context.clear_kv_cache();
            fault(&error)
        })?;
        self.last = batch.n_tokens() - 1;
        self.held.extend_from_slice(tokens);
        Ok(())
    }

    /// Chooses the next word among those that are allowed.
    fn choose(
        &self,
        matcher: Option<&mut Matcher>,
        sampler: &mut LlamaSampler,
    ) -> Result<LlamaToken, ModelError> {
        let all = self.context.candidates_ith(self.last);
        let mut candidates = match matcher {
            None => LlamaTokenDataArray::from_iter(all, false),
            Some(matcher) => {
                // A matcher that fails allows nothing: an answer that nobody holds to its
                // form is worse than none.
                let allowed = matcher.compute_mask_or_eos().map_err(|error| off(&error))?;
                let fits = |word: &llama_cpp_2::token::data::LlamaTokenData| {
                    allowed.is_allowed(word.id().0.cast_unsigned())
                };
                LlamaTokenDataArray::from_iter(all.filter(fits), false)
            }
        };
        if candidates.data.is_empty() {
            return Err(off(&"no word is allowed"));
        }
        candidates.apply_sampler(sampler);
        candidates.selected_token().ok_or_else(|| fault(&"no word was chosen"))
    }
}

/// What a template says with single tokens, such as the end of a message, or in words.
fn signs(model: &LlamaModel, template: &LlamaChatTemplate) -> Vec<String> {
    let vocab = model.vocab();
    let mut signs: Vec<String> = Vec::new();
    for token in vocab.tokens() {
        let text = || vocab.token_to_piece(token, true, None);
        let own = vocab.is_control(token) || vocab.is_eog(token);
        let by_user =
            || vocab.attr(token).contains(LlamaTokenAttr::UserDefined) && text().starts_with(b"<");
        if own || by_user() {
            signs.extend(String::from_utf8(text()));
        }
    }
    let said = PROBE
        .map(|(role, text)| LlamaChatMessage::new(role.as_str().to_owned(), text.to_owned()).ok());
    let said: Vec<LlamaChatMessage> = said.into_iter().flatten().collect();
    // One that is not known here is refused with the first question.
    if let Ok(probed) = model.apply_chat_template(template, &said, true) {
        signs.extend(marks(&probed));
    }
    // A longer one is looked for before what it begins with.
    signs.sort_by_key(|sign| std::cmp::Reverse(sign.len()));
    signs.retain(|sign| !sign.is_empty());
    signs
}

fn bad(message: &str) -> ModelError {
    ModelError::new(ErrorKind::BadRequest, message)
}

/// The answer could not be kept within its form.
fn off(error: &dyn std::fmt::Display) -> ModelError {
    let reason = shortened(&error.to_string(), REASON_CHARS_MAX);
    let message = format!("the answer could not be held to its form: {reason}");
    ModelError::new(ErrorKind::BadAnswer, message)
}

fn fault(error: &dyn std::fmt::Display) -> ModelError {
    ModelError::new(ErrorKind::BadAnswer, format!("the model can't go on: {error}"))
}
