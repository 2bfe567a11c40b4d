"""`python -m dovetail.as_jax`: run a program that was written for JAX."""

from dovetail._core.alias.running import main

if __name__ == "__main__":
    main()
