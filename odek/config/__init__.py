"""Configuration: what can be set, and from which layers the values come."""
