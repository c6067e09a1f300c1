//! Limits and options of the jobs.

use album::Error;

/// Seconds before the time limit at which a run is told to save its state. Slurm may be a minute early, and a
/// running evaluation must finish first.
pub const NOTICE: u64 = 300;

/// Limits and options of the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmOptions {
    /// Time limit of a job in Slurm's format; a longer run is saved, requeued and resumed.
    pub time: String,
    /// Partition, if not the cluster's default.
    pub partition: Option<String>,
    /// Account, if not the user's default.
    pub account: Option<String>,
    /// Processors per run.
    pub cpus: u32,
    /// Memory per run in Slurm's format.
    pub mem: String,
    /// Maximum number of concurrent runs.
    pub concurrent: Option<u32>,
    /// Further arguments for `sbatch`.
    pub args: Vec<String>,
}

impl SlurmOptions {
    /// Refuses a time limit too short for any step.
    pub fn check(&self) -> Result<(), Error> {
        let Some(seconds) = seconds(&self.time) else {
            return Err(Error::Usage(format!(
                "--slurm-time {}: expected a time as Slurm writes it: minutes, hours:minutes:seconds or \
                 days-hours:minutes:seconds",
                self.time
            )));
        };
        if seconds < 2 * NOTICE {
            return Err(Error::Usage(format!(
                "--slurm-time {} is too short: runs are asked to save their state {} minutes before the limit; give \
                 {} minutes or more",
                self.time,
                NOTICE / 60,
                2 * NOTICE / 60
            )));
        }
        Ok(())
    }

    /// The arguments common to all jobs of a submission.
    pub fn arguments(&self, name: &str) -> Vec<String> {
        let mut all = vec![
            "--parsable".into(),
            format!("--job-name={name}"),
            format!("--time={}", self.time),
            format!("--cpus-per-task={}", self.cpus),
            format!("--mem={}", self.mem),
        ];
        all.extend(self.partition.iter().map(|name| format!("--partition={name}")));
        all.extend(self.account.iter().map(|name| format!("--account={name}")));
        all.extend(self.args.iter().cloned());
        all
    }
}

/// Seconds of M, M:S, H:M:S, D-H, D-H:M or D-H:M:S.
fn seconds(text: &str) -> Option<u64> {
    let (days, time) = match text.split_once('-') {
        Some((days, time)) => (Some(days.parse::<u64>().ok()?), time),
        None => (None, text),
    };
    let parts = time.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let (hours, minutes, seconds) = match (days, &parts[..]) {
        (Some(_), &[hours]) => (hours, 0, 0),
        (Some(_), &[hours, minutes]) => (hours, minutes, 0),
        (None, &[minutes]) => (0, minutes, 0),
        (None, &[minutes, seconds]) => (0, minutes, seconds),
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        _ => return None,
    };
    let hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?.checked_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_slurm_reads_them() {
        let hour = 3600;
        for (text, expected) in [
            ("90", Some(90 * 60)),
            ("10:30", Some(630)),
            ("24:00:00", Some(24 * hour)),
            ("2-0", Some(48 * hour)),
            ("1-2:30", Some(26 * hour + 1800)),
            ("1-00:00:01", Some(24 * hour + 1)),
            ("", None),
            ("a day", None),
            ("1:2:3:4", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
