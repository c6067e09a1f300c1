//! Errors planted by tests to check that `verify` notices them. Outside tests nothing is planted.

/// A planted error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// `V <= Q` in place of `Q <= V`.
    SignOfE,
    /// `V <= y_K` in place of `y_K <= V`.
    SignOfKv,
    /// `y_K` slightly too low, which violates no inequality.
    TargetTooLow,
    /// `gamma^(K-1) V(s_K)` in place of `gamma^K V(s_K)`.
    PowerOfGamma,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Whether this error is planted on this thread.
#[cfg(test)]
pub(crate) fn planted(mutation: Mutation) -> bool {
    PLANTED.get() == Some(mutation)
}

/// Whether this error is planted.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn planted(_: Mutation) -> bool {
    false
}

/// Runs `body` with the error planted.
#[cfg(test)]
pub(crate) fn with<R>(mutation: Mutation, body: impl FnOnce() -> R) -> R {
    PLANTED.set(Some(mutation));
    let result = body();
    PLANTED.set(None);
    result
}
