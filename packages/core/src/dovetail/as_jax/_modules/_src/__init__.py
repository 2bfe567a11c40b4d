"""The package `jax._src`: what libraries use of it, where there is such a thing here."""
