//! The paper's numbers, from `experiments/published` (see the README there), compiled in.
//!
//! ```
//! use album_experiments::published::Published;
//!
//! let published = Published::load()?;
//! assert_eq!(published.average("ALBUM").map(|row| row.mean), Some(43.4));
//! let scene = published.score("per-task", "scene-play", "2", "ALBUM", "");
//! assert_eq!(scene.map(|row| (row.mean, row.std)), Some((93.2, Some(3.2))));
//! # Ok::<(), album_experiments::published::PublishedError>(())
//! ```

use album_base::suggest;
use album_stats::Divisor;
use std::collections::HashSet;
use std::str::FromStr;
use thiserror::Error;

const FILES: [(&str, &str); 16] = embedded!["published/", ".csv":
    "main",
    "per-task",
    "target-ensemble",
    "chunking",
    "cost",
    "boundedness",
    "k-sweep",
    "lambda-k",
    "raised-lambda-b",
    "raised-lambda-b-cube",
    "ifql-album",
    "lambda-b-e",
    "steps-3m",
    "hinge-iql",
    "critic",
    "hyperparameters",
];

const HEADER: &str = "table,environment,task,method,setting,metric,mean,std,ddof,seeds,unit,source";

/// One published number.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// The table, named after its file.
    pub table: String,
    /// The environment as OGBench names it, without version; `average` over those of the table; or empty.
    pub environment: String,
    /// `1` to `5`; `average` over tasks; or empty.
    pub task: String,
    /// The method as the paper writes it.
    pub method: String,
    /// What differs from the method's default: `key=value`, joined by `;`. See [`PublishedRow::settings`].
    pub setting: String,
    /// The metric.
    pub metric: String,
    /// The mean.
    pub mean: f64,
    /// The standard deviation over seeds, if given.
    pub std: Option<f64>,
    /// The divisor of the standard deviation, if known.
    pub divisor: Option<Divisor>,
    /// The number of runs, if given.
    pub seeds: Option<u32>,
    /// The unit.
    pub unit: String,
    /// Who measured it: `album`, or the publication that the paper took it from.
    pub source: String,
}

impl PublishedRow {
    /// The pairs of key and value in [`PublishedRow::setting`].
    ///
    /// ```
    /// use album_experiments::published::Published;
    /// let published = Published::load()?;
    /// let row = &published.rows("raised-lambda-b")?[0];
    /// let settings: Vec<_> = row.settings().collect();
    /// assert_eq!(settings, [("lambda_b", "2.5"), ("lambda_e", "2.5"), ("lambda_k", "0")]);
    /// # Ok::<(), album_experiments::published::PublishedError>(())
    /// ```
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.setting.split(';').filter_map(|pair| pair.split_once('='))
    }

    /// Whether it is a success rate, under any evaluation protocol.
    pub fn is_score(&self) -> bool {
        ["success", "success_last_three"].contains(&self.metric.as_str())
    }

    fn parse(record: &csv::StringRecord) -> Result<PublishedRow, String> {
        let fields: Vec<&str> = record.iter().collect();
        let [table, environment, task, method, setting, metric, mean, std, ddof, seeds, unit, source] =
            fields[..]
        else {
            return Err(format!("{} fields", fields.len()));
        };
        if let Some(field) = fields.iter().find(|field| field.contains('"') || field.trim() != **field) {
            return Err(format!("`{field}`, with a quotation mark or a space at an end"));
        }
        if [table, method, metric, unit, source].contains(&"") {
            return Err("an empty table, method, metric, unit or source".into());
        }
        if !["", "average", "1", "2", "3", "4", "5"].contains(&task) {
            return Err(format!("task `{task}`"));
        }
        if !setting.is_empty() && setting.split(';').any(|pair| !pair.contains('=')) {
            return Err(format!("setting `{setting}`"));
        }
        let mean = number(mean)?.filter(|x: &f64| x.is_finite()).ok_or("no finite mean")?;
        let std = number(std)?;
        if std.is_some_and(|std: f64| !(std >= 0.0 && std.is_finite())) {
            return Err("a deviation below 0 or not finite".into());
        }
        let divisor = match ddof {
            "" => None,
            _ if std.is_none() => return Err("a ddof without a deviation".into()),
            "0" => Some(Divisor::Count),
            "1" => Some(Divisor::CountLessOne),
            _ => return Err(format!("ddof `{ddof}`")),
        };
        let seeds = number(seeds)?;
        if seeds == Some(0) {
            return Err("0 seeds".into());
        }
        let [table, environment, task, method, setting, metric, unit, source] =
            [table, environment, task, method, setting, metric, unit, source].map(str::to_owned);
        Ok(PublishedRow {
            table,
            environment,
            task,
            method,
            setting,
            metric,
            mean,
            std,
            divisor,
            seeds,
            unit,
            source,
        })
    }
}

