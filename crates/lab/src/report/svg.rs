//! A chart as it is drawn: SVG without script, font or other file. What is drawn has
//! classes; [`theme`](super::theme) gives them colours.

use std::fmt::Write as _;

use super::theme::{COLOURS, LIGHT};

/// Where a text's place is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing under way.
pub(super) struct Svg {
    out: String,
    size: (f64, f64),
}

/// A chart: a complete `<svg>` element, and its size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawing {
    pub svg: String,
    size: (f64, f64),
}

/// About how wide a character is, of text of 12 units.
pub(super) const CHARACTER: f64 = 6.9;

impl Svg {
    /// Begins one; title and description are what somebody hears who does not see it.
    pub(super) fn new(width: f64, height: f64, title: &str, description: &str) -> Svg {
        let (title, description) = (escape(title), escape(description));
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\">\
             <title>{title}</title><desc>{description}</desc>\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>"
        );
        Svg { out, size: (width, height) }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // OK to drop: writing to a String cannot fail.
        let _ = self.out.write_fmt(element);
    }

    /// A line of text.
    pub(super) fn text(&mut self, (x, y): (f64, f64), class: &str, at: Anchor, text: &str) {
        let anchor = match at {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\"{anchor}>{text}</text>"
        ));
    }

    /// A heading at the upper left.
    pub(super) fn heading(&mut self, text: &str) {
        let text = escape(text);
        self.add(format_args!(
            "<text x=\"0\" y=\"15\" class=\"ink\" font-size=\"14\" font-weight=\"600\">\
             {text}</text>"
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    /// A box, and its tooltip.
    pub(super) fn rect(
        &mut self,
        (x, y): (f64, f64),
        size: (f64, f64),
        class: &str,
        tooltip: &str,
    ) {
        let ((w, h), tooltip) = (size, escape(tooltip));
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" class=\"{class}\">\
             <title>{tooltip}</title></rect>"
        ));
    }

    /// A line through points, stroked as the series of this number is.
    pub(super) fn path(&mut self, points: &[(f64, f64)], series: usize, tooltip: &str) {
        let mut places = String::new();
        for (x, y) in points {
            let _ = write!(places, "{x:.1},{y:.1} ");
        }
        let (class, tooltip) = (colour(series), escape(tooltip));
        let dashes = STROKES[(series + series / COLOURS) % STROKES.len()];
        self.add(format_args!(
            "<polyline points=\"{}\" class=\"{class} line\" stroke-dasharray=\"{dashes}\">\
             <title>{tooltip}</title></polyline>",
            places.trim_end()
        ));
    }

    /// The mark of the series of this number.
    pub(super) fn mark(&mut self, at: (f64, f64), series: usize, tooltip: &str) {
        let shape = SHAPES[(series + series / COLOURS) % SHAPES.len()];
        self.shape(at, shape, &colour(series), tooltip);
    }

    /// An upright mark: across a bar that lies.
    pub(super) fn upright(&mut self, at: (f64, f64), tooltip: &str) {
        self.shape(at, "M-1.5 -8h3v16h-3z", "ink", tooltip);
    }

    fn shape(&mut self, (x, y): (f64, f64), path: &str, class: &str, tooltip: &str) {
        let tooltip = escape(tooltip);
        self.add(format_args!(
            "<path transform=\"translate({x:.1} {y:.1})\" d=\"{path}\" class=\"{class}\">\
             <title>{tooltip}</title></path>"
        ));
    }

    /// The whole element.
    pub(super) fn end(mut self) -> Drawing {
        self.out.push_str("</svg>");
        Drawing { svg: self.out, size: self.size }
    }
}

/// The marks of series, in their order: a circle, a square, triangles, a diamond, a plus.
const SHAPES: [&str; 6] = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "M-4 -4h8v8h-8z",
    "M0 -5l5 9h-10z",
    "M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
    "M0 5l5 -9h-10z",
    "M-1.5 -5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
];

