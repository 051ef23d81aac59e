//! `fixtures/fake-agent` as a profile: a member that reads its mailbox and follows the instructions
//! on its command line.

use crate::harness::Stage;

/// Installs the profile `fake`, whose command line is passed to the agent.
pub fn install(stage: &Stage) {
    profile(stage, "fake", &["{command}"]);
}

/// Installs a profile whose agents always get the same instructions.
pub fn profile(stage: &Stage, name: &str, words: &[&str]) {
    // The `python3` on `PATH` may be a shim that needs `PATH` itself.
    let python = std::process::Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let python = String::from_utf8(python.expect("python3").stdout).expect("a path");
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/fake-agent");
    let text = format!(
        "about = \"plays a member\"\nruns = \"native\"\nreads_mail = true\n\
         [launch]\nargv = [[\"{}\", \"{agent}\", \"{{phalanx}}\"], {words:?}]\nprompt = \"mailbox\"\n\
         [launch.modes]\ndefault = []\n[ready]\nwhen = \"settled\"\nsettle_ms = 100\n",
        python.trim(),
    );
    stage.profile(name, &text);
}
