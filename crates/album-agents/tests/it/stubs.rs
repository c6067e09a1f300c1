//! The agent classes in the Python package's stubs have a keyword for every hyperparameter, written out for
//! type checkers. After a change, `ALBUM_BLESS=1 cargo test -p album-agents stubs` rewrites them.

use album_agents::AGENTS;
use std::fmt::Write;
use std::path::Path;

const STUBS: &str = "../../python/album_rl/__init__.pyi";
const MARK: &str = "# The rest is written by `ALBUM_BLESS=1 cargo test -p album-agents stubs`.\n";

#[test]
fn the_keywords_of_python_are_the_hyperparameters() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(STUBS);
    let stubs = std::fs::read_to_string(&path).unwrap();
    let (by_hand, _) = stubs.split_once(MARK).expect("the mark between what is written by hand and the rest");
    album_testing::golden(&path, &format!("{by_hand}{MARK}{}", classes()));
}

fn classes() -> String {
    let mut text = String::new();
    let mut agents: Vec<_> = AGENTS.iter().collect();
    agents.sort_by_key(|kind| kind.name);
    for kind in agents {
        let name: String = kind.name.split('-').map(capitalized).collect();
        write!(text, "\nclass {name}(Agent):\n    def __init__(\n        self,\n        *,\n").unwrap();
        for (key, value) in kind.defaults().unwrap() {
            writeln!(text, "        {key}: {} | None = None,", python(&value)).unwrap();
        }
        text.push_str("        seed: int = 0,\n    ) -> None: ...\n");
    }
    text
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

fn python(value: &toml::Value) -> String {
    match value {
        toml::Value::Integer(_) => "int".into(),
        toml::Value::Float(_) => "float".into(),
        toml::Value::Boolean(_) => "bool".into(),
        toml::Value::Array(items) => format!("Sequence[{}]", items.first().map_or("int".into(), python)),
        _ => "str".into(),
    }
}
