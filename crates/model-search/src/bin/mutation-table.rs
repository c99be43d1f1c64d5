//! Runs the mutation table and writes `docs/matrix.md` and `docs/mutations.md` anew.
//! Run from anywhere: `cargo run -p model-search --bin mutation-table`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let lines = model_search::table::run();
    std::fs::write(docs.join("matrix.md"), model_search::docs::matrix())?;
    std::fs::write(docs.join("mutations.md"), model_search::docs::mutations(&lines))
}
