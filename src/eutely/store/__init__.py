"""Where results of steps are kept: in memory, or in a run folder."""
