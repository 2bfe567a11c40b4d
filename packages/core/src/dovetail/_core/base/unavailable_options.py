"""Options of JAX's that dovetail does not have, with what to do instead.

Their defaults can be read and set, since programs for JAX do that; every other value is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from dovetail._core.base.option_kinds import Bool
from dovetail._core.base.records import record

__all__ = [
    "UNAVAILABLE",
    "FixedOption",
    "Unavailable",
    "jax2tf_associative_scan_reductions",
    "remove_size_one_mesh_axis_from_type",
]


@record
class Unavailable:
    """An option that can only have some values.

    Attributes:
        default: JAX's default, which is what dovetail does.
        reason: why there is no other, and what to do instead, as a clause.
        also: further values under which dovetail does the same.
    """

    default: Any
    reason: str
    also: tuple[Any, ...] = ()

    def accepts(self, value: Any) -> bool:
        """Whether a value asks for what dovetail does."""
        return any(type(value) is type(v) and value == v for v in (self.default, *self.also))

    def accepts_text(self, text: str) -> bool:
        """Whether a value, as the environment or a flag gives it, asks for what dovetail does."""
        accepted = (self.default, *self.also)
        if isinstance(self.default, bool):
            try:
                return Bool().parse(text) in accepted
            except ValueError:
                return False
        return not text.strip() or text.strip().lower() in [str(v).lower() for v in accepted]


def _table() -> dict[str, Unavailable]:
    table: dict[str, Unavailable] = {}

    def refuse(reason: str, **defaults: Any) -> None:
        table.update({name: Unavailable(default, reason) for name, default in defaults.items()})

    refuse(
        "processes know each other by dovetail.distributed.initialize, whose arguments say how "
        "long they wait; arrays move between them in programs, and what they send is not encrypted",
        cross_host_transfer_socket_address="",
        cross_host_transfer_timeout_seconds=None,
        cross_host_transfer_transfer_size=None,
        cross_host_transport_addresses="",
        distributed_debug=False,
        distributed_verify_secure_credentials=False,
        enable_preemption_service=True,
        enable_recoverability=False,
        force_dcn_cross_host_transfers=False,
        mtls_ca_file=None,
        mtls_cert_file=None,
        mtls_key_file=None,
        mtls_peer_uri_prefix=None,
        share_binary_between_hosts=False,
        share_binary_between_hosts_timeout_ms=1200000,
        sort_devices_by_process_index=True,
    )
    refuse(
        "meshes and shard_map work in one way; arguments of functions, such as check_vma of "
        "shard_map, say what differs",
        check_vma=False,
        disable_vmap_shmap_error=False,
        raise_on_ppermute_sort_diff=True,
        remove_custom_partitioning_ptr_from_cache_key=False,
        remove_size_one_mesh_axis_from_type=False,
        use_cpp_shard_args=False,
        use_rgv3=True,
    )
    refuse(
        "Shardy is the only partitioner that dovetail lowers for; leave the option at True",
        use_shardy_partitioner=True,
    )
    refuse(
        "dump_ir_to writes StableHLO; dovetail.make_jaxpr(f)(x) shows the jaxpr",
        dump_ir_modes="stablehlo",
    )
    refuse("dovetail has no Pallas", **_PALLAS)
    refuse("dovetail has no jax2tf", **_JAX2TF)
    refuse(
        "dovetail.export reads versions of the calling convention from 9 to 10, and writes 10; "
        "export programs of other versions again",
        export_calling_convention_version=10,
        export_deserialize_expired_versions=False,
        serialization_version=0,
    )
    refuse(
        "products of sparse arrays on GPUs are XLA's, as elsewhere", bcoo_cusparse_lowering=False
    )
    refuse(
        "use dovetail.experimental.checkify, whose errors name the operation and its line, or the "
        'options debug_nans and index_mode="raise"',
        error_checking_behavior_divide="ignore",
        error_checking_behavior_nan="ignore",
        error_checking_behavior_oob="ignore",
        experimental_unsafe_xla_runtime_errors=False,
    )
    refuse(
        "dovetail differentiates and traces in one way, and its checks are always made",
        custom_jvp3=False,
        custom_vjp3=False,
        disable_bwd_checks=False,
        eager_constant_folding=False,
        mutable_array_checks=True,
        refs_to_pins=False,
        remat3=False,
        remat_barrier_no_cotangents=False,
        scan3=False,
        use_direct_linearize=True,
        use_emit_pipeline_primitive=False,
        use_simplified_jaxpr_constants=False,
    )
    refuse(
        "give XLA's options to one program, jit(f, compiler_options={...}), or to all in XLA_FLAGS",
        compilation_cache_expect_pgle=False,
        compiler_detailed_logging_min_ops=10,
        enable_pgle=False,
        exec_time_optimization_effort=0.0,
        memory_fitting_effort=0.0,
        pgle_aggregation_percentile=90,
        pgle_profiling_runs=3,
        use_magma="auto",
        xla_profile_version=0,
    )
    refuse(
        'say how much compilers are to optimize: config.update("optimization_level", "O0")',
        disable_most_optimizations=False,
    )
    refuse(
        "lowering rules have one form for each platform; a plug-in may give others, by its hook "
        "dovetail_lowerings",
        accurate_erf_inv=False,
        ragged_dot_use_gpu_pallas_triton_lowering=False,
        ragged_dot_use_ragged_dot_instruction=True,
        use_hlo_logistic_lowering=None,
    )
    refuse(
        "entries of the cache on disk are keyed by the program, the options and the backend",
        compilation_cache_check_contents=False,
    )
    refuse(
        "64-bit types are kept where enable_x64 is on, and nowhere else",
        explicit_x64_dtypes=1,
    )
    refuse(
        "errors and logs have one form, which names lines of your code",
        debug_leaked_clients_on_clear_backends=False,
        hlo_source_file_canonicalization_regex=None,
        send_traceback_to_runtime="off",
        source_url_schema=None,
        tracer_error_num_traceback_frames=5,
    )
    refuse(
        "backends are plug-ins: config.update('platforms', ...) or DOVETAIL_PLATFORMS chooses",
        backend_target="",
        xla_backend="",
    )
    refuse(
        "no installed backend reads it; say it to the vendor's library by its own variable, such "
        "as HIP_VISIBLE_DEVICES",
        oneapi_visible_devices="all",
        rocm_visible_devices="all",
    )
    refuse(
        "compile for GPUs that are not there by dovetail.experimental.topologies",
        mock_gpu_topology="",
        mock_num_gpu_processes=0,
    )
    refuse("proxies matter to TPUs on other hosts alone", check_proxy_envs=True)
    table["persistent_cache_enable_xla_caches"] = Unavailable(
        "none",
        "XLA's caches are chosen by its own options, such as "
        "jit(f, compiler_options={'xla_gpu_per_fusion_autotune_cache_dir': folder})",
        also=("", None, "xla_gpu_per_fusion_autotune_cache_dir"),
    )
    return table


_PALLAS: Final[Mapping[str, Any]] = {
    "mosaic_allow_hlo": False,
    "mosaic_unzip_debug_locations": True,
    "pallas_auto_assign_collective_ids": "no",
    "pallas_auto_assign_collective_ids_limit": 25,
    "pallas_enable_debug_checks": False,
    "pallas_poison_buffers": False,
    "pallas_use_mosaic_gpu": True,
    "pallas_verbose_errors": False,
}
_JAX2TF: Final[Mapping[str, Any]] = {
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
}

UNAVAILABLE: Final[Mapping[str, Unavailable]] = _table()
"""The options by name, without a prefix."""


class FixedOption:
    """An option that there is not, as an object whose scope JAX's programs may enter.

    Args:
        name: its name.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> Any:
        """The value that it always has."""
        return UNAVAILABLE[self.name].default

    def __call__(self, new_val: Any = True) -> AbstractContextManager[None]:
        """A scope, in which the option has the value that it always has; also a decorator.

        Args:
            new_val: the value.

        Raises:
            NotImplementedError: it is another one.
        """
        option = UNAVAILABLE[self.name]
        if not option.accepts(new_val):
            raise NotImplementedError(
                f"the option {self.name!r} cannot be set to {new_val!r}: {option.reason}"
            )
        return _unchanged()

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"


@contextmanager
def _unchanged() -> Iterator[None]:
    yield


jax2tf_associative_scan_reductions: Final = FixedOption("jax2tf_associative_scan_reductions")
remove_size_one_mesh_axis_from_type: Final = FixedOption("remove_size_one_mesh_axis_from_type")
