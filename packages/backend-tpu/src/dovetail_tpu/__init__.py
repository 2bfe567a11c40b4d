"""The TPU backend of dovetail. Core finds it by its entry point; nobody imports it by hand."""
