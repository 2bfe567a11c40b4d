"""Functions of users that bring rules of their own: derivatives, transposes."""
