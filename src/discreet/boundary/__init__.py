"""Where private data enter: every raw value has one meaning, which depends on that value alone."""
