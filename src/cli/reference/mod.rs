//! Checks that the generated blocks of the pages in `docs` are what the program defines.
//! `PHALANX_UPDATE_DOCS=1 cargo test --lib reference` writes all of them.

mod manifest;
mod page;
mod verbs;

#[test]
fn cli_page_is_up_to_date() {
    page::check("cli.md", &verbs::blocks());
}

#[test]
fn manifest_page_is_up_to_date() {
    page::check("manifest.md", &manifest::blocks());
}
