//! The preset of a task, and what is chosen from the data where no preset was tuned.

use super::{Preset, Sampling, parse};
use crate::error::Error;
use crate::own::{ACTOR_AVERAGE, Chosen, Reason};
use crate::problem::Problem;
use album_agents::AgentKind;
use album_tabular::Coefficients;

/// The preset of a task ([`Preset::Paper`] by default, except on PointMaze and on the user's own data), and
/// the values chosen from the data.
pub(super) fn preset(
    kind: &AgentKind,
    problem: &Problem,
    preset: Option<Preset>,
    gamma: Option<f64>,
) -> Result<(toml::Table, Vec<Reason>), Error> {
    let preset = preset.unwrap_or(match problem {
        Problem::Own(_) | Problem::MudWorld(_) => Preset::Own,
        _ if problem.is_native() => Preset::Small,
        _ => Preset::Paper,
    });
    let mut table = parse(if preset == Preset::Small { SMALL_LOOP } else { "" }, "preset")?;
    let mut settings = kind.preset(problem.environment(), preset)?;
    let mut chosen = Vec::new();
    if preset == Preset::Own
        && let Some((data, usual)) = problem.untuned()?
    {
        let known = kind.defaults()?;
        let coefficients = toml::Value::Table(known.clone()).try_into();
        let coefficients: Coefficients = coefficients.map_err(|e| Error::Config(e.to_string()))?;
        let chosen_now = Chosen::from_data(&data, gamma.or(usual), &coefficients)?;
        let Chosen { gamma, reward_scale, k, steps, holdout, discrete_policy, averaged, held_up, mut why } =
            chosen_now;
        settings.insert("gamma".into(), gamma.into());
        settings.insert("reward_scale".into(), reward_scale.into());
        if let Some(policy) = discrete_policy.filter(|_| known.contains_key("discrete_policy")) {
            settings.insert("discrete_policy".into(), policy.into());
        }
        if averaged && known.contains_key("actor_average") {
            // A converged critic rates every recorded action as good as V, and the policy becomes plain cloning.
            settings.insert("lr_decay".into(), "none".into());
            settings.insert("actor_average".into(), ACTOR_AVERAGE.into());
            let values = ["lr_decay", "actor_average"].map(|key| (key, settings[key].clone()));
            why.push(Reason::new(values, "most states occur once"));
        }
        if known.contains_key("k") {
            settings.insert("k".into(), toml::Value::Integer(k as i64));
        }
        let mut sampling = Sampling::default();
        if let Some(held_up) = held_up.filter(|_| known.contains_key("omega_q")) {
            sampling = held_up.sampling;
            let omegas = [("omega_q", held_up.omega_q.into()), ("omega_v", held_up.omega_v.into())];
            settings.extend(omegas.iter().cloned().map(|(key, value)| (key.to_owned(), value)));
            let values = [("sampling", sampling.to_value()?)].into_iter().chain(omegas);
            why.push(Reason::new(values, held_up.why));
        }
        let period = |parts: u64| toml::Value::Integer((steps / parts) as i64);
        table.insert(
            "train".into(),
            toml::Value::Table(toml::Table::from_iter([
                ("steps".to_owned(), period(1)),
                ("log_every".to_owned(), period(100)),
                ("eval_every".to_owned(), period(10)),
                ("eval_episodes".to_owned(), toml::Value::Integer(20)),
                ("save_every".to_owned(), period(10)),
                ("holdout".to_owned(), holdout.into()),
                ("sampling".to_owned(), sampling.to_value()?),
            ])),
        );
        chosen = why;
    }
    table.insert(kind.name.to_owned(), toml::Value::Table(settings));
    Ok((table, chosen))
}

/// A short schedule for small networks.
const SMALL_LOOP: &str = "
[train]
steps = 40000
log_every = 500
eval_every = 2000
save_every = 4000
";
