"""The cases, a module a group: what goes in is written by hand, what must come out by hand or by `independent`."""
