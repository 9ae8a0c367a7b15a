//! Colours of charts, by class: what is drawn says what it is, the style how that looks on paper,
//! on a light screen and on a dark one.

use std::fmt::Write as _;

/// Colours for one kind of ground.
pub(super) struct Theme {
    paper: &'static str,
    ink: &'static str,
    dim: &'static str,
    grid: &'static str,
    axis: &'static str,
    /// Of the series, distinguished by the colour-blind; each has 3:1 and more to the ground.
    series: [&'static str; COLOURS],
    /// Of heat maps, from the least to the most.
    heat: [&'static str; HEATS],
    /// The first of `heat` on which text is written in the colour of the paper.
    inverted: usize,
}

/// How many colours there are; more series repeat them with other marks and strokes.
pub(super) const COLOURS: usize = 6;
/// Steps of a heat map.
pub(super) const HEATS: usize = 8;

/// On white, and in print.
pub(super) const LIGHT: Theme = Theme {
    paper: "#ffffff",
    ink: "#1a1a1a",
    dim: "#595959",
    grid: "#dddddd",
    axis: "#767676",
    series: ["#0072b2", "#c44e00", "#00805d", "#a8447f", "#7a6200", "#5b5fc7"],
    heat: ["#f3f8fc", "#dceaf6", "#bfd8ed", "#98c1e0", "#6aa5d0", "#3f86bd", "#2167a3", "#0b4a82"],
    inverted: 5,
};

/// On nearly black.
pub(super) const DARK: Theme = Theme {
    paper: "#15181c",
    ink: "#e8e8e8",
    dim: "#a9b0b8",
    grid: "#343a41",
    axis: "#8a929b",
    series: ["#56b4e9", "#ff9248", "#2fd0a0", "#e79ac4", "#f0c808", "#a6a8ff"],
    heat: ["#1d2733", "#1f3850", "#204b70", "#236191", "#2f7bb4", "#5097cf", "#7fb6e2", "#b5d7f2"],
    inverted: 5,
};

impl Theme {
    /// The style sheet's rules for what charts are made of.
    pub(super) fn rules(&self) -> String {
        let Theme { paper, ink, dim, grid, axis, .. } = self;
        let mut s = format!(
            ".paper{{fill:{paper}}}.ink{{fill:{ink}}}.dim{{fill:{dim}}}\
             .grid{{stroke:{grid}}}.axis{{stroke:{axis}}}\
             .edge{{fill:none;stroke:{ink};stroke-width:1.6}}"
        );
        for (i, colour) in self.series.iter().enumerate() {
            // Writing to a String cannot fail, so the results are dropped here and below.
            let _ = write!(s, ".c{i}{{fill:{colour};stroke:{colour}}}");
        }
        for (i, colour) in self.heat.iter().enumerate() {
            let text = if i >= self.inverted { paper } else { ink };
            let _ = write!(s, ".h{i}{{fill:{colour}}}.t{i}{{fill:{text}}}");
        }
        // After the colours, which fill.
        s + ".line{fill:none;stroke-width:2;stroke-linejoin:round}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a colour `#rrggbb`, as WCAG 2 has it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let c = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// WCAG 2: 4.5 for text, 3 for what is drawn.
    #[test]
    fn everything_can_be_seen_on_its_ground() {
        for theme in [LIGHT, DARK] {
            for text in [theme.ink, theme.dim] {
                assert!(contrast(text, theme.paper) >= 4.5, "{text}");
            }
            for drawn in theme.series.iter().chain([&theme.axis]) {
                assert!(contrast(drawn, theme.paper) >= 3.0, "{drawn}");
            }
            for (i, heat) in theme.heat.iter().enumerate() {
                let text = if i >= theme.inverted { theme.paper } else { theme.ink };
                assert!(contrast(text, heat) >= 3.0, "{heat} {}", contrast(text, heat));
            }
        }
    }
}
