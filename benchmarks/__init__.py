"""The same work done by discreet and by its peers, in the same run, as ratios."""
