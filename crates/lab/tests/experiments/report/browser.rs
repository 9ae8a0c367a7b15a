//! Chromium without a window.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;
use tempfile::TempDir;

/// Names of the program, the smallest first.
const NAMES: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// A page that shows another in frames of several widths, and prints what is wrong with it.
const FRAMES: &str = include_str!("frames.html");

/// An installed Chromium, and a folder for what it is shown.
pub struct Browser {
    program: PathBuf,
    folder: TempDir,
}

/// What was seen of a page in a frame.
#[derive(Debug, Deserialize)]
pub struct Seen {
    pub width: u32,
    pub title: String,
    /// Elements of that name.
    pub scripts: u64,
    /// Whether some script of the page has run.
    pub ran: bool,
    /// What is cut off, covers another, or cannot be seen.
    pub faults: Vec<String>,
    /// The colour of the page.
    pub ground: String,
}

impl Browser {
    pub fn find() -> Option<Browser> {
        let path = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let programs = NAMES.iter().flat_map(|n| folders.iter().map(move |f| f.join(n)));
        let program = programs.into_iter().find(|p| p.is_file())?;
        Some(Browser { program, folder: tempfile::tempdir().unwrap() })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn put(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// Runs it; whatever a page says on its console is a failure.
    fn run(&self, args: &[&str], page: &str) -> Output {
        let out = Command::new("timeout")
            .args(["-s", "KILL", "60"])
            .arg(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-extensions", "--disable-background-networking"])
            .args(["--hide-scrollbars", "--enable-logging=stderr", "--log-level=0"])
            .arg("--allow-file-access-from-files")
            .arg(format!("--user-data-dir={}", self.path().join("profile").display()))
            .args(args)
            .arg(format!("file://{}", self.path().join(page).display()))
            .env("HOME", self.path())
            .current_dir(self.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{page}: {:?}\n{said}", out.status);
        assert!(!said.contains("CONSOLE"), "{page}: {said}");
        out
    }

    /// Looks at a page in frames of several widths.
    pub fn look(&self, name: &str, dark: bool) -> Vec<Seen> {
        self.put("frames.html", &FRAMES.replace("PAGE", &format!("{name}.html")));
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
        let out = self.run(&[&scheme, "--window-size=1400,1000", "--dump-dom"], "frames.html");
        let dom = String::from_utf8(out.stdout).unwrap();
        let found =
            dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let json = found.unwrap_or_else(|| panic!("{name}: nothing was reported: {dom}")).0;
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        serde_json::from_str(&json).unwrap_or_else(|e| panic!("{name}: {e}: {json}"))
    }

    /// Prints a page; how many pages it takes on paper.
    pub fn print(&self, name: &str) -> usize {
        let pdf = self.path().join(format!("{name}.pdf"));
        let to = format!("--print-to-pdf={}", pdf.display());
        self.run(&[&to, "--no-pdf-header-footer"], &format!("{name}.html"));
        let bytes = std::fs::read(pdf).unwrap();
        assert!(bytes.starts_with(b"%PDF-"));
        let text = String::from_utf8_lossy(&bytes);
        text.matches("/Type /Page\n").count()
    }

    /// Takes pictures, light and dark, for somebody to look at: into the folder that
    /// `STEADFAST_PICTURES` names, if it does.
    pub fn keep_pictures(&self, names: &[&str]) {
        let Some(folder) = std::env::var_os("STEADFAST_PICTURES").map(PathBuf::from) else {
            return;
        };
        std::fs::create_dir_all(&folder).unwrap();
        for name in names {
            for (scheme, light) in [("light", 1), ("dark", 0)] {
                let picture = folder.join(format!("{name}-{scheme}.png"));
                let args = [
                    format!("--blink-settings=preferredColorScheme={light}"),
                    format!("--screenshot={}", picture.display()),
                    "--window-size=1280,6000".into(),
                ];
                self.run(&args.each_ref().map(String::as_str), &format!("{name}.html"));
            }
            std::fs::copy(self.path().join(format!("{name}.html")), folder.join(name)).unwrap();
        }
    }
}
