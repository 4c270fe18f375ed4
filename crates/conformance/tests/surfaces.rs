//! Compares `docs/reference/surfaces.md` with the table of surfaces. With the environment variable
//! `JACKLINE_WRITE_DOCUMENTS=1`, it writes the page.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]
#![expect(clippy::disallowed_methods, reason = "a variable decides whether the page is written")]

use std::fmt::Write as _;
use std::path::Path;

use jackline_conformance::surfaces;
use jackline_runtime::surfaces::{CapabilitySupport, SurfaceCapability, SurfaceProfile};

const INTRODUCTION: &str = "\
# Surfaces

A surface is a way into Jackline. The guards are the same on every surface. What a surface can see, and what it can make of a
verdict, depends on the program on the other side. This table is generated from the code (`jackline_runtime::surfaces`). The
adapters use it, and the conformance suite leaves a scenario out only because of it.

A number leads to the limit or the reason below the table.

";

#[test]
fn the_page_shows_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/surfaces.md");
    let page = render_page(&surfaces());
    if std::env::var_os("JACKLINE_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/surfaces.md differs from the table; write it with \
         `JACKLINE_WRITE_DOCUMENTS=1 cargo nextest run -p jackline-conformance --test surfaces`"
    );
}

fn render_page(surfaces: &[&'static SurfaceProfile]) -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("| surface | what it is |\n|---|---|\n");
    for surface in surfaces {
        writeln!(page, "| `{}` | {} |", surface.name, surface.title).unwrap();
    }
    page.push_str("\n## What each surface can do\n\n| it can |");
    surfaces.iter().for_each(|surface| write!(page, " `{}` |", surface.name).unwrap());
    page.push_str("\n|---|");
    page.push_str(&"---|".repeat(surfaces.len()));
    let mut notes: Vec<&'static str> = Vec::new();
    for capability in SurfaceCapability::ALL {
        write!(page, "\n| {} |", capability.label()).unwrap();
        for surface in surfaces {
            write!(page, " {} |", cell(surface.support(*capability), &mut notes)).unwrap();
        }
    }
    page.push_str("\n\n## Limits and reasons\n\n");
    for (number, note) in notes.iter().enumerate() {
        writeln!(page, "{}. {note}", number + 1).unwrap();
    }
    page
}

/// The cell for a capability. A text gets one number, however often it occurs.
fn cell(support: CapabilitySupport, notes: &mut Vec<&'static str>) -> String {
    let mut number = |text: &'static str| {
        let at = notes.iter().position(|known| *known == text).unwrap_or(notes.len());
        if at == notes.len() {
            notes.push(text);
        }
        at + 1
    };
    match support {
        CapabilitySupport::Full => "yes".to_owned(),
        CapabilitySupport::Partial(text) => format!("yes ({})", number(text)),
        CapabilitySupport::Missing(text) => format!("no ({})", number(text)),
    }
}
