"""Live views of a run. Draws ``views``; computes nothing about the run and decides nothing."""
