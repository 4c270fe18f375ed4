//! The meaning of styles. Without colours, the words and marks alone must be clear.

use jackline_engine::Decision;
use ratatui_core::style::{Color, Modifier, Style};

use crate::status_label::LabelTone;

/// The styles of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct WatchPalette {
    colours: bool,
}

impl WatchPalette {
    /// A palette with or without colours.
    pub(super) fn new(colours: bool) -> Self {
        Self { colours }
    }

    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Checked and good.
    pub(super) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// Needs attention.
    pub(super) fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    /// Needs a person.
    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red)
    }

    /// Normal or secondary information.
    pub(super) fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Important information.
    pub(super) fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The chosen row.
    pub(super) fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A status label, with the same meaning as in `status`.
    pub(super) fn status(self, tone: LabelTone) -> Style {
        match tone {
            LabelTone::Normal => Self::dim(),
            LabelTone::Good => self.good(),
            LabelTone::Waiting => self.warning(),
            LabelTone::Alarm => self.bad(),
        }
    }

    /// A decision, with the same meaning as in `log`.
    pub(super) fn decision(self, decision: Decision) -> Style {
        match decision {
            Decision::Allow => Self::dim(),
            Decision::Rewrite | Decision::Ask | Decision::Pause => self.warning(),
            Decision::Deny => self.bad(),
            Decision::Stop => self.bad().add_modifier(Modifier::BOLD),
        }
    }
}
