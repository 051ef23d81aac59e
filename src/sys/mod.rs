//! The seams to the operating system. Knows no noun of the domain.
