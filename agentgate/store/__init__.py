"""The only room with SQL. A store function takes a Connection and never begins or commits."""
