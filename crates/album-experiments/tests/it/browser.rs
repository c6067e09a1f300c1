//! The page in a real browser without network: complete in light, dark and print mode.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::common;

use album_experiments::write;
use common::{study, sweep};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Chromium in PATH.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|found| found.is_file())
}

fn open(browser: &Path, profile: &Path, page: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1300,5000"])
        // No name is resolved, so nothing can be loaded from elsewhere.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn every_figure_and_table_is_shown() {
    let Some(browser) = browser() else {
        album_testing::skip("browser", "no chromium or google-chrome in PATH");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // Where to keep screenshots for inspection.
    let out =
        std::env::var_os("ALBUM_SCREENSHOTS").map_or_else(|| folder.path().join("report"), PathBuf::from);
    let mut cost = study("cost", Some("cost"), Vec::new());
    cost.outputs = Some(folder.path().join("made"));
    std::fs::create_dir(folder.path().join("made")).unwrap();
    let plot = album_plot::Plot::new("Pareto").line("x", &[(0.0, 1.0), (1.0, 2.0)]);
    std::fs::write(folder.path().join("made/pareto.svg"), plot.render()).unwrap();
    let json = r#"{"seeds": 1, "agents": [{"agent": "album", "parameters": 2430000, "gflop_per_step": 3.0,
        "times": [{"threads": 1, "ms_per_step": 10.0, "deviation": 0.0}], "value_networks": 2, "peak_rss_mib": 50.0}]}"#;
    std::fs::write(folder.path().join("made/cost.json"), json).unwrap();
    let page = write(&[sweep(folder.path()), cost], &[], &out).unwrap().page;
    let profile = folder.path().join("profile");

    let dom = String::from_utf8(open(&browser, &profile, &page, &["--dump-dom"])).unwrap();
    for study in ["sweep", "cost"] {
        assert!(dom.contains(&format!("<section id=\"study-{study}\">")), "{study}");
    }
    let figures =
        ["sweep-comparison", "sweep-curves", "sweep-values", "sweep-profile", "sweep-maps", "cost-pareto"];
    for figure in figures {
        let rest =
            dom.split(&format!("<figure id=\"{figure}\">")).nth(1).unwrap_or_else(|| panic!("{figure}"));
        let end = rest.find("</figure>").unwrap();
        assert!(rest[..end].contains("<svg") && rest[..end].contains("<path"), "{figure}");
    }
    // Success, statistics, improvement and runs of one study, the cost table of the other, and the overview.
    assert_eq!(dom.matches("<table>").count(), 7);
    assert!(dom.contains("inside") && dom.contains("outside"));

    let picture = |name: &str, arguments: &[&str]| -> Vec<u8> {
        let path = out.join(name);
        let target = format!("--screenshot={}", path.display());
        open(&browser, &profile, &page, &[&[target.as_str()], arguments].concat());
        std::fs::read(path).unwrap()
    };
    let light = picture("light.png", &[]);
    let dark = picture("dark.png", &["--blink-settings=preferredColorScheme=0"]);
    let png = b"\x89PNG";
    assert!(light.starts_with(png) && light.len() > 50_000, "{}", light.len());
    assert!(dark.starts_with(png) && dark.len() > 50_000, "{}", dark.len());
    assert_ne!(light, dark);
    let pdf = out.join("page.pdf");
    open(
        &browser,
        &profile,
        &page,
        &[&format!("--print-to-pdf={}", pdf.display()), "--no-pdf-header-footer"],
    );
    let pdf = std::fs::read(pdf).unwrap();
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "{}", pdf.len());
}
