//! Benchmark engines: IOzone's throughput mode, on any file system.
