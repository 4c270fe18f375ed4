//! The thread of a local model, with the loaded model and everything that it has read.

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

use super::grammar::AnswerForm;
use super::local_model::{FinishedAnswer, LocalRequest, ModelThreadEvent};
use super::prompt::{PROBE, chat_messages, escape_markers, template_markers};
use super::token_decoder::TokenDecoder;
use super::{LocalModelSpec, unusable_file_error};
use crate::conversation::{AnswerEnd, ModelRequest, TokenUsage};
use crate::error::{ModelError, ModelErrorKind};
use crate::provider_error::shorten;

/// The default limit of the context window: the memory for the trained window of some models would
/// exceed that of the machine.
const WINDOW_TOKENS_MAX: u32 = 8192;

/// How many tokens are read at once. Between two batches, the thread checks whether the caller
/// still waits.
const BATCH_TOKENS_MAX: usize = 128;

/// A fixed seed, so that the same input gives the same output.
const SEED: u32 = 1;

/// The maximum length of the reason why a grammar is not supported.
const REASON_CHARS_MAX: usize = 240;

/// The library, which is initialised once per process.
static BACKEND: LazyLock<Result<LlamaBackend, String>> = LazyLock::new(|| {
    let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
    backend.void_logs();
    Ok(backend)
});

/// Answers requests until the sender is dropped. If the model can't be loaded, answers the first
/// request with the error and ends.
pub(super) fn run_model_thread(spec: &LocalModelSpec, questions: Receiver<LocalRequest>) {
    let Ok(mut question) = questions.recv() else { return };
    let open_model = || {
        let backend = BACKEND
            .as_ref()
            .map_err(|reason| bad_request(&format!("can't start llama.cpp: {reason}")))?;
        Ok((backend, load_model(spec, backend, &question)?))
    };
    // A caller that gets an error starts a new thread, so the receiver must be dropped before.
    let (backend, model) = match open_model() {
        Ok(opened) => opened,
        Err(error) => {
            drop(questions);
            return send_result(&question, Err(error));
        }
    };
    let mut seat = match LoadedModel::new(spec, backend, &model) {
        Ok(seat) => seat,
        Err(error) => {
            drop(questions);
            return send_result(&question, Err(error));
        }
    };
    loop {
        let written = seat.write_answer(&question);
        send_result(&question, written);
        match questions.recv() {
            Ok(next) => question = next,
            Err(_) => return,
        }
    }
}

/// Sends the result of a request; the caller may have stopped waiting.
fn send_result(question: &LocalRequest, written: Result<FinishedAnswer, ModelError>) {
    let _ = question.answers.send(ModelThreadEvent::Ended(written));
}

fn load_model(
    spec: &LocalModelSpec,
    backend: &LlamaBackend,
    question: &LocalRequest,
) -> Result<LlamaModel, ModelError> {
    let left = Arc::clone(&question.is_abandoned);
    let goes_on = move |_: f32| !left.load(std::sync::atomic::Ordering::SeqCst);
    let params = LlamaModelParams::default().with_progress_callback(goes_on);
    LlamaModel::load_from_file(backend, &spec.path, &params).map_err(|_| {
        question.check_wanted().err().unwrap_or_else(|| {
            let why = "can't be loaded: it is incomplete, damaged, or of an unsupported kind";
            unusable_file_error(spec, why)
        })
    })
}

/// A model with its context.
struct LoadedModel<'m> {
    model: &'m LlamaModel,
    context: LlamaContext<'m>,
    template: LlamaChatTemplate,
    /// Prepares grammars for the tokens of this model.
    factory: ParserFactory,
    /// The markers of the template.
    markers: Vec<String>,
    /// The tokens that the context has read or written.
    cached_tokens: Vec<LlamaToken>,
    /// The position in the last batch whose output predicts the next token.
    last_logits_index: i32,
}

