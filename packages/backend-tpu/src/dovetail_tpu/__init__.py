"""The TPU backend of dovetail. Core finds it by its entry point; users never import it."""
