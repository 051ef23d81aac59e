//! Parsing of each verb.
