//! A solved log in its own labels.

use album_data::table::ColumnData;

use super::{Advice, Interval, Log};

impl Log {
    /// A state of the data as text.
    pub fn state_label(&self, state: usize) -> String {
        let codes = self.states.codes(state);
        let labels: Vec<String> =
            self.states.columns.iter().zip(codes).map(|(column, code)| column.text(code)).collect();
        labels.join(", ")
    }

    /// The labels of a state of the solution, one per column.
    pub fn state_labels(&self, advice: &Advice, state: usize) -> Vec<String> {
        let codes = self.states.codes(advice.empirical.state_labels[state] as usize);
        self.states.columns.iter().zip(codes).map(|(column, code)| column.text(code)).collect()
    }

    /// The action to take in a state.
    pub fn action_label(&self, advice: &Advice, state: usize) -> String {
        self.pair_label(advice, advice.pair(state))
    }

    /// The action of a pair.
    pub fn pair_label(&self, advice: &Advice, pair: usize) -> String {
        self.actions.text(advice.empirical.pair_actions[pair] as usize)
    }

    /// The policy as a table with one row per state.
    pub fn policy_columns(&self, advice: &Advice) -> Vec<(String, ColumnData)> {
        let states = advice.states();
        let codes: Vec<Vec<usize>> =
            (0..states).map(|s| self.states.codes(advice.empirical.state_labels[s] as usize)).collect();
        let mut columns: Vec<(String, ColumnData)> = Vec::new();
        for (i, column) in self.states.columns.iter().enumerate() {
            columns.push((column.name.clone(), column.column(codes.iter().map(|codes| codes[i]))));
        }
        let actions = |pair: &dyn Fn(usize) -> usize| {
            self.actions.column((0..states).map(|s| advice.empirical.pair_actions[pair(s)] as usize))
        };
        let counts = &advice.empirical.counts;
        let mut add = |name: &str, data: ColumnData| {
            // A state column keeps its name.
            let taken = columns.iter().any(|(known, _)| known == name);
            columns.push((if taken { format!("album_{name}") } else { name.to_owned() }, data));
        };
        let float = |value: &dyn Fn(usize) -> f64| ColumnData::Float((0..states).map(value).collect());
        let int =
            |value: &dyn Fn(usize) -> u64| ColumnData::Int((0..states).map(|s| value(s) as i64).collect());
        add("best_action", actions(&|s| advice.pair(s)));
        add("usual_action", actions(&|s| advice.usual[s]));
        add("value", float(&|s| advice.value[s]));
        add("behaviour_value", float(&|s| advice.behaviour_value[s]));
        add("gain", float(&|s| advice.gain[s]));
        add("count", int(&|s| advice.count[s]));
        add("best_count", int(&|s| counts[advice.pair(s)]));
        add("supported", ColumnData::Bool(advice.best.iter().map(Option::is_some).collect()));
        if let Some(intervals) = &advice.intervals {
            let ends = |intervals: &[Interval], high: bool| {
                ColumnData::Float(intervals.iter().map(|x| if high { x.high } else { x.low }).collect())
            };
            add("value_low", ends(&intervals.value, false));
            add("value_high", ends(&intervals.value, true));
            add("gain_low", ends(&intervals.gain, false));
            add("gain_high", ends(&intervals.gain, true));
            add("gain_is_certain", ColumnData::Bool(intervals.certain.clone()));
        }
        columns
    }
}
