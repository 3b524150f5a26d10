"""Speed and accuracy of rotorid beside its peers: `python -m benchmarks`."""
