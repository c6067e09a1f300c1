//! The cost of a gradient step: results of `album bench cost` beside the paper's table and figures.

use crate::published::{Published, PublishedRow};
use crate::reference::methods;
use crate::tables::NamedTable;
use album_base::number::{compact, fixed, grouped};
use album_plot::{Figure, Ink, Legend, Plot, panels};
use album_report::table::{Align, Cell as Entry, Rank, Table};
use serde::{Deserialize, Serialize};

/// The paper's name for ReBRAC with the actor updated at every step.
pub const ACTOR_EVERY_STEP: &str = "rebrac*";
/// The reference for relative times and memory.
const BASE: &str = "ALBUM";

/// The horizontal axis of a Pareto figure.
type Axis = fn(&AgentCost) -> Option<f64>;

/// The contents of `cost.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// Number of seeds for networks and batches; each is timed in its own process.
    pub seeds: usize,
    /// The device that ran the updates, if not the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The agents.
    pub agents: Vec<AgentCost>,
}

/// The cost of one agent at antmaze-large sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentCost {
    /// The name in `album agents`, or [`ACTOR_EVERY_STEP`].
    pub agent: String,
    /// Number of parameters, including target networks.
    pub parameters: usize,
    /// Counted from the shapes of all products, counting all rows.
    pub gflop_per_step: f64,
    /// By thread count, ascending.
    pub times: Vec<StepTime>,
    /// Number of value and critic networks, including ensemble members and targets.
    pub value_networks: usize,
    /// Of the process, median over seeds.
    pub peak_rss_mib: f64,
    /// Peak memory of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_memory: Option<DeviceMemory>,
}

/// Peak memory on a device.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// MiB.
    pub mib: f64,
    /// The source of the number.
    pub counted_by: Counted,
}

/// How the memory of a device was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// By the device at run time.
    Device,
    /// By the compiler: the largest program and its arguments.
    Compiler,
}

impl DeviceMemory {
    /// Its column in tables.
    fn column(&self) -> &'static str {
        match self.counted_by {
            Counted::Device => "device peak MiB",
            Counted::Compiler => "device MiB by the compiler",
        }
    }
}

/// The time of a step with this number of threads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StepTime {
    /// Number of threads.
    pub threads: usize,
    /// Median over seeds.
    pub ms_per_step: f64,
    /// Standard deviation over seeds, in milliseconds.
    pub deviation: f64,
}

impl AgentCost {
    /// The published method with its setting.
    fn method(&self) -> Option<(String, &'static str)> {
        let setting = if self.agent == ACTOR_EVERY_STEP { "actor_every=1" } else { "" };
        Some((methods().get(self.agent.trim_end_matches('*'))?.clone(), setting))
    }

    /// The time with the most threads.
    fn ms_per_step(&self) -> Option<f64> {
        self.times.last().map(|time| time.ms_per_step)
    }
}

/// One of the paper's five quantities.
struct Quantity {
    name: &'static str,
    /// Its name in the published table.
    metric: &'static str,
    /// The published unit in terms of ours.
    unit: f64,
    /// Whether it depends on the machine, so that only ratios are comparable.
    machine: bool,
    measured: fn(&AgentCost) -> Option<f64>,
}

const QUANTITIES: [Quantity; 5] = [
    Quantity {
        name: "parameters",
        metric: "parameters",
        unit: 1e6,
        machine: false,
        measured: |cost| Some(cost.parameters as f64),
    },
    Quantity {
        name: "GFLOP/step",
        metric: "flops",
        unit: 1.0,
        machine: false,
        measured: |cost| Some(cost.gflop_per_step),
    },
    Quantity { name: "ms/step", metric: "time", unit: 1.0, machine: true, measured: AgentCost::ms_per_step },
    Quantity {
        name: "Q/V nets",
        metric: "value_networks",
        unit: 1.0,
        machine: false,
        measured: |cost| Some(cost.value_networks as f64),
    },
    Quantity {
        name: "peak MiB",
        metric: "peak_memory",
        unit: 1.0,
        machine: true,
        measured: |cost| Some(cost.device_memory.map_or(cost.peak_rss_mib, |memory| memory.mib)),
    },
];

impl Quantity {
    fn published(&self, published: &Published, method: &str, setting: &str) -> Option<f64> {
        let same =
            |row: &&PublishedRow| row.method == method && row.setting == setting && row.metric == self.metric;
        published.rows("cost").ok()?.iter().find(same).map(|row| row.mean * self.unit)
    }

