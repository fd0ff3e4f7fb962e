"""Where commands run: here, or in a sandbox that shows them little but the workspace."""