impl<'m> LoadedModel<'m> {
    fn new(
        spec: &LocalModelSpec,
        backend: &LlamaBackend,
        model: &'m LlamaModel,
    ) -> Result<Self, ModelError> {
        let template = model.chat_template(None).map_err(|_| {
            unusable_file_error(spec, "has no chat template: use a model that is tuned for chat")
        })?;
        let trained = model.n_ctx_train();
        let wanted = spec.window.map(|window| u32::try_from(window).unwrap_or(u32::MAX));
        let window = wanted.unwrap_or(WINDOW_TOKENS_MAX).min(trained).max(1);
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = i32::try_from(threads).unwrap_or(1);
        let batch = u32::try_from(BATCH_TOKENS_MAX).unwrap_or(1);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(window))
            .with_n_batch(batch)
            .with_n_ubatch(batch)
            .with_n_threads(threads)
            .with_n_threads_batch(threads);
        let context = model.new_context(backend, params).map_err(|_| {
            bad_request(&format!(
                "not enough memory for a context window of {window} tokens; set a smaller `window`"
            ))
        })?;
        let mut factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model))
            .map_err(|error| {
                bad_request(&format!("the tokens of the model can't be used: {error}"))
            })?;
        factory.quiet();
        let signs = template_markers_of(model, &template);
        Ok(Self {
            model,
            context,
            template,
            factory,
            markers: signs,
            cached_tokens: Vec::new(),
            last_logits_index: 0,
        })
    }

    /// Answers one request.
    fn write_answer(&mut self, question: &LocalRequest) -> Result<FinishedAnswer, ModelError> {
        let request = &question.request;
        let prompt = self.render_prompt(request)?;
        let window = usize::try_from(self.context.n_ctx()).unwrap_or(usize::MAX);
        if prompt.len() >= window {
            let length = prompt.len();
            let message = format!(
                "the conversation has {length} tokens, but the model's context window has {window}"
            );
            return Err(ModelError::new(ModelErrorKind::ContextLength, message));
        }
        let mut matcher = self.create_matcher(&question.forms)?;
        let cached = self.keep_common_prefix(&prompt);
        for part in prompt.get(cached..).unwrap_or_default().chunks(BATCH_TOKENS_MAX) {
            question.check_wanted()?;
            self.read_tokens(part)?;
        }
        // The free space of the context window also limits the output.
        let wanted = usize::try_from(request.output_tokens_max).unwrap_or(usize::MAX);
        let room = if wanted == 0 { usize::MAX } else { wanted }.min(window - prompt.len());
        let mut sampler = LlamaSampler::chain_simple([
            LlamaSampler::top_k(40),
            LlamaSampler::min_p(0.05, 1),
            LlamaSampler::temp(0.3),
            LlamaSampler::dist(SEED),
        ]);
        let (mut text_decoder, mut count) = (TokenDecoder::default(), 0);
        let end = loop {
            if count >= room {
                break AnswerEnd::Length;
            }
            question.check_wanted()?;
            let token = self.choose_token(matcher.as_mut(), &mut sampler)?;
            count += 1;
            if self.model.vocab().is_eog(token) {
                break AnswerEnd::Turn;
            }
            let text = text_decoder.decode(&self.model.vocab().token_to_piece(token, false, None));
            // If the caller has stopped waiting, the next round notices it.
            let _ = question.answers.send(ModelThreadEvent::Text(text));
            if let Some(matcher) = &mut matcher {
                matcher
                    .consume_token(token.0.cast_unsigned())
                    .map_err(|error| form_error(&error))?;
                if matcher.is_stopped() {
                    break AnswerEnd::Turn;
                }
            }
            self.read_tokens(&[token])?;
        };
        let tokens = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let usage = TokenUsage {
            input: tokens(prompt.len() - cached),
            cache_read: tokens(cached),
            cache_creation: 0,
            output: tokens(count),
        };
        Ok(FinishedAnswer { end, usage, window: tokens(window) })
    }

    /// The conversation, rendered with the model's own template.
    fn render_prompt(&self, request: &ModelRequest) -> Result<Vec<LlamaToken>, ModelError> {
        let messages = chat_messages(request).into_iter().map(|(role, text)| {
            let text = escape_markers(&text, &self.markers).replace('\0', "\u{fffd}");
            LlamaChatMessage::new(role.as_str().to_owned(), text)
        });
        let messages: Vec<LlamaChatMessage> = messages
            .collect::<Result<_, _>>()
            .map_err(|error| bad_request(&format!("the conversation can't be encoded: {error}")))?;
        let text =
            self.model.apply_chat_template(&self.template, &messages, true).map_err(|_| {
                bad_request(
                    "the model's chat template is not supported; use a llama.cpp server instead",
                )
            })?;
        Ok(self.model.vocab().tokenize(text.as_bytes(), true, true))
    }

    /// The first form that the decoder supports; `None` if the answer is free text.
    fn create_matcher(&self, forms: &[AnswerForm]) -> Result<Option<Matcher>, ModelError> {
        let mut reason = None;
        for form in forms {
            let grammar = match form {
                AnswerForm::Document(schema) => TopLevelGrammar::from_json_schema(schema.clone()),
                AnswerForm::Grammar(text) => TopLevelGrammar::from_lark(text.clone()),
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
                let reason = shorten(&reason, REASON_CHARS_MAX);
                Err(bad_request(&format!(
                    "the schema can't be enforced while the answer is written: {reason}"
                )))
            }
        }
    }

    /// Drops cached tokens that are not part of the conversation. Returns how many tokens stay. The
    /// last token is always read again, because its reading predicts the next one.
    fn keep_common_prefix(&mut self, prompt: &[LlamaToken]) -> usize {
        let same = self
            .cached_tokens
            .iter()
            .zip(prompt)
            .take_while(|(cached, wanted)| cached == wanted)
            .count();
        let kept_count = same.min(prompt.len().saturating_sub(1));
        let from = u32::try_from(kept_count).ok();
        // Some kinds of models can't drop the last tokens that they have read.
        let is_trimmed = self.context.clear_kv_cache_seq(Some(0), from, None).unwrap_or(false);
        let kept_count = if is_trimmed { kept_count } else { 0 };
        if !is_trimmed {
            self.context.clear_kv_cache();
        }
        self.cached_tokens.truncate(kept_count);
        kept_count
    }

    /// Reads at most one batch of tokens.
    fn read_tokens(&mut self, tokens: &[LlamaToken]) -> Result<(), ModelError> {
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        let begin = i32::try_from(self.cached_tokens.len()).unwrap_or(i32::MAX);
        for (position, (number, token)) in (begin..).zip(tokens.iter().enumerate()) {
            let is_last = number + 1 == tokens.len();
            batch.add(*token, position, &[0], is_last).map_err(|error| internal_error(&error))?;
        }
        self.context.decode(&mut batch).map_err(|error| {
            // It is unknown how much of the batch was read.
            self.cached_tokens.clear();
            self.context.clear_kv_cache();
            internal_error(&error)
        })?;
        self.last_logits_index = batch.n_tokens() - 1;
        self.cached_tokens.extend_from_slice(tokens);
        Ok(())
    }

    /// Chooses the next token among the allowed ones.
    fn choose_token(
        &self,
        matcher: Option<&mut Matcher>,
        sampler: &mut LlamaSampler,
    ) -> Result<LlamaToken, ModelError> {
        let all = self.context.candidates_ith(self.last_logits_index);
        let mut candidates = match matcher {
            None => LlamaTokenDataArray::from_iter(all, false),
            Some(matcher) => {
                // If the matcher fails, no token is allowed: an answer without an enforced form is
                // worse than none.
                let allowed = matcher.compute_mask_or_eos().map_err(|error| form_error(&error))?;
                let fits = |word: &llama_cpp_2::token::data::LlamaTokenData| {
                    allowed.is_allowed(word.id().0.cast_unsigned())
                };
                LlamaTokenDataArray::from_iter(all.filter(fits), false)
            }
        };
        if candidates.data.is_empty() {
            return Err(form_error(&"no token is allowed"));
        }
        candidates.apply_sampler(sampler);
        candidates.selected_token().ok_or_else(|| internal_error(&"no token was chosen"))
    }
}

