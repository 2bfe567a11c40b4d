"""The name `jax` for dovetail: the import hook, and views of what libraries use of JAX's insides.

`modules` holds the modules of `jax` that are not simply modules of dovetail; each lies where its
name says, and is executed under that name. The highest layer: nothing imports it but
`dovetail.as_jax`.
"""
