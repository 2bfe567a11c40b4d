"""Where this process is in its group, as those who have started it say."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dovetail._core.base.records import record

__all__ = ["METHODS", "Place", "detected", "from_environment"]


@record
class Place:
    """Where a process is in its group; None for what is not known.

    Attributes:
        coordinator_address: where the coordinator is reached, ``host:port``.
        num_processes: the number of processes.
        process_id: the number of this one.
        local_device_ids: the numbers of its devices on its machine.
        coordinator_bind_address: where the coordinator listens.
        slice_index: the slice of the hardware that it belongs to.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple[int, ...] | None = None
    coordinator_bind_address: str | None = None
    slice_index: int | None = None

    def filled(self, other: Place) -> Place:
        """This, with what is not known taken from another one."""
        missing = [f.name for f in fields(self) if getattr(self, f.name) is None]
        return replace(self, **{name: getattr(other, name) for name in missing})

    def is_complete(self) -> bool:
        """Whether it says all that is needed."""
        return None not in (self.coordinator_address, self.num_processes, self.process_id)


_PREFIXES: Final = ("DOVETAIL_", "JAX_")


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The first of our variable and JAX's that is set, with its value."""
    for prefix in _PREFIXES:
        if environment.get(prefix + name):
            return prefix + name, environment[prefix + name]
    return None


def _number(name: str, environment: Mapping[str, str]) -> int | None:
    found = _variable(name, environment)
    if found is None:
        return None
    try:
        return int(found[1])
    except ValueError:
        raise ValueError(
            f"distributed.initialize: the environment variable {found[0]} is {found[1]!r}, which "
            "is no number"
        ) from None


def _numbers(name: str, environment: Mapping[str, str]) -> tuple[int, ...] | None:
    found = _variable(name, environment)
    if found is None:
        return None
    try:
        return tuple(map(int, found[1].split(",")))
    except ValueError:
        raise ValueError(
            f"distributed.initialize: the environment variable {found[0]} is {found[1]!r}, which "
            "is no list of numbers, such as 0,1"
        ) from None


def from_environment(environment: Mapping[str, str] = os.environ) -> Place:
    """What variables say, which ``python -m dovetail launch`` sets, or whoever starts processes.

    Raises:
        ValueError: one of them is no number.
    """
    address = _variable("COORDINATOR_ADDRESS", environment)
    bind = _variable("COORDINATOR_BIND_ADDRESS", environment)
    return Place(
        coordinator_address=address and address[1],
        num_processes=_number("NUM_PROCESSES", environment),
        process_id=_number("PROCESS_ID", environment),
        local_device_ids=_numbers("LOCAL_DEVICE_IDS", environment),
        coordinator_bind_address=bind and bind[1],
    )


def detected(
    method: str | None, environment: Mapping[str, str] = os.environ, patience: float = 300
) -> Place:
    """What a cluster says.

    Args:
        method: one of `METHODS`, to ask that one alone; None for all but those that are only asked
            by name.
        environment: the environment variables.
        patience: seconds for which the cluster may be waited for.

    Raises:
        RuntimeError: the one that was asked for by name is not there.
    """
    for name, (is_there, find, by_name) in METHODS.items():
        if name == method or (method is None and not by_name and is_there(environment)):
            if not is_there(environment):
                raise RuntimeError(
                    f"distributed.initialize: cluster_detection_method={name!r} was asked for, and "
                    f"this process was not started by it: {_SIGNS[name]}"
                )
            return find(environment, patience)
    return Place()


# --------------------------------------------------------------------------------------- Slurm


def _in_slurm(environment: Mapping[str, str]) -> bool:
    # A shell in an allocation has SLURM_JOB_ID alone; srun gives each process its number.
    return "SLURM_JOB_ID" in environment and "SLURM_PROCID" in environment


def _slurm(environment: Mapping[str, str], patience: float) -> Place:
    nodes = environment.get("SLURM_STEP_NODELIST", environment.get("SLURM_NODELIST", ""))
    host = first_node(nodes) or environment.get("SLURM_LAUNCH_NODE_IPADDR") or "localhost"
    # One port for all processes of a job, and others for other jobs.
    port = 61440 + int(environment["SLURM_JOB_ID"]) % 4096
    count = environment.get("SLURM_STEP_NUM_TASKS", environment.get("SLURM_NTASKS"))
    return Place(
        f"{host}:{port}",
        None if count is None else int(count),
        int(environment["SLURM_PROCID"]),
        _one_device("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", environment),
    )


def first_node(nodes: str) -> str:
    """The first host in one of Slurm's lists, such as ``"node[003-005,9],login1"``."""
    found = re.match(r"([^\[,]*)(?:\[([^\]]*)\])?([^,\[]*)", nodes.strip())
    if found is None:
        return ""
    before, inside, after = found.groups()
    return before + (re.split("[-,]", inside)[0] if inside else "") + after


def _one_device(
    local: str, together: str, environment: Mapping[str, str]
) -> tuple[int, ...] | None:
    """The number of this process's device, if there is one process on the machine for each."""
    number, count = environment.get(local), environment.get(together, "1")
    several = int(re.split(r"[(,]", count)[0] or 1) > 1
    return (int(number),) if number is not None and several else None


# ------------------------------------------------------------------------------------ Open MPI


def _in_open_mpi(environment: Mapping[str, str]) -> bool:
    return "OMPI_MCA_orte_hnp_uri" in environment or (
        "OMPI_COMM_WORLD_RANK" in environment and "PMIX_NAMESPACE" in environment
    )


