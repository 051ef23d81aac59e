//! Tests of the store against real files.
