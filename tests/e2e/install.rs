//! `scripts/install`: what it installs, and that it installs nothing that it could not check.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::harness::{Run, Stage};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/install");

/// A directory with a release for this machine, whose program is a script.
struct Release {
    stage: Stage,
    dir: PathBuf,
    archive: String,
}

impl Release {
    fn new() -> Release {
        let stage = Stage::new();
        let dir = stage.at("release");
        let name = format!("phalanx-9.8.7-{}-unknown-linux-musl", std::env::consts::ARCH);
        let tree = dir.join(&name);
        for sub in ["bin", "share/man/man1", "share/bash-completion/completions"] {
            fs::create_dir_all(tree.join(sub)).expect("a directory");
        }
        // Not the real program, which takes ten seconds to compress.
        stage.script(&tree.join("bin/phalanx"), "#!/bin/sh\necho phalanx 9.8.7\n");
        let pages = tree.join("share/man/man1");
        let written = stage.phalanx(&["--json", "man", "--dir", &pages.to_string_lossy()]);
        let pages = written.expect(0).json()["pages"].as_array().expect("a list").len();
        assert!(pages > 50, "{pages} pages: all verbs and their subcommands have one");
        let archive = format!("{name}.tar.gz");
        let release = Release { stage, dir, archive };
        release.run("tar", &["-czf", &release.archive, &name]);
        fs::remove_dir_all(tree).expect("removed");
        release.write_sums();
        release
    }

    fn run(&self, program: &str, args: &[&str]) -> Run {
        let mut command = self.stage.command(program);
        Run::from(command.current_dir(&self.dir).args(args).output().expect("it runs")).expect(0)
    }

    fn write_sums(&self) {
        let sums = self.run("sha256sum", &[&self.archive]).stdout;
        fs::write(self.dir.join("SHA256SUMS"), sums).expect("written");
    }

    fn install(&self, from: &str, to: &str) -> Run {
        let mut command = self.stage.command("sh");
        command.current_dir(self.stage.at("work"));
        Run::from(command.args([SCRIPT, "--from", from, "--to", to]).output().expect("it runs"))
    }
}

/// Serves a directory on loopback; ends when dropped.
struct WebServer(Child, String);

impl WebServer {
    fn of(release: &Release) -> WebServer {
        let serve = "import functools, http.server as h\n\
                     handler = functools.partial(h.SimpleHTTPRequestHandler, directory='.')\n\
                     server = h.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n\
                     print(server.server_port, flush=True)\n\
                     server.serve_forever()";
        let mut command: Command = release.stage.command("python3");
        command.current_dir(&release.dir).args(["-c", serve]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("python3");
        let mut port = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut port).expect("a port");
        WebServer(child, format!("http://127.0.0.1:{}", port.trim()))
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn release_is_installed_from_a_directory_and_over_http() {
    let release = Release::new();
    let dir = release.dir.to_string_lossy().into_owned();
    let server = WebServer::of(&release);
    for (from, to) in [(dir.as_str(), "here"), (server.1.as_str(), "there"), (&dir, "here")] {
        let done = release.install(from, to).expect(0);
        assert!(done.stdout.contains("add it to your path"), "{done:?}");
        let root = release.stage.at("work").join(to);
        let page = fs::read_to_string(root.join("share/man/man1/phalanx-team-create.1"));
        assert!(page.expect("a page").contains("phalanx"));
        let program = root.join("bin/phalanx").to_string_lossy().into_owned();
        assert!(release.run(&program, &["--version"]).stdout == "phalanx 9.8.7\n");
        let left = fs::read_dir(root.join("bin")).expect("a directory").count();
        assert_eq!(left, 1, "nothing beside the program");
    }
}

#[test]
fn archive_with_another_sum_is_not_installed() {
    let release = Release::new();
    let archive = release.dir.join(&release.archive);
    let mut bytes = fs::read(&archive).expect("readable");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, bytes).expect("writable");
    let dir = release.dir.to_string_lossy().into_owned();
    let refused = release.install(&dir, "here").expect(1);
    assert!(refused.stderr.contains("nothing was installed"), "{refused:?}");
    assert!(!release.stage.at("work/here").exists());
}

#[test]
fn release_without_a_build_for_this_machine_is_refused() {
    let release = Release::new();
    let sums = release.dir.join("SHA256SUMS");
    let other = fs::read_to_string(&sums).expect("readable").replace("linux", "other");
    fs::write(&sums, other).expect("writable");
    let dir = release.dir.to_string_lossy().into_owned();
    let refused = release.install(&dir, "here").expect(1);
    assert!(refused.stderr.contains("has no build for"), "{refused:?}");
    let insecure = release.install("http://example.invalid", "here").expect(1);
    assert!(insecure.stderr.contains("not an https address"), "{insecure:?}");
    assert!(!release.stage.at("work/here").exists());
}
