//! The TOML manifest of `phalanx up`.
