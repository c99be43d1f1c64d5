//! Named points where tests make a service fail, stop or wait. Without the feature `failpoints`
//! they expand to nothing, so a release build does not even hold their names.

#[cfg(all(feature = "failpoints", not(debug_assertions)))]
compile_error!("feature `failpoints` is for tests; a release build must not contain fail points");

/// A fail point: `fail_point!("owner::before_append")`, or with a closure that maps the configured
/// text to the value the surrounding function returns early, as in the `fail` crate.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! fail_point {
    ($($arg:tt)*) => {
        $crate::__fail::fail_point!($($arg)*)
    };
}

/// A fail point; this build has none.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! fail_point {
    ($($arg:tt)*) => {
        ()
    };
}

#[cfg(test)]
mod tests {
    fn guarded() -> Option<u32> {
        fail_point!("service_kit::guarded", |_| None);
        Some(1)
    }

    #[cfg(not(feature = "failpoints"))]
    #[test]
    fn without_the_feature_they_are_nothing() {
        assert_eq!(guarded(), Some(1));
    }

    #[cfg(feature = "failpoints")]
    #[test]
    fn with_the_feature_tests_decide() {
        let _scenario = fail::FailScenario::setup();
        fail::cfg("service_kit::guarded", "1*return->off").unwrap();
        assert_eq!((guarded(), guarded()), (None, Some(1)));
    }
}
