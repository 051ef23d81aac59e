//! Screens as text.

use super::*;

/// Compares the rows of the screen that are not empty.
fn check(stage: &mut Stage, expected: &[&str]) {
    let shown: Vec<String> = stage.screen().into_iter().filter(|row| !row.is_empty()).collect();
    assert_eq!(shown.join("\n"), expected.join("\n"));
}

#[test]
fn unified_view_shows_both_numbers_words_and_comments() {
    let mut stage = Stage::sample(80, 20);
    stage.view.set_annotations(vec![draft(12, 41, "This still loses the name.")]);
    stage.keys("jjj");
    check(
        &mut stage,
        &[
            r#" ada · demo-ada · 1a2b3c4 → 9f8e7d6             file 1/4 · 1 draft · viewed 0/4"#,
            r#" ▾ src/auth.rs  +3 −2"#,
            r#" @@ -40,4 +40,4 @@ use std::env;"#,
            r#"  40  40   fn token() -> Result<String> {"#,
            r#"▶ 41     -         let t = env::var("TOKEN").unwrap();"#,
            r#"      41 +         let t = env::var("TOKEN")?;"#,
            r#"    ┃ R12 must · draft  This still loses the name."#,
            r#"  42  42           Ok(t)"#,
            r#"  43  43   }"#,
            r#" @@ -88,3 +88,4 @@ fn check()"#,
            r#"  88  88   one"#,
            r#"  89     - two"#,
            r#"      89 + alpha"#,
            r#"      90 + beta"#,
            r#"  90  91   three"#,
            r#" ▸ logo.png   · binary"#,
            r#" ▸ old → new   · renamed"#,
            r#" ▾ notes.txt  +1 · new"#,
            r#" @@ -0,0 +1,1 @@"#,
            r#" ? help  q close  c comment  ] hunk  } file  f files  V viewed  / search"#,
        ],
    );
}

#[test]
fn side_by_side_view_pairs_replaced_lines() {
    let mut stage = Stage::sample(120, 20);
    stage.view.set_annotations(vec![draft(12, 41, "This still loses the name.")]);
    stage.keys("tjjj");
    check(
        &mut stage,
        &[
            r#" ada · demo-ada · 1a2b3c4 → 9f8e7d6                                                     file 1/4 · 1 draft · viewed 0/4"#,
            r#" ▾ src/auth.rs  +3 −2"#,
            r#" @@ -40,4 +40,4 @@ use std::env;"#,
            r#"  40   fn token() -> Result<String> {                      │  40   fn token() -> Result<String> {"#,
            r#"▶ 41 -         let t = env::var("TOKEN").unwrap();         │  41 +         let t = env::var("TOKEN")?;"#,
            r#"    ┃ R12 must · draft  This still loses the name."#,
            r#"  42           Ok(t)                                       │  42           Ok(t)"#,
            r#"  43   }                                                   │  43   }"#,
            r#" @@ -88,3 +88,4 @@ fn check()"#,
            r#"  88   one                                                 │  88   one"#,
            r#"  89 - two                                                 │  89 + alpha"#,
            r#"                                                           │  90 + beta"#,
            r#"  90   three                                               │  91   three"#,
            r#" ▸ logo.png   · binary"#,
            r#" ▸ old → new   · renamed"#,
            r#" ▾ notes.txt  +1 · new"#,
            r#" @@ -0,0 +1,1 @@"#,
            r#"                                                           │   1 + a note no newline at end"#,
            r#" ? help  q close  c comment  ] hunk  } file  f files  V viewed  / search  m next comment  t split  w words  Enter fold"#,
        ],
    );
}

#[test]
fn list_of_files_opens_over_a_narrow_diff() {
    let mut stage = Stage::sample(80, 12);
    stage.view.set_annotations(vec![draft(12, 41, "This still loses the name.")]);
    stage.keys("Gf");
    check(
        &mut stage,
        &[
            r#" ada · demo-ada · 1a2b3c4 → 9f8e7d6             file 4/4 · 1 draft · viewed 0/4"#,
            r#" ○ M src/auth.rs                                                          +3 −2"#,
            r#" ○ B logo.png"#,
            r#" ○ R new"#,
            r#"▶○ A notes.txt                                                               +1"#,
            r#" Enter open  V viewed  Esc close  f hide"#,
        ],
    );
}

#[test]
fn list_of_files_is_a_column_of_a_wide_screen() {
    let mut stage = Stage::sample(110, 14);
    stage.view.set_annotations(vec![draft(12, 41, "This still loses the name.")]);
    stage.keys("j");
    check(
        &mut stage,
        &[
            r#" ada · demo-ada · 1a2b3c4 → 9f8e7d6                                           file 1/4 · 1 draft · viewed 0/4"#,
            r#"▶○ M src/auth.rs    +3 −2 │ ▾ src/auth.rs  +3 −2"#,
            r#" ○ B logo.png             │▶@@ -40,4 +40,4 @@ use std::env;"#,
            r#" ○ R new                  │  40  40   fn token() -> Result<String> {"#,
            r#" ○ A notes.txt         +1 │  41     -         let t = env::var("TOKEN").unwrap();"#,
            r#"                          │      41 +         let t = env::var("TOKEN")?;"#,
            r#"                          │    ┃ R12 must · draft  This still loses the name."#,
            r#"                          │  42  42           Ok(t)"#,
            r#"                          │  43  43   }"#,
            r#"                          │ @@ -88,3 +88,4 @@ fn check()"#,
            r#"                          │  88  88   one"#,
            r#"                          │  89     - two"#,
            r#"                          │      89 + alpha"#,
            r#" ? help  q close  c comment  ] hunk  } file  f files  V viewed  / search  m next comment  t split  w words"#,
        ],
    );
}

#[test]
fn folded_file_is_one_row_and_a_search_unfolds_it() {
    let mut stage = Stage::sample(80, 12);
    stage.press(KeyCode::Enter);
    check(
        &mut stage,
        &[
            r#" ada · demo-ada · 1a2b3c4 → 9f8e7d6            file 1/4 · 0 drafts · viewed 0/4"#,
            r#"▶▸ src/auth.rs  +3 −2"#,
            r#" ▸ logo.png   · binary"#,
            r#" ▸ old → new   · renamed"#,
            r#" ▾ notes.txt  +1 · new"#,
            r#" @@ -0,0 +1,1 @@"#,
            r#"       1 + a note no newline at end"#,
            r#" ? help  q close  c comment  ] hunk  } file  f files  V viewed  / search"#,
        ],
    );
    stage.keys("/alpha");
    assert!(stage.screen().ends_with(&["/alpha▏".to_owned()]));
    stage.press(KeyCode::Enter);
    check(
        &mut stage,
        &[
            r#" ada · demo-ada · 1a2b3c4 → 9f8e7d6            file 1/4 · 0 drafts · viewed 0/4"#,
            r#" ▾ src/auth.rs  +3 −2"#,
            r#"▶     89 + alpha"#,
            r#"      90 + beta"#,
            r#"  90  91   three"#,
            r#" ▸ logo.png   · binary"#,
            r#" ▸ old → new   · renamed"#,
            r#" ▾ notes.txt  +1 · new"#,
            r#" @@ -0,0 +1,1 @@"#,
            r#"       1 + a note no newline at end"#,
            r#" match 1 of 1: alpha"#,
        ],
    );
}

#[test]
fn side_by_side_is_refused_on_a_narrow_screen() {
    let mut stage = Stage::sample(119, 12);
    stage.keys("t");
    assert_eq!(stage.screen()[11], " side by side needs 120 columns");
}
