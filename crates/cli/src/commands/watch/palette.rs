//! Which styles mean what. Without colours the words and marks say it alone.

use jackline_engine::{Decision, SessionPhase};
use ratatui_core::style::{Color, Modifier, Style};

/// The styles of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    colours: bool,
}

impl Palette {
    /// With colours, if there may be some.
    pub(super) fn new(colours: bool) -> Self {
        Self { colours }
    }

    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// All is well.
    pub(super) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// Something wants attention.
    pub(super) fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    /// Something is wrong, or over.
    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red)
    }

    /// Matters less.
    pub(super) fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Matters more.
    pub(super) fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What keys are about.
    pub(super) fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A phase, as `status` paints it.
    pub(super) fn phase(self, phase: SessionPhase, achieved: bool) -> Style {
        match phase {
            SessionPhase::Running | SessionPhase::New => self.good(),
            _ if achieved => self.good(),
            SessionPhase::Paused => self.warning(),
            _ => self.bad(),
        }
    }

    /// A decision, as `log` paints it.
    pub(super) fn decision(self, decision: Decision) -> Style {
        match decision {
            Decision::Allow => self.good(),
            Decision::Rewrite | Decision::Ask | Decision::Pause => self.warning(),
            Decision::Deny => self.bad(),
            Decision::Stop => self.bad().add_modifier(Modifier::BOLD),
        }
    }
}
