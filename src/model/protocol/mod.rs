//! Protocol messages: the JSON text inside an envelope's `text`.
