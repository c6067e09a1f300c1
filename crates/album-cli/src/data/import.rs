//! `album data import`.

use crate::output;
use crate::source_args::SourceArgs;
use album::Error as Failure;
use album::import::ImportRequest;
use album_base::progress::{self, Amount};
use album_base::{say, warn};
use album_data::columns::verify;
use album_train::StopFlag;
use std::path::PathBuf;

/// The arguments of `album data import`.
#[derive(clap::Args)]
pub struct Args {
    /// Files or folders that form one dataset, in order, in any format that `album data inspect` reads; a
    /// folder stands for its files sorted by name, except those ending in -val.npz
    #[arg(required = true, value_name = "SOURCE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// Check that the data has the columns and dimensions of this task (the same for all five tasks of an
    /// environment)
    #[arg(long)]
    task: Option<String>,
    /// The folder to create, for `album train --data DIR` [default: the name of the single file, ending in
    /// .columns]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an imported folder that already exists
    #[arg(long)]
    force: bool,
    /// Import nothing; check the files of the imported folder SOURCE against their hashes
    #[arg(long, conflicts_with_all = ["task", "out", "force"])]
    verify: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data import`.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.verify {
        args.files.iter().try_for_each(verify)?;
        return output::show(args.json, &serde_json::json!({ "verified": args.files }), || {
            format!("{} as imported", if args.files.len() == 1 { "the folder is" } else { "all folders are" })
        });
    }
    let request = ImportRequest {
        source: args.source.source(args.files.clone()),
        task: args.task.as_deref(),
        out: args.out.as_deref(),
        replace: args.force,
    };
    let bar = progress::bar(1000, Amount::Share).with_prefix("import");
    let imported =
        request.run(&StopFlag::on_signals()?, &mut |share| bar.set_position((1000.0 * share) as u64));
    bar.finish_and_clear();
    let imported = imported?;
    for warning in &imported.imported.warnings {
        warn!("{warning}");
    }
    for guess in imported.guesses() {
        say!("guessed: {guess}");
    }
    output::show(args.json, &imported, || imported.to_string())
}
