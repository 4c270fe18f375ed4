//! Retries requests, with growing pauses and jitter.

use core::ops::ControlFlow;
use std::time::Duration;

use crate::conversation::{AnswerDelta, DeltaReceiver, Model, ModelReply, ModelRequest};
use crate::error::{ModelError, ModelErrorKind};

/// How often a request is tried, and how long the pauses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of tries, including the first one.
    pub tries_max: u32,
    /// The maximum pause after the first failure. It doubles with each further failure.
    pub pause_first: Duration,
    /// The maximum of every pause that the provider does not set.
    pub pause_max: Duration,
    /// The longest pause that a provider may ask for. If it asks for more, an earlier retry would
    /// fail too, so the error is returned at once.
    pub retry_after_max: Duration,
    /// Errors that are not retried, because a fallback model can be used instead.
    pub not_retried: &'static [ModelErrorKind],
    /// Makes the pauses of clients that failed at the same time differ.
    pub seed: u64,
}

/// A function that waits for the pause, and may cancel the retry.
pub type PauseWaiter<'a> = dyn FnMut(Duration, &ModelError) -> ControlFlow<()> + 'a;

/// Sends a request until there is an answer, as long as the error may be temporary.
///
/// `hear` gets [`AnswerDelta::Again`] if it has received pieces of a broken answer. `wait` waits
/// for the pause.
pub fn ask_with_retries(
    model: &mut dyn Model,
    request: &ModelRequest,
    hear: &mut DeltaReceiver<'_>,
    patience: &RetryPolicy,
    wait: &mut PauseWaiter<'_>,
) -> Result<ModelReply, ModelError> {
    let mut failures = 0;
    loop {
        let mut has_pieces = false;
        let error = match model.ask(request, &mut |delta| {
            has_pieces |= delta != AnswerDelta::Waiting;
            hear(delta)
        }) {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        failures += 1;
        let fails_at_once = patience.not_retried.contains(&error.kind);
        if fails_at_once || !error.kind.is_temporary() || failures >= patience.tries_max {
            return Err(error);
        }
        let Some(pause) = patience.pause(failures, error.retry_after) else { return Err(error) };
        let continues = !has_pieces || hear(AnswerDelta::Again).is_continue();
        if !continues || wait(pause, &error).is_break() {
            let message = format!("cancelled after a failure: {}", error.message);
            return Err(ModelError { kind: ModelErrorKind::Cancelled, message, ..error });
        }
    }
}

impl RetryPolicy {
    /// The pause after so many failures: a random time up to a bound that doubles, and at least as
    /// long as the provider asks for. `None` if the provider asks for too long a pause.
    pub fn pause(&self, failures: u32, requested: Option<Duration>) -> Option<Duration> {
        let requested = requested.unwrap_or_default();
        if requested > self.retry_after_max {
            return None;
        }
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let bound = self.pause_first.saturating_mul(doubled).min(self.pause_max);
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let any = mix_bits(self.seed.wrapping_add(u64::from(failures)));
        let pause = Duration::from_nanos(nanos.checked_add(1).map_or(any, |count| any % count));
        Some(pause.max(requested))
    }
}

/// Mixes the bits of a number (`SplitMix64`).
fn mix_bits(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{AnswerEnd, AssistantMessage};

    /// A model that fails with the given errors and then answers.
    struct Failing(Vec<ModelError>);

    impl Model for Failing {
        fn name(&self) -> &'static str {
            "failing"
        }

        fn ask(
            &mut self,
            _: &ModelRequest,
            hear: &mut DeltaReceiver<'_>,
        ) -> Result<ModelReply, ModelError> {
            let _ = hear(AnswerDelta::Waiting);
            match self.0.pop() {
                Some(error) => {
                    if error.kind == ModelErrorKind::BadAnswer {
                        let _ = hear(AnswerDelta::Text("ha"));
                    }
                    Err(error)
                }
                None => {
                    let _ = hear(AnswerDelta::Text("all"));
                    let said =
                        AssistantMessage { text: "all".to_owned(), ..AssistantMessage::default() };
                    Ok(ModelReply {
                        message: said,
                        end: AnswerEnd::Turn,
                        usage: None,
                        request: None,
                    })
                }
            }
        }
    }

    const PATIENCE: RetryPolicy = RetryPolicy {
        tries_max: 5,
        pause_first: Duration::from_secs(1),
        pause_max: Duration::from_secs(3),
        retry_after_max: Duration::from_mins(1),
        not_retried: &[],
        seed: 7,
    };

    fn error(kind: ModelErrorKind) -> ModelError {
        ModelError::new(kind, "no")
    }

    /// Returns the result, the pauses and the received pieces.
    fn play(
        mut errors: Vec<ModelError>,
        waits_max: usize,
    ) -> (Result<String, ModelErrorKind>, Vec<Duration>, Vec<String>) {
        errors.reverse();
        let (mut pauses, mut pieces) = (Vec::new(), Vec::new());
        let answer = ask_with_retries(
            &mut Failing(errors),
            &ModelRequest::default(),
            &mut |delta| {
                if delta != AnswerDelta::Waiting {
                    pieces.push(format!("{delta:?}"));
                }
                ControlFlow::Continue(())
            },
            &PATIENCE,
            &mut |pause, _| {
                if pauses.len() == waits_max {
                    return ControlFlow::Break(());
                }
                pauses.push(pause);
                ControlFlow::Continue(())
            },
        );
        (answer.map(|reply| reply.message.text).map_err(|error| error.kind), pauses, pieces)
    }

    #[test]
    fn a_temporary_error_is_retried_and_pieces_become_void() {
        let errors = vec![error(ModelErrorKind::Overload), error(ModelErrorKind::BadAnswer)];
        let (answer, pauses, pieces) = play(errors, 9);
        assert_eq!(answer, Ok("all".to_owned()));
        assert_eq!(pauses.len(), 2);
        assert_eq!(pieces, ["Text(\"ha\")", "Again", "Text(\"all\")"]);
    }

    #[test]
    fn a_permanent_error_is_not_retried() {
        for kind in [
            ModelErrorKind::Auth,
            ModelErrorKind::PlanLimit,
            ModelErrorKind::ContextLength,
            ModelErrorKind::BadRequest,
            ModelErrorKind::UnknownModel,
            ModelErrorKind::Cancelled,
        ] {
            assert_eq!(play(vec![error(kind)], 9), (Err(kind), vec![], vec![]));
        }
        let (answer, pauses, _) = play(vec![error(ModelErrorKind::Timeout); 9], 9);
        assert_eq!((answer, pauses.len()), (Err(ModelErrorKind::Timeout), 4));
    }

    #[test]
    fn an_error_with_a_fallback_is_not_retried() {
        let patience = RetryPolicy { not_retried: &[ModelErrorKind::Timeout], ..PATIENCE };
        let errors = vec![error(ModelErrorKind::Timeout), error(ModelErrorKind::Overload)];
        let mut waits = 0;
        let answer = ask_with_retries(
            &mut Failing(errors),
            &ModelRequest::default(),
            &mut |_| ControlFlow::Continue(()),
            &patience,
            &mut |_, _| {
                waits += 1;
                ControlFlow::Continue(())
            },
        );
        assert_eq!((answer.map_err(|it| it.kind), waits), (Err(ModelErrorKind::Timeout), 1));
    }

    #[test]
    fn a_waiting_caller_can_cancel() {
        let (answer, pauses, _) = play(vec![error(ModelErrorKind::Network); 3], 1);
        assert_eq!((answer, pauses.len()), (Err(ModelErrorKind::Cancelled), 1));
    }

    #[test]
    fn pauses_are_bounded_and_random_and_not_shorter_than_requested() {
        for seed in 0..200 {
            let patience = RetryPolicy { seed, ..PATIENCE };
            for (failures, most) in [(1, 1), (2, 2), (3, 3), (40, 3)] {
                let pause = patience.pause(failures, None).unwrap();
                assert!(pause <= Duration::from_secs(most), "{pause:?}");
            }
        }
        let of = |seed| RetryPolicy { seed, ..PATIENCE }.pause(3, None);
        assert!(of(1) == of(1) && of(1) != of(2));
        let requested = |seconds| PATIENCE.pause(1, Some(Duration::from_secs(seconds)));
        assert_eq!(requested(20), Some(Duration::from_secs(20)));
        assert_eq!(requested(61), None);
        let far = ModelError {
            retry_after: Some(Duration::from_hours(1)),
            ..error(ModelErrorKind::RateLimit)
        };
        assert_eq!(play(vec![far], 9), (Err(ModelErrorKind::RateLimit), vec![], vec![]));
    }
}
