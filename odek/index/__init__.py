"""Search over texts, lexical and by vectors, on disk and shared by all processes; knows no memory."""
