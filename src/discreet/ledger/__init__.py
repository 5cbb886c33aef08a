"""The durable budget: reserve before reading, settle after, in a chain that shows tampering."""