    /// Measured and published values, each relative to ALBUM's.
    fn relative(
        &self,
        costs: &Costs,
        cost: &AgentCost,
        there: Option<f64>,
        published: &Published,
    ) -> [Option<f64>; 2] {
        let is_base = |cost: &&AgentCost| cost.method().is_some_and(|method| method == (BASE.into(), ""));
        let base = costs.agents.iter().find(is_base).and_then(|cost| (self.measured)(cost));
        let ratio = |value: Option<f64>, base: Option<f64>| Some(value? / base?);
        [ratio((self.measured)(cost), base), ratio(there, self.published(published, BASE, ""))]
    }

    fn written(&self, value: Option<f64>) -> String {
        match value {
            None => "–".into(),
            Some(value) if self.metric == "parameters" => format!("{} M", fixed(value / 1e6, 2)),
            Some(value) => compact(value),
        }
    }
}

impl Costs {
    /// The measured table.
    pub fn table(&self) -> Table {
        let threads: Vec<usize> =
            self.agents.first().map_or(Vec::new(), |cost| cost.times.iter().map(|t| t.threads).collect());
        let mut header: Vec<String> = ["agent", "parameters", "GFLOP/step"].map(str::to_owned).into();
        for threads in threads {
            let s = if threads == 1 { "" } else { "s" };
            let with = self.device.clone().unwrap_or_else(|| format!("{threads} thread{s}"));
            header.extend([format!("ms/step, {with}"), "deviation".to_owned()]);
        }
        header.extend(["Q/V nets", "peak MiB"].map(str::to_owned));
        // All agents ran on one device, which tells or does not.
        let memory = self.agents.iter().find_map(|cost| cost.device_memory);
        header.extend(memory.map(|memory| memory.column().to_owned()));
        header.push("seeds".into());
        self.agents.iter().fold(Table::new(header), |table, cost| {
            let mut row =
                vec![cost.agent.clone(), grouped(cost.parameters as i64), compact(cost.gflop_per_step)];
            row.extend(cost.times.iter().flat_map(|t| [compact(t.ms_per_step), compact(t.deviation)]));
            row.extend([cost.value_networks.to_string(), format!("{:.0}", cost.peak_rss_mib)]);
            let on_device = cost.device_memory.map_or("–".into(), |memory| format!("{:.0}", memory.mib));
            row.extend(memory.map(|_| on_device));
            row.push(self.seeds.to_string());
            table.row(row)
        })
    }

    /// The agents in the paper's cost table, with their names there.
    fn in_the_paper(&self, published: &Published) -> Vec<(&AgentCost, String, &'static str, String)> {
        let named = |cost| -> Option<(&AgentCost, String, &'static str, String)> {
            let (method, setting) = AgentCost::method(cost)?;
            QUANTITIES[0].published(published, &method, setting)?;
            let label =
                if setting.is_empty() { method.clone() } else { format!("{method}, actor at every step") };
            Some((cost, method, setting, label))
        };
        self.agents.iter().filter_map(named).collect()
    }

