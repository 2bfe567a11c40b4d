"""The platform numpy of dovetail, which finds it by its entry point."""
