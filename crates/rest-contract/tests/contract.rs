//! Every problem code has a page in `docs/errors`, every page a code, and its example is a problem
//! of that code; and what serde must not get wrong in bodies.

use std::collections::BTreeSet;
use std::path::Path;

use rest_contract::{Code, Problem};

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let names = std::fs::read_dir(&folder).expect("docs/errors").map(|entry| entry.expect("an entry").file_name());
    let pages: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    let index = std::fs::read_to_string(folder.join("README.md")).expect("the index");
    let mut expected: BTreeSet<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
    expected.insert("README.md".to_owned());
    assert_eq!(pages, expected);
    for code in Code::ALL {
        let page = std::fs::read_to_string(folder.join(format!("{code}.md"))).expect("a page");
        assert!(page.starts_with(&format!("# {code}\n\nStatus {} · {} · ", code.status(), code.title())), "{page}");
        for part in ["**What happened.**", "**Was anything written?**", "**What to do next.**"] {
            assert!(page.contains(part), "{code}: {part} is missing");
        }
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let problem: Problem = serde_json::from_str(example).expect("a problem");
        let plain = Problem::new(*code, problem.detail.clone());
        assert_eq!((problem.code, &problem.kind, problem.status), (plain.code, &plain.kind, plain.status));
        assert_eq!(problem.title, plain.title);
        assert!(index.contains(&format!("[{code}]({code}.md) | {} | {} |", code.status(), code.title())), "{code}");
    }
}

#[test]
fn null_is_a_payload_and_its_absence_is_none() {
    let create = |text: &str| serde_json::from_str::<rest_contract::CreateRequest>(text).expect("a request").payload;
    assert_eq!(create(r#"{"task_type":"t","payload":null}"#).expect("a payload").get(), "null");
    assert!(create(r#"{"task_type":"t"}"#).is_none());
}
