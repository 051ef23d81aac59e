//! `completions` and `man`: the command line's definition in the forms that shells and `man` read.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Done;
use super::args::Cli;
use super::fail::Exit;
use super::out::Out;

pub(super) fn completions(out: &Out, shell: Shell) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "phalanx", &mut text);
    show(out, &text)
}

pub(super) fn man(out: &Out) -> Done {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    show(out, &text)
}

fn show(out: &Out, text: &[u8]) -> Done {
    out.data(&String::from_utf8_lossy(text))?;
    Ok(Exit::DONE)
}
