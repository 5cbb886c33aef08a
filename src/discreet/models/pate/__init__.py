"""Private aggregation of teacher ensembles, with a budget for each level of data owners."""