def _open_mpi(environment: Mapping[str, str], patience: float) -> Place:
    place = Place(
        None,
        int(environment["OMPI_COMM_WORLD_SIZE"]),
        int(environment["OMPI_COMM_WORLD_RANK"]),
        _one_device("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", environment),
    )
    # "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911" names the job and where mpirun runs.
    uri = environment.get("OMPI_MCA_orte_hnp_uri", "")
    found = re.match(r"(\d+)\.\d+;tcp6?://(.+)", uri)
    if found is None:
        if environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment["OMPI_COMM_WORLD_SIZE"]:
            drawn = sum(environment.get("PMIX_NAMESPACE", "").encode())
            return replace(place, coordinator_address=f"localhost:{61440 + drawn % 4096}")
        return place
    job, hosts = found.groups()
    host = re.split(r"[,:]", hosts.strip("["))[0]
    # The upper half of the number is mpirun's own.
    return replace(place, coordinator_address=f"{host}:{61440 + (int(job) >> 16) % 4096}")


# ---------------------------------------------------------------------------------- Kubernetes


_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KUBERNETES_PORT: Final = 55527


def _in_kubernetes(environment: Mapping[str, str]) -> bool:
    indexed = "JOB_COMPLETION_INDEX" in environment or "JOBSET_NAME" in environment
    return "KUBERNETES_SERVICE_HOST" in environment and indexed


def _kubernetes(environment: Mapping[str, str], patience: float) -> Place:
    """The place of a pod of an indexed job, whose headless service has its name.

    A pod of an indexed job is called JOB-INDEX-RANDOM, and its host name is JOB-INDEX.
    """
    index = int(environment["JOB_COMPLETION_INDEX"])
    host = environment.get("HOSTNAME") or socket.gethostname()
    job = host.rpartition(f"-{index}")[0] or environment.get("JOB_NAME", "")
    service = environment.get("JOBSET_NAME", job)
    count = environment.get("JOB_COMPLETIONS", environment.get("JOB_PARALLELISM"))
    own = socket.getfqdn()
    domain = own.partition(".")[2] or f"{service}.{_namespace()}.svc.cluster.local"
    return Place(
        f"{job}-0.{domain}:{_KUBERNETES_PORT}",
        _completions(environment, patience) if count is None else int(count),
        index,
    )


def _namespace() -> str:
    try:
        return (_ACCOUNT / "namespace").read_text("utf-8").strip()
    except OSError:
        return "default"


def _completions(environment: Mapping[str, str], patience: float) -> int:
    """The number of pods of this pod's job, which Kubernetes is asked for."""
    import ssl  # deferred: in Kubernetes alone
    import urllib.request  # deferred: in Kubernetes alone

    address = f"https://{environment['KUBERNETES_SERVICE_HOST']}"
    address += f":{environment.get('KUBERNETES_SERVICE_PORT', '443')}"
    index = environment["JOB_COMPLETION_INDEX"]
    host = environment.get("HOSTNAME") or socket.gethostname()
    job = host.rpartition(f"-{index}")[0]
    url = f"{address}/apis/batch/v1/namespaces/{_namespace()}/jobs/{job}"
    try:
        token = (_ACCOUNT / "token").read_text("utf-8").strip()
        context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        opened = urllib.request.urlopen(request, context=context, timeout=min(patience, 30))
        with opened as answer:
            described = import_module("json").load(answer)
        spec = described["spec"]
        return int(spec.get("completions") or spec["parallelism"])
    except (OSError, KeyError, ValueError) as error:
        raise RuntimeError(
            f"distributed.initialize: Kubernetes does not tell how many pods the job {job!r} has "
            f"({error}): give num_processes, or let the pods' service account get jobs"
        ) from error


# -------------------------------------------------------------------------------------- mpi4py


def _has_mpi4py(environment: Mapping[str, str]) -> bool:
    return find_spec("mpi4py") is not None


def _mpi4py(environment: Mapping[str, str], patience: float) -> Place:
    mpi: Any = import_module("mpi4py.MPI")  # starts MPI, so it is asked for by name alone
    world = mpi.COMM_WORLD
    address = None
    if world.Get_rank() == 0:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        address = f"{socket.gethostname()}:{port}"
    together = world.Split_type(mpi.COMM_TYPE_SHARED)
    return Place(
        world.bcast(address, root=0),
        world.Get_size(),
        world.Get_rank(),
        (together.Get_rank(),) if together.Get_size() > 1 else None,
    )


_Ask = Callable[[Mapping[str, str], float], Place]
METHODS: Final[Mapping[str, tuple[Callable[[Mapping[str, str]], bool], _Ask, bool]]] = {
    "slurm": (_in_slurm, _slurm, False),
    "ompi": (_in_open_mpi, _open_mpi, False),
    "k8s": (_in_kubernetes, _kubernetes, False),
    "mpi4py": (_has_mpi4py, _mpi4py, True),
}
"""By name: whether it has started this process, what it says, whether it is asked by name alone."""

_SIGNS: Final[Mapping[str, str]] = {
    "slurm": "SLURM_JOB_ID and SLURM_PROCID, which srun sets, are not both set",
    "ompi": "OMPI_COMM_WORLD_RANK and what Open MPI says of mpirun are not set",
    "k8s": "KUBERNETES_SERVICE_HOST and JOB_COMPLETION_INDEX, of an indexed job, are not both set",
    "mpi4py": "mpi4py is not installed",
}


def as_ids(value: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Numbers of devices, given as one or several."""
    if value is None:
        return None
    return (value,) if isinstance(value, int) else tuple(value)
