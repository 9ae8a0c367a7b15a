//! Record a run, cut the power, recover, judge.
