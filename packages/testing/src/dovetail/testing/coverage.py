"""The suites that test primitives without samples: their parameters are programs, or a reference
could not give their values."""

from __future__ import annotations

from typing import Final

#: Tests by name of the primitive, as ``suite::test``.
TESTED_BY: Final = {
    "after_all": "control_flow::test_tokens_order",
    "buffer_callback": "callbacks::test_buffer_callback",
    "check": "transformations::test_checks_are_values",
    "composite": "transformations::test_calls_of_every_kind",
    "create_token": "control_flow::test_tokens_order",
    "custom_jvp_call": "transformations::test_transformed_programs",
    "custom_lin": "transformations::test_transformed_programs",
    "custom_linear_solve": "transformations::test_transformed_programs",
    "custom_root": "transformations::test_transformed_programs",
    "custom_vjp_call": "transformations::test_transformed_programs",
    "custom_vmap_call": "transformations::test_calls_of_every_kind",
    "debug_callback": "callbacks::test_effects_barrier",
    "debug_check": "callbacks::test_checks_in_programs",
    "debug_print": "callbacks::test_debug_print",
    "device_put": "device::test_copies_in_programs",
    "inspect_sharding": "device::test_inspected_shardings",
    "io_callback": "callbacks::test_io_callback",
    "jit": "transformations::test_transformed_programs",
    "linear_call": "transformations::test_calls_of_every_kind",
    "offload": "device::test_offloaded_values",
    "platform_index": "control_flow::test_platform_dependent",
    "pure_callback": "callbacks::test_pure_callback",
    "reduce": "control_flow::test_reductions_of_ones_own",
    "remat2": "transformations::test_transformed_programs",
    "remat_opt": "transformations::test_calls_of_every_kind",
    "rng_uniform": "device::test_numbers_of_the_platforms_generator",
    "sharding_constraint": "collectives::test_programs_over_a_mesh",
}
