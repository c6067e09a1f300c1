//! `album verify` from the outside.

use crate::common;

use common::{album, json};

#[test]
fn the_report_holds_every_figure_and_needs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let r =
        json(folder.path(), &["verify", "sandwich", "speedup", "--seeds", "1", "--out", "here", "--json"]);
    assert_eq!(r["passed"], true);
    assert_eq!(r["failed"], 0);
    for check in r["checks"].as_array().unwrap() {
        for key in ["name", "statement", "measured", "bound", "passed"] {
            assert!(!check[key].is_null(), "{key} in {check}");
        }
    }
    let page = std::fs::read_to_string(folder.path().join("here/report.html")).unwrap();
    for id in ["mudworld", "sandwich", "sandwich-seeds", "repair", "factors"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "figure {id} is missing");
        let file = std::fs::read_to_string(folder.path().join(format!("here/{id}.svg"))).unwrap();
        assert!(file.starts_with("<svg"), "{id}.svg");
    }
    let checks = std::fs::read_to_string(folder.path().join("here/checks.csv")).unwrap();
    assert!(checks.starts_with("group,statement,measured,bound,verdict\nsandwich,"), "{checks}");
    for outside in ["http://", "https://", "<script", "@import", "url("] {
        let allowed = page.matches(outside).count() == page.matches("http://www.w3.org/2000/svg").count();
        assert!(allowed || !page.contains(outside), "the page refers to {outside}");
    }
}

#[test]
fn chosen_checks_are_printed_with_their_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let output = album(folder.path(), &["verify", "penalty"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.starts_with("penalty\nstatement"), "{text}");
    assert!(text.contains("holds ✓") && !text.contains("FAILS") && text.contains("4 checks, 0 failed"));
    assert!(folder.path().join("album-verify/report.html").exists());
}
