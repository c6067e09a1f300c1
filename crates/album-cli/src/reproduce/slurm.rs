//! Options of `--executor slurm`.

use album_experiments::executor::SlurmOptions;

/// What each job requests from Slurm.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of --executor slurm")]
pub struct SlurmArgs {
    /// Time limit of a job; a longer run is saved, requeued and resumed
    #[arg(long = "slurm-time", value_name = "[D-]H:M:S", default_value = "24:00:00")]
    time: String,
    /// Partition [default: the cluster's]
    #[arg(long = "slurm-partition", value_name = "NAME")]
    partition: Option<String>,
    /// Account [default: yours]
    #[arg(long = "slurm-account", value_name = "NAME")]
    account: Option<String>,
    /// Processors per run
    #[arg(long = "slurm-cpus", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    cpus: u32,
    /// Memory per run
    #[arg(long = "slurm-mem", value_name = "SIZE", default_value = "4G")]
    mem: String,
    /// Maximum number of runs at the same time
    #[arg(long = "slurm-concurrent", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrent: Option<u32>,
    /// One more argument for sbatch, e.g. --slurm-args=--qos=long; may be repeated
    #[arg(long = "slurm-args", value_name = "ARG", allow_hyphen_values = true)]
    args: Vec<String>,
}

impl SlurmArgs {
    /// The options as the library takes them.
    pub fn get(&self) -> SlurmOptions {
        SlurmOptions {
            time: self.time.clone(),
            partition: self.partition.clone(),
            account: self.account.clone(),
            cpus: self.cpus,
            mem: self.mem.clone(),
            concurrent: self.concurrent,
            args: self.args.clone(),
        }
    }
}
