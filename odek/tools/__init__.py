"""What the model can do. One family of tools a file, each declaring its effects once."""
