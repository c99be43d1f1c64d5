//! Seeds of every build: none breaks a promise, each is worth its name, and together they show
//! every fault and every rejection.

use simulation::{plan, run, run_range};

#[test]
fn five_hundred_seeds() {
    let (totals, failures) = run_range((1, 500), 2, None, false, |report, _| {
        if report.finding.is_none() {
            assert!(report.records >= 2_000, "seed {}: {} records", report.seed, report.records);
            assert!(report.tasks >= 8, "seed {}: {} tasks", report.seed, report.tasks);
            assert!(report.takeovers >= 2, "seed {}: {} take-overs", report.seed, report.takeovers);
        }
    });
    for failure in &failures {
        eprintln!("seed {}: {:?}\n{}\n", failure.report.seed, failure.report.finding, failure.history);
    }
    eprintln!("{}", totals.to_text());
    assert!(failures.is_empty(), "{} of {} seeds broke a promise", failures.len(), totals.seeds);
    assert_eq!(totals.missing(), Vec::<&str>::new(), "faults and rejections that never occurred");
}

#[test]
fn a_seed_is_one_history() {
    for seed in [3, 17, 40] {
        let (first, second) = (run(plan(seed, None)).0, run(plan(seed, None)).0);
        assert_eq!(first.fingerprint, second.fingerprint, "seed {seed}");
        assert_eq!((first.records, first.polls), (second.records, second.polls), "seed {seed}");
    }
}
