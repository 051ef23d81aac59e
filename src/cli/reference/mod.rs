//! Checks that the generated blocks of the pages in `docs` are what the program defines.
//! `PHALANX_UPDATE_DOCS=1 cargo test --lib reference` writes all of them.

mod events;
mod manifest;
mod page;
mod verbs;

use super::mcp::pages;

#[test]
fn cli_page_is_up_to_date() {
    page::check("cli.md", &verbs::blocks());
}

#[test]
fn mcp_page_is_up_to_date() {
    let block = |name: &str, text| page::PageBlock { name: name.to_owned(), text };
    page::check(
        "mcp.md",
        &[block("tools", pages::tools()), block("not over MCP", pages::omissions())],
    );
}

#[test]
fn manifest_page_is_up_to_date() {
    page::check("manifest.md", &manifest::blocks());
}

#[test]
fn events_page_has_each_event_with_its_details() {
    let page = page::read("events.md");
    assert_eq!(events::differences(&page), Vec::<String>::new());
    let changed = page.replacen("`team_created`", "`team_made`", 1).replacen(
        "| `by`, `keys` |",
        "| `by`, `key` |",
        1,
    );
    assert_eq!(
        events::differences(&changed),
        [
            "team_created has no row",
            "`keys` of settings_changed is not in the page",
            "settings_changed has no `key`",
            "no event is named team_made",
        ]
    );
}
