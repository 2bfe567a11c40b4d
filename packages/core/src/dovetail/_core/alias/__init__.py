"""The name `jax` for dovetail: the import hook, and views of what libraries use of JAX's insides.

The modules of `jax` that are not simply modules of dovetail lie in `dovetail/as_jax/_modules`, each
where its name says, and are executed under those names. The highest layer: nothing imports it but
`dovetail.as_jax`.
"""
