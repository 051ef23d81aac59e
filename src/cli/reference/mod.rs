//! Checks that the generated blocks of the pages in `docs` are what the program defines.
//! `PHALANX_UPDATE_DOCS=1 cargo test -p cli reference` writes all of them.

mod manifest;
mod page;
mod verbs;

use crate::groups::GROUPS;
use crate::mcp::pages;

#[test]
fn cli_pages_are_up_to_date() {
    page::check("cli/README.md", &verbs::index());
    for group in &GROUPS {
        page::check(&format!("cli/{}", group.page()), &verbs::page(group));
    }
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
