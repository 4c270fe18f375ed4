//! Every store of this crate passes the contract suite.

use std::cell::RefCell;

use jackline_journal::{FileStore, MemoryStore, Store, contract};

#[test]
fn the_file_store_passes_the_contract() {
    let homes = RefCell::new(Vec::new());
    let make = || -> Box<dyn Store> {
        let home = tempfile::tempdir().unwrap();
        let store = FileStore::new(home.path().join("state"), 7);
        homes.borrow_mut().push(home);
        Box::new(store)
    };
    assert_eq!(contract::run(&make), Ok(()));
}

#[test]
fn the_memory_store_passes_the_contract() {
    assert_eq!(contract::run(&|| Box::new(MemoryStore::default())), Ok(()));
}
