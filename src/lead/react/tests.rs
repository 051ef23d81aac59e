//! Tables over the step.
