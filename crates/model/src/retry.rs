//! Asking again, with pauses that grow and that nobody shares.

use core::ops::ControlFlow;
use std::time::Duration;

use crate::ask::{Delta, Hearer, Model, Reply, Request};
use crate::error::{ErrorKind, ModelError};

/// How often somebody is asked, and how long is waited between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often at most, the first time included.
    pub tries_max: u32,
    /// The longest pause after the first failure; it doubles with each further one.
    pub pause_first: Duration,
    /// What no pause of ours exceeds.
    pub pause_max: Duration,
    /// What no pause that a provider demands may exceed. Where one wants more, asking
    /// earlier would be refused again, so the error is given back at once.
    pub retry_after_max: Duration,
    /// For what nobody is asked again, because somebody else can be asked instead.
    pub left_at_once: &'static [ErrorKind],
    /// Makes the pauses differ between those who failed together.
    pub seed: u64,
}

/// Who waits, and may break off instead.
pub type Waiter<'a> = dyn FnMut(Duration, &ModelError) -> ControlFlow<()> + 'a;

/// Asks until there is an answer, as long as the failure may pass by itself.
///
/// `hear` is told [`Delta::Again`] where it has heard something of an answer that broke.
/// `wait` does the waiting.
pub fn ask_patiently(
    model: &mut dyn Model,
    request: &Request,
    hear: &mut Hearer<'_>,
    patience: &Patience,
    wait: &mut Waiter<'_>,
) -> Result<Reply, ModelError> {
    let mut failures = 0;
    loop {
        let mut heard = false;
        let error = match model.ask(request, &mut |delta| {
            heard |= delta != Delta::Waiting;
            hear(delta)
        }) {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        failures += 1;
        let left = patience.left_at_once.contains(&error.kind);
        if left || !error.kind.is_passing() || failures >= patience.tries_max {
            return Err(error);
        }
        let Some(pause) = patience.pause(failures, error.retry_after) else { return Err(error) };
        let goes_on = !heard || hear(Delta::Again).is_continue();
        if !goes_on || wait(pause, &error).is_break() {
            let message = format!("broken off after a failure: {}", error.message);
            return Err(ModelError { kind: ErrorKind::Cancelled, message, ..error });
        }
    }
}

impl Patience {
    /// How long is waited after so many failures: anything up to a bound that doubles, and
    /// at least as long as the provider wants. None where it wants too much.
    pub fn pause(&self, failures: u32, wanted: Option<Duration>) -> Option<Duration> {
        let wanted = wanted.unwrap_or_default();
        if wanted > self.retry_after_max {
            return None;
        }
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let bound = self.pause_first.saturating_mul(doubled).min(self.pause_max);
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let any = mixed(self.seed.wrapping_add(u64::from(failures)));
        let pause = Duration::from_nanos(nanos.checked_add(1).map_or(any, |count| any % count));
        Some(pause.max(wanted))
    }
}

/// Spreads a number over all of them.
fn mixed(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{End, Said};

    /// Says something, and fails in the order given; then answers.
    struct Failing(Vec<ModelError>);

    impl Model for Failing {
        fn name(&self) -> &'static str {
            "failing"
        }

        fn ask(&mut self, _: &Request, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
            let _ = hear(Delta::Waiting);
            match self.0.pop() {
                Some(error) => {
                    if error.kind == ErrorKind::BadAnswer {
                        let _ = hear(Delta::Text("ha"));
                    }
                    Err(error)
                }
                None => {
                    let _ = hear(Delta::Text("all"));
                    let said = Said { text: "all".to_owned(), ..Said::default() };
                    Ok(Reply { said, end: End::Turn, usage: None, request: None })
                }
            }
        }
    }

    const PATIENCE: Patience = Patience {
        tries_max: 5,
        pause_first: Duration::from_secs(1),
        pause_max: Duration::from_secs(3),
        retry_after_max: Duration::from_mins(1),
        left_at_once: &[],
        seed: 7,
    };

    fn error(kind: ErrorKind) -> ModelError {
        ModelError::new(kind, "no")
    }

    /// How it ended, the pauses, and what was heard.
    fn play(
        mut errors: Vec<ModelError>,
        waits_max: usize,
    ) -> (Result<String, ErrorKind>, Vec<Duration>, Vec<String>) {
        errors.reverse();
        let (mut pauses, mut heard) = (Vec::new(), Vec::new());
        let answer = ask_patiently(
            &mut Failing(errors),
            &Request::default(),
            &mut |delta| {
                if delta != Delta::Waiting {
                    heard.push(format!("{delta:?}"));
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
        (answer.map(|reply| reply.said.text).map_err(|error| error.kind), pauses, heard)
    }

    #[test]
    fn what_passes_is_waited_out_and_what_was_heard_is_void() {
        let errors = vec![error(ErrorKind::Overload), error(ErrorKind::BadAnswer)];
        let (answer, pauses, heard) = play(errors, 9);
        assert_eq!(answer, Ok("all".to_owned()));
        assert_eq!(pauses.len(), 2);
        assert_eq!(heard, ["Text(\"ha\")", "Again", "Text(\"all\")"]);
    }

    #[test]
    fn what_stays_is_not_asked_again() {
        for kind in [
            ErrorKind::Auth,
            ErrorKind::PlanLimit,
            ErrorKind::ContextLength,
            ErrorKind::BadRequest,
            ErrorKind::UnknownModel,
            ErrorKind::Cancelled,
        ] {
            assert_eq!(play(vec![error(kind)], 9), (Err(kind), vec![], vec![]));
        }
        let (answer, pauses, _) = play(vec![error(ErrorKind::Timeout); 9], 9);
        assert_eq!((answer, pauses.len()), (Err(ErrorKind::Timeout), 4));
    }

    #[test]
    fn what_somebody_else_is_there_for_is_left_at_once() {
        let patience = Patience { left_at_once: &[ErrorKind::Timeout], ..PATIENCE };
        let errors = vec![error(ErrorKind::Timeout), error(ErrorKind::Overload)];
        let mut waits = 0;
        let answer = ask_patiently(
            &mut Failing(errors),
            &Request::default(),
            &mut |_| ControlFlow::Continue(()),
            &patience,
            &mut |_, _| {
                waits += 1;
                ControlFlow::Continue(())
            },
        );
        assert_eq!((answer.map_err(|it| it.kind), waits), (Err(ErrorKind::Timeout), 1));
    }

    #[test]
    fn whoever_waits_can_break_off() {
        let (answer, pauses, _) = play(vec![error(ErrorKind::Network); 3], 1);
        assert_eq!((answer, pauses.len()), (Err(ErrorKind::Cancelled), 1));
    }

    #[test]
    fn pauses_are_bounded_differ_and_are_never_shorter_than_wanted() {
        for seed in 0..200 {
            let patience = Patience { seed, ..PATIENCE };
            for (failures, most) in [(1, 1), (2, 2), (3, 3), (40, 3)] {
                let pause = patience.pause(failures, None).unwrap();
                assert!(pause <= Duration::from_secs(most), "{pause:?}");
            }
        }
        let of = |seed| Patience { seed, ..PATIENCE }.pause(3, None);
        assert!(of(1) == of(1) && of(1) != of(2));
        let wanted = |seconds| PATIENCE.pause(1, Some(Duration::from_secs(seconds)));
        assert_eq!(wanted(20), Some(Duration::from_secs(20)));
        assert_eq!(wanted(61), None);
        let far = ModelError {
            retry_after: Some(Duration::from_hours(1)),
            ..error(ErrorKind::RateLimit)
        };
        assert_eq!(play(vec![far], 9), (Err(ErrorKind::RateLimit), vec![], vec![]));
    }
}
