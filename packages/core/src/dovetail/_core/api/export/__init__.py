"""Programs as artifacts: exporting, calling, reading and writing them, and what stands in the way.

`exported` makes and calls them, `obstacles` looks for what cannot be exported, `artifacts` writes
and reads them as bytes, in the format that `records` describes, with trees by `nodes`.
"""
