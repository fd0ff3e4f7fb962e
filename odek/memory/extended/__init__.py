"""Extended Memory: atoms, small typed statements that are recalled before they are asked for."""
