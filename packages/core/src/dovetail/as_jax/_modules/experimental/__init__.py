"""The package `jax.experimental`: all of `dovetail.experimental`, and the modules beside it."""
