"""Ask a server as if its tables were here."""