/// The strokes of series, in their order.
const STROKES: [&str; 6] = ["none", "7 3", "2 2.5", "9 3 2 3", "14 4", "5 2 1.5 2 1.5 2"];

/// The class of a series' colour.
pub(super) fn colour(series: usize) -> String {
    format!("c{}", series % COLOURS)
}

/// Charts with their own colours, as a file by itself: of several two side by side.
pub(crate) fn alone(title: &str, charts: &[Drawing]) -> String {
    let all = match charts {
        [] => return String::new(),
        [one] => one.svg.clone(),
        _ => beside(title, charts).svg,
    };
    let head = all.find('>').map_or(0, |at| at + 1);
    format!("{}<style>{}</style>{}", &all[..head], LIGHT.rules(), &all[head..])
}

fn beside(title: &str, charts: &[Drawing]) -> Drawing {
    const BETWEEN: (f64, f64) = (20.0, 16.0);
    let greatest =
        |of: fn(&Drawing) -> f64, all: &[Drawing]| all.iter().map(of).fold(0.0, f64::max);
    let column = greatest(|c| c.size.0, charts) + BETWEEN.0;
    let mut tops = vec![30.0];
    for row in charts.chunks(2) {
        tops.push(tops[tops.len() - 1] + greatest(|c| c.size.1, row) + BETWEEN.1);
    }
    let height = tops[tops.len() - 1] - BETWEEN.1;
    let mut svg = Svg::new(2.0 * column - BETWEEN.0, height, title, title);
    svg.heading(title);
    for (i, chart) in charts.iter().enumerate() {
        let (x, y) = ((i % 2) as f64 * column, tops[i / 2]);
        svg.add(format_args!("<svg x=\"{x:.0}\" y=\"{y:.0}\"{}", &chart.svg["<svg".len()..]));
    }
    svg.end()
}

/// A text that is shorter than it was, if it was too long.
pub(super) fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.into();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// A number with about three digits.
pub(super) fn compact(v: f64) -> String {
    let scaled = |v: f64, unit: &str| {
        let text = if v < 10.0 { format!("{v:.1}") } else { format!("{v:.0}") };
        text.trim_end_matches(".0").to_owned() + unit
    };
    match v {
        v if v >= 1e9 => scaled(v / 1e9, "G"),
        v if v >= 1e6 => scaled(v / 1e6, "M"),
        v if v >= 1e4 => scaled(v / 1e3, "k"),
        v if v >= 10.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 0.1 => format!("{v:.1}"),
        v if v >= 0.001 => format!("{v:.3}").trim_end_matches('0').to_owned(),
        v => format!("{v:e}"),
    }
}

/// A text without characters that have a meaning in SVG or HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (v, text) in [
            (2_500_000.0, "2.5M"),
            (1e9, "1G"),
            (12_345.0, "12k"),
            (65.94, "66"),
            (1.26, "1.3"),
            (0.01, "0.01"),
            (0.0, "0"),
        ] {
            assert_eq!(compact(v), text);
        }
    }

    #[test]
    fn words_are_escaped_wherever_they_stand() {
        let bad = "<script>\"&";
        let mut svg = Svg::new(10.0, 10.0, bad, bad);
        svg.heading(bad);
        svg.text((0.0, 0.0), "ink", Anchor::Start, bad);
        svg.rect((0.0, 0.0), (1.0, 1.0), "c0", bad);
        svg.path(&[(0.0, 0.0)], 7, bad);
        svg.mark((0.0, 0.0), 7, bad);
        let one = svg.end();
        let s = alone(bad, std::slice::from_ref(&one));
        assert!(!s.contains("<script") && s.matches("&lt;script&gt;&quot;&amp;").count() == 8);
        let s = alone(bad, &[one.clone(), one.clone(), one]);
        assert!(!s.contains("<script") && s.matches("</svg>").count() == 4, "{s}");
        assert!(s.contains("viewBox=\"0 0 40 66\"") && s.contains("x=\"0\" y=\"56\""), "{s}");
        assert_eq!(shortened("abcdef", 4), "abc\u{2026}");
    }
}
