//! Writes `docs/matrix.md` and `docs/mutations.md` anew.

fn main() {
    let start = std::time::Instant::now();
    let lines = model_search::table::run();
    for line in &lines {
        println!(
            "{} : {}",
            line.mutant.name(),
            match &line.fate {
                model_search::table::Fate::Caught { config, worlds, finding } =>
                    format!("caught {config} {worlds} {} [{}]", finding.what, finding.records()),
                f => format!("{f:?} {:?}", line.seen),
            }
        );
    }
    println!("{:?}", start.elapsed());
}
