//! Writes the files that are generated from code: the reference of the definition.

use crate::shell::{cargo, run};

pub(crate) fn all() -> Result<(), String> {
    run(&mut cargo(&["run", "--locked", "-p", "jackline-definition", "--example", "generate"]))
}
