//! Screens of a scripted turn at several sizes.

use super::*;

fn play(cols: u16, rows: u16) -> Stage {
    let mut stage = Stage::ready(cols, rows);
    play_to_question(&mut stage);
    stage
}

fn play_to_end(cols: u16, rows: u16) -> Stage {
    let mut stage = play(cols, rows);
    stage.key(KeyCode::Char('y'));
    stage.conversation.decided(QuestionId(1), "allowed");
    stage.draw();
    stage.wait(800);
    stage.report(SessionReport::Tool(edit("e", ToolStatus::Completed)));
    stage.text("The function returns an error now.");
    stage.report(ended(Outcome::Done));
    stage
}

/// Prints screens for a person: run it with `--nocapture`.
#[test]
fn screens_are_printed_to_look_at() {
    for (cols, rows) in [(120, 40), (80, 24), (40, 20)] {
        let mut stage = play(cols, rows);
        println!("=== {cols}x{rows}, all rows");
        stage.history().iter().for_each(|row| println!("|{row}"));
        println!("=== {cols}x{rows}, screen");
        stage.screen().iter().for_each(|row| println!("|{row}"));
        let stage = play_to_end(cols, rows);
        println!("=== {cols}x{rows}, end of the turn");
        stage.screen().iter().for_each(|row| println!("|{row}"));
    }
}