    /// Measured beside published values. Machine-dependent quantities are relative to ALBUM on the same
    /// machine; the best of each column is bold, as in the paper.
    pub(crate) fn beside_published(&self, published: &Published) -> Option<NamedTable> {
        let mut names = vec!["method".to_owned()];
        for quantity in &QUANTITIES {
            let name = if quantity.machine {
                format!("{} / {BASE}'s", quantity.name)
            } else {
                quantity.name.to_owned()
            };
            names.extend([format!("{name}, measured"), "published".to_owned()]);
        }
        let align = std::iter::once(Align::Left).chain([Align::Right; 10]);
        let mut table = Table::new(names).align(align).caption(format!(
            "Cost of a gradient step at antmaze-large sizes beside the paper's; best in bold. Times and memory depend on the \
             machine, so they are relative to {BASE} on the same machine: here a processor, in the paper a graphics card. \
             GFLOP are counted from the shapes of all products; the paper's are its compiler's count, which gives FQL and NFQL \
             different numbers for the same arithmetic. Two of its claims do not follow from the shapes: {BASE} needs 7 % fewer \
             FLOP than ReBRAC with the actor updated at every step (paper: 28 %), and as many as IQL (paper: 7 % fewer)."
        ));
        let header = [
            "method",
            "setting",
            "metric",
            "measured",
            "published",
            "measured_relative",
            "published_relative",
        ];
        let mut data = Table::new(header);
        let rows = self.in_the_paper(published);
        let shown: Vec<Vec<[Option<f64>; 2]>> = rows
            .iter()
            .map(|(cost, method, setting, _)| {
                let here_and_in_paper = |quantity: &Quantity| {
                    let in_paper = quantity.published(published, method, setting);
                    let relative = quantity.relative(self, cost, in_paper, published);
                    if quantity.machine { relative } else { [(quantity.measured)(cost), in_paper] }
                };
                QUANTITIES.iter().map(here_and_in_paper).collect()
            })
            .collect();
        let least = |column: usize, side: usize| {
            shown.iter().filter_map(|row| row[column][side]).fold(f64::INFINITY, f64::min)
        };
        for ((cost, method, setting, label), numbers) in rows.iter().zip(&shown) {
            let mut cells = vec![Entry::new(&**label)];
            for (column, quantity) in QUANTITIES.iter().enumerate() {
                for (side, value) in numbers[column].into_iter().enumerate() {
                    let best = value.is_some_and(|value| value <= least(column, side));
                    let rank = if best { Rank::Best } else { Rank::None };
                    cells.push(Entry::new(quantity.written(value)).rank(rank));
                }
                let in_paper = quantity.published(published, method, setting);
                let [here_relative, paper_relative] = quantity.relative(self, cost, in_paper, published);
                data = data.row([
                    Entry::new(&**method),
                    Entry::new(*setting),
                    Entry::new(quantity.metric),
                    (quantity.measured)(cost).into(),
                    in_paper.into(),
                    here_relative.into(),
                    paper_relative.into(),
                ]);
            }
            table = table.row(cells);
        }
        (!table.is_empty()).then_some(NamedTable { name: "cost", table, data })
    }

    /// The paper's five bar charts, measured beside published values. Times and memory are relative to
    /// ALBUM's.
    pub fn bars(&self, published: &Published) -> Figure {
        let rows = self.in_the_paper(published);
        let plots = QUANTITIES.iter().map(|quantity| {
            let (mut measured, mut given) = (Vec::new(), Vec::new());
            for (row, (cost, method, setting, _)) in rows.iter().enumerate() {
                let in_paper = quantity.published(published, method, setting);
                let [here, in_paper] = if quantity.machine {
                    quantity.relative(self, cost, in_paper, published)
                } else {
                    [(quantity.measured)(cost), in_paper]
                };
                measured.extend(here.map(|value| (row as f64 - 0.36, value)));
                given.extend(in_paper.map(|value| (row as f64 + 0.02, value)));
            }
            let label = match quantity.machine {
                true => format!("{}, relative to {BASE}", quantity.name),
                false => quantity.name.to_owned(),
            };
            let plot = Plot::new("")
                .size(460.0, 90.0 + 34.0 * rows.len() as f64)
                .x_label(label)
                .x_include(0.0)
                .legend(Legend::Shared)
                .y_names(rows.iter().map(|row| row.3.clone()));
            let plot = bars(plot, "measured", &measured, Ink::Series(0));
            bars(plot, "published", &given, Ink::Series(1))
        });
        panels("Cost of a gradient step, measured and published", plots, 2)
    }

    /// Average published success against the cost of a step, for both of the paper's sets of tasks: by
    /// operations, as its caption argues, and by time on this machine.
    pub fn pareto(&self, published: &Published) -> Figure {
        let sets = [("Ten environments", "main"), ("Five environments, with chunking", "chunking")];
        let axes: [(&str, Axis); 2] = [
            ("GFLOP per step", |cost| Some(cost.gflop_per_step)),
            ("ms per step here", AgentCost::ms_per_step),
        ];
        let plots = axes.iter().flat_map(|(label, cost_of)| {
            sets.iter().map(move |(title, table)| {
                let averages = published.scores(table).into_iter().flatten();
                let mut points: Vec<(f64, f64, &str)> = averages
                    .filter(|score| score.environment == "average")
                    .filter_map(|score| {
                        let same_method = |cost: &&AgentCost| {
                            cost.method().is_some_and(|method| method == (score.method.clone(), ""))
                        };
                        let cost = self.agents.iter().find(same_method)?;
                        Some((cost_of(cost)?, score.mean, cost.agent.as_str()))
                    })
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let mut best = f64::NEG_INFINITY;
                let mut frontier = Vec::new();
                for (cost, success, _) in &points {
                    if *success > best {
                        best = *success;
                        frontier.push((*cost, *success));
                    }
                }
                Plot::new(*title)
                    .size(470.0, 330.0)
                    .x_label(*label)
                    .y_label("average success in the paper (%)")
                    .x_include(0.0)
                    .y_include(0.0)
                    .labelled("agents", &points)
                    .dashed("Pareto frontier", &frontier)
            })
        });
        panels("Average success against the cost of a step", plots, 2)
    }
}

