//! Plots of series over two axes.

mod draw;
mod frame;
mod series;

use crate::axis::{AxisSpec, Scale};
use crate::colour::Ink;
use crate::figure::Figure;
use crate::legend::{Legend, Shape};
use series::{Series, SeriesKind};

/// A plot, built series by series.
///
/// Non-finite values break a line and are otherwise left out, as are non-positive values on a logarithmic
/// axis. Series with many points are thinned to screen resolution, without losing extremes. Text may use
/// `_{…}` and `^{…}`; a series with an empty name has no legend entry, and one without points has only its
/// legend entry.
///
/// ```
/// use album_plot::{Plot, Scale};
/// let svg = Plot::new("Speedup")
///     .x_label("K")
///     .x_scale(Scale::Log)
///     .x_ticks(&[1.0, 2.0, 4.0, 8.0])
///     .y_include(0.0)
///     .markers("measured", &[(1.0, 1.0), (2.0, 1.9), (4.0, 3.6), (8.0, f64::NAN)])
///     .render();
/// assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
/// ```
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    x: AxisSpec,
    y: AxisSpec,
    width: f64,
    height: f64,
    legend: Legend,
    series: Vec<Series>,
    /// Number of series that have taken a colour from the palette.
    coloured: usize,
}

impl Plot {
    /// An empty plot. An empty title takes no space.
    pub fn new(title: impl Into<String>) -> Self {
        Plot {
            title: title.into(),
            x: AxisSpec::default(),
            y: AxisSpec::default(),
            width: 720.0,
            height: 400.0,
            legend: Legend::Auto,
            series: Vec::new(),
            coloured: 0,
        }
    }

    /// Sets the size of the whole figure in pixels (default 720 by 400).
    pub fn size(mut self, width: f64, height: f64) -> Self {
        // Smaller figures would have no space for their axes.
        let sane = |v: f64, least: f64| if v.is_finite() { v.clamp(least, 1e4) } else { least };
        (self.width, self.height) = (sane(width, 120.0), sane(height, 90.0));
        self
    }

    /// Sets the label of the x axis.
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x.label = label.into();
        self
    }

    /// Sets the label of the y axis.
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y.label = label.into();
        self
    }

    /// Sets the scale of the x axis.
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.x.scale = scale;
        self
    }

    /// Sets the scale of the y axis.
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y.scale = scale;
        self
    }

    /// Sets the range of the x axis; data beyond it is cut off.
    pub fn x_range(mut self, lo: f64, hi: f64) -> Self {
        self.x.range = Some((lo, hi));
        self
    }

    /// Sets the range of the y axis; data beyond it is cut off.
    pub fn y_range(mut self, lo: f64, hi: f64) -> Self {
        self.y.range = Some((lo, hi));
        self
    }

    /// Makes the automatic range of the x axis contain a value.
    pub fn x_include(mut self, value: f64) -> Self {
        self.x.include.push(value);
        self
    }

    /// Makes the automatic range of the y axis contain a value, such as zero.
    pub fn y_include(mut self, value: f64) -> Self {
        self.y.include.push(value);
        self
    }

    /// Sets the ticks of the x axis.
    pub fn x_ticks(mut self, ticks: &[f64]) -> Self {
        self.x.ticks = Some(ticks.to_vec());
        self
    }

    /// Sets the ticks of the y axis.
    pub fn y_ticks(mut self, ticks: &[f64]) -> Self {
        self.y.ticks = Some(ticks.to_vec());
        self
    }

    /// Labels the y axis with names instead of numbers: the first is at `y` = 0, at the top, the next at 1.
    ///
    /// ```
    /// use album_plot::Plot;
    /// let svg = Plot::new("").y_names(["one", "two"]).points("", &[(3.0, 0.0), (5.0, 1.0)]).render();
    /// assert!(svg.contains(">one<") && svg.contains(">two<"));
    /// ```
    pub fn y_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.y.range = Some((-0.6, names.len() as f64 - 0.4));
        self.y.names = Some(names);
        self
    }

    /// Sets where the legend goes.
    pub fn legend(mut self, legend: Legend) -> Self {
        self.legend = legend;
        self
    }

    /// Adds a line.
    pub fn line(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add(name, SeriesKind::Line(points.to_vec()))
    }

    /// Adds a dashed line, as for references and bounds.
    pub fn dashed(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add(name, SeriesKind::Dashed(points.to_vec()))
    }

    /// Adds a line with a marker at every point.
    pub fn markers(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let shape = Shape::of(self.coloured);
        self.add(name, SeriesKind::Markers(points.to_vec(), shape))
    }

    /// Adds points without a line: markers if there are few, dots if there are many.
    pub fn points(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let shape = Shape::of(self.coloured);
        self.add(name, SeriesKind::Points(points.to_vec(), shape))
    }

    /// Adds points with labels, placed beside the data where there is space.
    pub fn labelled<S: AsRef<str>>(self, name: impl Into<String>, points: &[(f64, f64, S)]) -> Self {
        let shape = Shape::of(self.coloured);
        let places = points.iter().map(|p| (p.0, p.1)).collect();
        let labels = points.iter().map(|p| p.2.as_ref().to_string()).collect();
        self.add(name, SeriesKind::Labelled(places, labels, shape))
    }

    /// Adds a band between two lines given at the same x, as for confidence intervals.
    ///
    /// The x values are those of `lower`; points without a counterpart are left out.
    pub fn band(self, name: impl Into<String>, lower: &[(f64, f64)], upper: &[(f64, f64)]) -> Self {
        let edge = |(l, u): (&(f64, f64), &(f64, f64))| {
            // `min` and `max` would hide a NaN on one side; the band must break there.
            if l.1.is_nan() || u.1.is_nan() {
                (l.0, f64::NAN, f64::NAN)
            } else {
                (l.0, l.1.min(u.1), l.1.max(u.1))
            }
        };
        let edges = lower.iter().zip(upper).map(edge).collect();
        self.add(name, SeriesKind::Band(edges))
    }

    /// Marks points that must stand out, such as violated inequalities, with red rings on top of everything.
    /// The legend gives their number, even if it is zero.
    pub fn flags(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let mut plot = self.add(name, SeriesKind::Flags(points.to_vec()));
        plot.coloured -= 1;
        plot.ink(Ink::Bad)
    }

    /// Sets the colour of the last series.
    pub fn ink(mut self, ink: Ink) -> Self {
        if let Some(last) = self.series.last_mut() {
            last.ink = ink;
        }
        self
    }

    /// Gives the last series the colour of the previous one, as for a band around a line.
    pub fn same_ink(mut self) -> Self {
        if let [.., before, last] = &mut self.series[..] {
            let next = Ink::Series(self.coloured.wrapping_sub(1));
            if last.ink == next && before.ink != next {
                self.coloured -= 1;
            }
            last.ink = before.ink;
        }
        self
    }

    fn add(mut self, name: impl Into<String>, kind: SeriesKind) -> Self {
        self.series.push(Series { name: name.into(), ink: Ink::Series(self.coloured), kind });
        self.coloured += 1;
        self
    }

    /// The plot as one `<svg>` element.
    pub fn render(&self) -> String {
        self.figure().render()
    }
}

impl From<Plot> for Figure {
    fn from(plot: Plot) -> Self {
        plot.figure()
    }
}

impl From<&Plot> for Figure {
    fn from(plot: &Plot) -> Self {
        plot.figure()
    }
}
