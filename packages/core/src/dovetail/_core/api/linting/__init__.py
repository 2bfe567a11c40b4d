"""`lint`: looks for costly mistakes in what a function is traced to, and runs nothing.

`lint` is the function, `findings` what it returns. `sites` walks through the program and knows the
user's lines, `bytecode` reads what Python does there. `rules` lists the rules: those that look at
one equation stand there, others in `unrolled_loops`, `large_constants`, `unused_results`,
`widening`, `reused_keys` and `needed_values`.
"""