/// The markers of a template: special tokens, such as the end of a message, and plain text.
fn template_markers_of(model: &LlamaModel, template: &LlamaChatTemplate) -> Vec<String> {
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
    let messages = PROBE
        .map(|(role, text)| LlamaChatMessage::new(role.as_str().to_owned(), text.to_owned()).ok());
    let messages: Vec<LlamaChatMessage> = messages.into_iter().flatten().collect();
    // A template that is not supported is refused with the first request.
    if let Ok(probed) = model.apply_chat_template(template, &messages, true) {
        signs.extend(template_markers(&probed));
    }
    // Search for longer markers first, because a shorter one may be their prefix.
    signs.sort_by_key(|sign| std::cmp::Reverse(sign.len()));
    signs.retain(|sign| !sign.is_empty());
    signs
}

fn bad_request(message: &str) -> ModelError {
    ModelError::new(ModelErrorKind::BadRequest, message)
}

/// The error if the form of the answer could not be enforced.
fn form_error(error: &dyn std::fmt::Display) -> ModelError {
    let reason = shorten(&error.to_string(), REASON_CHARS_MAX);
    let message = format!("the form of the answer could not be enforced: {reason}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

fn internal_error(error: &dyn std::fmt::Display) -> ModelError {
    ModelError::new(ModelErrorKind::BadAnswer, format!("the model can't continue: {error}"))
}
