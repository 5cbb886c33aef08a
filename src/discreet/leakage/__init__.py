"""How much is really learnt: exact and statistical audits, precision and timing probes."""
