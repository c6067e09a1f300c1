//! The page of a run whose files have been edited.

use album::report;

#[test]
fn a_renamed_column_is_left_out() {
    let run = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(run.path().join(name), text).unwrap();
    write("config.toml", "agent = \"album\"\n");
    let columns = ["success", "success_low", "success_high", "episode.return", "episode.length"];
    for renamed in columns {
        let names: Vec<String> = columns
            .iter()
            .map(|name| if *name == renamed { "mine".to_owned() } else { format!("evaluation/{name}") })
            .collect();
        write(
            "eval.csv",
            &format!("{},step\n0.5,0.4,0.6,-3,10,100\n0.7,0.6,0.8,-2,9,200\n", names.join(",")),
        );
        let page = std::fs::read_to_string(report::write(run.path()).unwrap()).unwrap();
        assert!(page.contains("<html"), "{renamed}");
    }
}
