//! The step, as tables.
