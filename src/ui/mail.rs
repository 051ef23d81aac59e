//! A message as a person reads it.

use super::paint::{Paint, Tint};
use crate::model::envelope::Envelope;
use crate::model::text;

/// A head with sender, time and summary, then the text, indented so that it cannot pass for a head.
pub(crate) fn letter(envelope: &Envelope, paint: Paint) -> String {
    let from = paint.put(Tint::member(envelope.color.as_deref()), &text::line(&envelope.from));
    let at = paint.put(Tint::Dim, &text::short(&envelope.timestamp, 40));
    let summary =
        envelope.summary.as_deref().map(|s| format!("  {}", text::short(s, 100))).unwrap_or_default();
    let read = if envelope.read { "  (read)" } else { "" };
    let body = text::block(envelope.text.trim_end());
    let lines = body.lines().map(|line| format!("\n  {line}")).collect::<String>();
    format!("{from}  {at}{summary}{read}{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Timestamp;

    #[test]
    fn a_text_cannot_pass_for_a_head() {
        let envelope = Envelope::new("bob", "hi\nada  now\u{7}\n", "id".to_owned(), Timestamp(0))
            .with(Some("greets"), None);
        assert_eq!(
            letter(&envelope, Paint { on: false }),
            "bob  1970-01-01T00:00:00.000Z  greets\n  hi\n  ada  now\u{2407}"
        );
    }
}
