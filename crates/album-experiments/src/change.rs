//! Changes of each variant relative to its baseline: the paper's Delta columns and relative changes.

use crate::estimate::{BOOTSTRAP_SEED, matrix, variants};
use crate::published::{Published, PublishedRow};
use crate::reference::{place, same_setting};
use crate::study::{Arm, Study};
use crate::tables::{NamedTable, anchor, interval_text, minus};
use album_base::number::fixed;
use album_report::table::{Align, Cell as Entry, Table};
use album_stats::{Bootstrap, Scores};

/// Percentage points of success, or percent of the baseline's success.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Points,
    Percent,
}

impl Unit {
    fn change(self, new: &Scores, old: &Scores) -> f64 {
        match self {
            Unit::Points => new.mean() - old.mean(),
            Unit::Percent => 100.0 * (new.mean() / old.mean() - 1.0),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Points => "points",
            Unit::Percent => "% of the baseline",
        }
    }

    fn metric(self) -> &'static str {
        match self {
            Unit::Points => "success_change",
            Unit::Percent => "success_relative_change",
        }
    }
}

/// Changes of success by task, by environment if all five tasks are present, and relative over all tasks.
pub(crate) fn table(study: &Study, published: &Published) -> Option<NamedTable> {
    let header = ["variant", "baseline", "task", "seeds", "change", "unit", "95 % interval", "published"];
    let aligns =
        [Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Left, Align::Right];
    let mut table = Table::new(header).align(aligns.into_iter().chain([Align::Right])).caption(
        "Change of success against the baseline: the difference of the means over seeds, and over all tasks its ratio to the \
         baseline's mean. The interval is a bootstrap over the seeds of both.",
    );
    let mut data = Table::new([
        "variant",
        "baseline",
        "environment",
        "task",
        "metric",
        "seeds",
        "baseline_seeds",
        "change",
        "low",
        "high",
        "published",
    ]);
    let variants = variants(study);
    for (label, places) in &variants {
        let arms: Vec<&Arm> = places.iter().map(|&k| &study.arms[k]).collect();
        let Some(baseline) = &arms[0].baseline else { continue };
        let Some((_, others)) = variants.iter().find(|(label, _)| label == baseline) else { continue };
        let others: Vec<&Arm> = others.iter().map(|&k| &study.arms[k]).collect();
        for Group { environment, task, arms, unit } in groups(&arms) {
            let on = |arm: &&Arm| others.iter().find(|other| other.task == arm.task).copied();
            let Some(baselines) = arms.iter().map(on).collect::<Option<Vec<&Arm>>>() else { continue };
            let scores = |arms: &[&Arm]| matrix(study, arms, "success").0;
            let (Some(new), Some(old)) = (scores(&arms), scores(&baselines)) else { continue };
            let change = unit.change(&new, &old);
            if !change.is_finite() {
                continue; // The baseline never succeeds, so there is no relative change.
            }
            let spread = new.runs() > 1 && old.runs() > 1 && !(new.runs_agree() && old.runs_agree());
            let bootstrap = Bootstrap::new(BOOTSTRAP_SEED);
            let interval =
                spread.then(|| bootstrap.between(&new, &old, |x, y| unit.change(x, y)).ok()).flatten();
            let interval = interval.filter(|interval| interval.low.is_finite() && interval.high.is_finite());
            let given = find(study, published, &arms, &environment, &task, unit);
            let link = format!("#{}", anchor(study, places[0]));
            let signed = |value: f64, decimals: usize| {
                format!("{}{}", if value > 0.0 { "+" } else { "" }, minus(&fixed(value, decimals)))
            };
            let agree = new.runs_agree() && old.runs_agree();
            let over = match task.as_str() {
                "average" if environment == "average" => "mean of all tasks".to_owned(),
                "average" => format!("{environment}, mean of 5"),
                task => format!("{environment} {task}").trim_end().to_owned(),
            };
            table = table.row([
                Entry::new(*label),
                Entry::new(&**baseline),
                Entry::new(over),
                Entry::new(format!("{}, {}", new.runs(), old.runs())),
                Entry::new(signed(change, 1)).link(link.clone()),
                Entry::from(unit.name()),
                interval_text(interval, agree, |end| minus(&fixed(end, 1))),
                given.map_or(Entry::from("–"), |row| {
                    Entry::new(signed(row.mean, usize::from(unit == Unit::Points)))
                }),
            ]);
            data = data.row([
                Entry::new(*label),
                Entry::new(&**baseline),
                Entry::new(&*environment),
                Entry::new(&*task),
                Entry::new(unit.metric()),
                new.runs().into(),
                old.runs().into(),
                change.into(),
                interval.map(|interval| interval.low).into(),
                interval.map(|interval| interval.high).into(),
                given.map(|row| row.mean).into(),
            ]);
        }
    }
    (!table.is_empty()).then_some(NamedTable { name: "change", table, data })
}

/// Arms of one variant whose change is one number.
struct Group<'a> {
    environment: String,
    task: String,
    arms: Vec<&'a Arm>,
    unit: Unit,
}

fn groups<'a>(arms: &[&'a Arm]) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    let mut environments: Vec<(String, Vec<&Arm>)> = Vec::new();
    for arm in arms {
        let (environment, task) = place(&arm.task);
        match environments.iter_mut().find(|known| known.0 == environment) {
            Some(known) => known.1.push(arm),
            None => environments.push((environment.clone(), vec![arm])),
        }
        groups.push(Group { environment, task, arms: vec![arm], unit: Unit::Points });
    }
    for (environment, arms) in environments.into_iter().filter(|known| known.1.len() == 5) {
        groups.push(Group { environment, task: "average".into(), arms, unit: Unit::Points });
    }
    let (environment, task) = ("average".to_owned(), "average".to_owned());
    groups.push(Group { environment, task, arms: arms.to_vec(), unit: Unit::Percent });
    groups
}

/// The published change; a change over all tasks only if those are the study's.
fn find<'a>(
    study: &Study,
    published: &'a Published,
    arms: &[&Arm],
    environment: &str,
    task: &str,
    unit: Unit,
) -> Option<&'a PublishedRow> {
    let rows = published.rows(study.published.as_deref()?).ok()?;
    let same =
        |row: &&PublishedRow| row.method == arms[0].method && same_setting(&row.setting, &arms[0].setting);
    if unit == Unit::Percent {
        let here = |row: &PublishedRow| {
            arms.iter().any(|arm| place(&arm.task) == (row.environment.clone(), row.task.clone()))
        };
        let tasks = rows.iter().filter(same).filter(|row| row.is_score() && row.task != "average");
        let (mut count, mut all) = (0, true);
        for row in tasks {
            count += 1;
            all &= here(row);
        }
        if !all || count != arms.len() {
            return None;
        }
    }
    rows.iter().filter(same).find(|row| {
        row.metric == unit.metric() && (row.environment.as_str(), row.task.as_str()) == (environment, task)
    })
}
