"""Language models: the protocol, the client of any chat-completions endpoint, and one that needs none."""
