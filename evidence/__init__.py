"""The evidence: every study, audit and benchmark run again, and written down as pages."""
