"""From a source about people and declared columns to exact bounded integers."""
