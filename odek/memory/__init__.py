"""What is remembered across sessions, as text files that a person can read and edit."""
