"""The suites that test primitives without samples: their parameters are programs, or a reference
could not give their values."""

from __future__ import annotations

from typing import Final

#: Tests by name of the primitive, as ``suite::test``.
TESTED_BY: Final = {
    "after_all": "control_flow::test_tokens_order",
    "all_gather": "collectives::test_collective_operations",
    "all_gather_invariant": "collectives::test_collective_operations",
    "all_to_all": "collectives::test_collective_operations",
    "axis_index": "collectives::test_collective_operations",
    "buffer_callback": "callbacks::test_buffer_callback",
    "check": "transformations::test_checks_are_values",
    "composite": "transformations::test_calls_of_every_kind",
    "create_token": "control_flow::test_tokens_order",
    "custom_jvp_call": "transformations::test_transformed_programs",
    "custom_lin": "transformations::test_transformed_programs",
    "custom_linear_solve": "transformations::test_transformed_programs",
    "custom_partitioning": "collectives::test_custom_partitioning",
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
    "mesh_cast": "collectives::test_types_over_a_mesh",
    "offload": "device::test_offloaded_values",
    "pbroadcast": "collectives::test_collective_operations",
    "platform_index": "control_flow::test_platform_dependent",
    "pmax": "collectives::test_collective_operations",
    "pmin": "collectives::test_collective_operations",
    "ppermute": "collectives::test_collective_operations",
    "psum": "collectives::test_collective_operations",
    "psum_invariant": "collectives::test_collective_operations",
    "pure_callback": "callbacks::test_pure_callback",
    "pvary": "collectives::test_collective_operations",
    "ragged_all_to_all": "collectives::test_collective_operations",
    "reduce": "control_flow::test_reductions_of_ones_own",
    "reduce_scatter": "collectives::test_collective_operations",
    "remat2": "transformations::test_transformed_programs",
    "remat_opt": "transformations::test_calls_of_every_kind",
    "reshard": "collectives::test_types_over_a_mesh",
    "rng_uniform": "device::test_numbers_of_the_platforms_generator",
    "shard_map": "collectives::test_collective_operations",
    "sharding_constraint": "collectives::test_programs_over_a_mesh",
}