/// Horizontal bars of (upper edge, value), filled and outlined.
fn bars(plot: Plot, name: &str, bars: &[(f64, f64)], ink: Ink) -> Plot {
    const THICKNESS: f64 = 0.34;
    let (mut above, mut below, mut outline) = (Vec::new(), Vec::new(), Vec::new());
    for &(top, value) in bars {
        let bottom = top + THICKNESS;
        // A NaN point separates one bar from the next.
        above.extend([(0.0, top), (value, top), (value, f64::NAN)]);
        below.extend([(0.0, bottom), (value, bottom), (value, f64::NAN)]);
        outline.extend([(0.0, top), (value, top), (value, bottom), (0.0, bottom), (0.0, f64::NAN)]);
    }
    plot.band(name, &above, &below).ink(ink).line("", &outline).ink(ink)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(agent: &str, scale: f64) -> AgentCost {
        let time = |threads, ms| StepTime { threads, ms_per_step: ms * scale, deviation: 0.1 };
        AgentCost {
            agent: agent.into(),
            parameters: (2_430_000.0 * scale) as usize,
            gflop_per_step: 3.0 * scale,
            times: vec![time(1, 15.0), time(2, 10.0)],
            value_networks: 2,
            peak_rss_mib: 50.0 * scale,
            device_memory: None,
        }
    }

    fn costs() -> Costs {
        Costs {
            seeds: 3,
            device: None,
            agents: vec![cost("album", 1.0), cost("rebrac*", 2.5), cost("mine", 0.1)],
        }
    }

    #[test]
    fn cost_is_held_against_the_paper() {
        let made = costs().beside_published(&Published::load().unwrap()).unwrap();
        let csv = made.data.to_csv();
        assert!(csv.contains("ReBRAC,actor_every=1,time,25,1.19,2.5,1.017"), "{csv}");
        assert!(csv.contains("ALBUM,,parameters,2.43e6,2.43e6,1,1\n"), "{csv}");
        assert!(!csv.contains("mine"));
        assert!(made.table.to_latex().contains("\\textbf{2.43 M}"));
        let text = costs().table().to_text();
        assert!(text.contains("ms/step, 1 thread  ") && text.contains("ms/step, 2 threads"), "{text}");
    }

    /// On a device the paper's memory column is the device's, and the table says who counted it.
    #[test]
    fn the_memory_of_a_device_is_the_one_that_counts() {
        let mut on_device = costs();
        on_device.device = Some("cuda NVIDIA H100".into());
        for cost in &mut on_device.agents {
            let mib = 3.0 * cost.peak_rss_mib;
            cost.device_memory = Some(DeviceMemory { mib, counted_by: Counted::Device });
        }
        let text = on_device.table().to_text();
        assert!(text.contains("ms/step, cuda NVIDIA H100") && text.contains("device peak MiB"), "{text}");
        let csv = on_device.beside_published(&Published::load().unwrap()).unwrap().data.to_csv();
        assert!(csv.contains("ALBUM,,peak_memory,150,"), "{csv}");
        let memory = DeviceMemory { mib: 1.0, counted_by: Counted::Compiler };
        assert_eq!(memory.column(), "device MiB by the compiler");
        let json = serde_json::to_string(&costs()).unwrap();
        assert!(!json.contains("device"), "{json}");
    }

    /// The paper's figure has five charts; its Pareto figure counts operations.
    #[test]
    fn the_figures_are_the_papers() {
        let published = Published::load().unwrap();
        let bars = costs().bars(&published).render();
        for label in
            ["parameters", "GFLOP/step", "ms/step, relative to ALBUM", "Q/V nets", "peak MiB, relative"]
        {
            assert!(bars.contains(label), "{label}");
        }
        assert!(bars.contains(">measured<") && bars.contains(">published<") && !bars.contains("NaN"));
        let pareto = costs().pareto(&published).render();
        assert_eq!(pareto.matches(">GFLOP per step<").count(), 2);
        assert_eq!(pareto.matches(">ms per step here<").count(), 2);
    }
}
