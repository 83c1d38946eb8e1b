"""The pure core: from a snapshot and a command to what must be written. No clock, no engine, no logger."""