/// Parses a number; an empty field is `None`.
fn number<T: FromStr>(field: &str) -> Result<Option<T>, String> {
    if field.is_empty() {
        return Ok(None);
    }
    field.parse().map(Some).map_err(|_| format!("`{field}` in place of a number"))
}

/// The published tables.
#[derive(Clone, Debug)]
pub struct Published {
    tables: Vec<(&'static str, Vec<PublishedRow>)>,
}

/// Why published numbers could not be read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PublishedError {
    /// A malformed file.
    #[error("table {table}, line {line}: found {found}; expected {HEADER}")]
    Malformed {
        /// The table.
        table: String,
        /// The line, from 1.
        line: usize,
        /// What was found there.
        found: String,
    },
    /// No such table.
    #[error("there is no published table `{name}`{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// A suggestion of the nearest name.
        hint: String,
    },
}

impl Published {
    /// Loads the compiled-in tables.
    ///
    /// # Errors
    ///
    /// If one of them is malformed, which tests rule out.
    pub fn load() -> Result<Published, PublishedError> {
        let tables = FILES.iter().map(|&(name, text)| Ok((name, parse(name, text)?)));
        Ok(Published { tables: tables.collect::<Result<_, _>>()? })
    }

    /// The names of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &'static str> {
        self.tables.iter().map(|(name, _)| *name)
    }

    /// All numbers of a table, in its order.
    ///
    /// # Errors
    ///
    /// If there is no such table.
    pub fn rows(&self, table: &str) -> Result<&[PublishedRow], PublishedError> {
        if let Some((_, rows)) = self.tables.iter().find(|(name, _)| *name == table) {
            return Ok(rows);
        }
        Err(PublishedError::Unknown { name: table.to_owned(), hint: suggest::hint(table, self.tables()) })
    }

    /// The success rates of a table.
    ///
    /// # Errors
    ///
    /// If there is no such table.
    pub fn scores(&self, table: &str) -> Result<impl Iterator<Item = &PublishedRow>, PublishedError> {
        Ok(self.rows(table)?.iter().filter(|row| row.is_score()))
    }

    /// One success rate; `setting` is empty for a method's default if the table varies nothing.
    pub fn score(
        &self,
        table: &str,
        environment: &str,
        task: &str,
        method: &str,
        setting: &str,
    ) -> Option<&PublishedRow> {
        let wanted = [environment, task, method, setting];
        let mut scores = self.scores(table).ok()?;
        scores.find(|row| [&row.environment, &row.task, &row.method, &row.setting].map(|x| &x[..]) == wanted)
    }

    /// A method's average over the ten environments of the main table.
    pub fn average(&self, method: &str) -> Option<&PublishedRow> {
        self.score("main", "average", "average", method, "")
    }
}

/// Parses a table in the format of `experiments/published`: the header, then one number per line.
///
/// # Errors
///
/// If the header or a line is malformed, a line belongs to another table, or two lines give the same number.
///
/// ```
/// use album_experiments::published::parse;
/// let text = "table,environment,task,method,setting,metric,mean,std,ddof,seeds,unit,source\n\
///             mine,scene-play,2,MyMethod,alpha=3,success,95.5,2.5,1,4,percent,me\n";
/// assert_eq!(parse("mine", text)?[0].mean, 95.5);
/// # Ok::<(), album_experiments::published::PublishedError>(())
/// ```
pub fn parse(table: &str, text: &str) -> Result<Vec<PublishedRow>, PublishedError> {
    let malformed = |line, found| PublishedError::Malformed { table: table.to_owned(), line, found };
    // Quotation marks have no meaning in this format, and are refused below.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .quoting(false)
        .from_reader(text.as_bytes());
    let mut records = reader.records();
    let header = records.next().and_then(Result::ok).unwrap_or_default().iter().collect::<Vec<_>>().join(",");
    if header != HEADER {
        return Err(malformed(1, format!("the header `{header}`")));
    }
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for record in records {
        let record = record.map_err(|e| malformed(0, e.to_string()))?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let row = PublishedRow::parse(&record).map_err(|found| malformed(line, found))?;
        if row.table != table {
            return Err(malformed(line, format!("a row of table {}", row.table)));
        }
        let PublishedRow { environment, task, method, setting, metric, .. } = row.clone();
        if !seen.insert([environment, task, method, setting, metric]) {
            return Err(malformed(line, "a second number for the same entry".into()));
        }
        rows.push(row);
    }
    Ok(rows)
}
