"""Programs that call Python back: pure callbacks, input and output, printing.

The primitives stand here. What happens on the host, converting values and checking results, is
`runtime.callbacks`, reached through one slot.
"""
