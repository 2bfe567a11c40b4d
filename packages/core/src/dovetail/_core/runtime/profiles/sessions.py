"""Recording profiles, and writing them where viewers find them."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jaxlib import _profiler
from jaxlib._profile_data import ProfileData, ProfileEvent, ProfileLine, ProfilePlane
from jaxlib._profiler import ProfileOptions

from dovetail._core.base.bindings import export_profile
from dovetail._core.base.tracebacks import bounded
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.pjrt import loaded_plugins
from dovetail._core.runtime.profiles.perfetto import serve_to_perfetto, write_perfetto_trace

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "export_profile_data",
    "get_profiled_instructions_proto",
    "register_subprocess",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

#: Where viewers look for profiles, below the folder that they are given.
_FOLDER: Final = Path("plugins", "profile")

_lock: Final = threading.RLock()


class _Running:
    """What records now: one profile at most, and one server."""

    __slots__ = ("server", "session")

    def __init__(self) -> None:
        self.session: ProfileSession | None = None
        self.server: Any = None


_running: Final = _Running()


@bounded
class ProfileSession:
    """A recording of a profile, which is started and stopped; also a scope for `with`.

    Args:
        log_dir: the folder to write to when it is stopped; None to keep it in memory only.
        create_perfetto_link: whether to print a link that opens the profile in ui.perfetto.dev, and
            wait until it is opened.
        create_perfetto_trace: whether to write ``perfetto_trace.json.gz``, too, for that viewer.
        profiler_options: what is recorded.

    Attributes:
        log_dir: the folder.
        profile_data: the profile, once it was stopped; else None.
        is_running: whether it records.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.profiler import ProfileSession
        >>> session = ProfileSession().start()
        >>> x = jnp.ones(3)
        >>> data = session.stop()
        >>> data.find_plane_with_name("/host:CPU").name
        '/host:CPU'
    """

    def __init__(
        self,
        log_dir: os.PathLike[str] | str | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ) -> None:
        self.log_dir = None if log_dir is None else _folder(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace
        self.profiler_options = _checked_options(profiler_options)
        self.profile_data: ProfileData | None = None
        self._native: Any = None
        self._serialized = b""

    @property
    def is_running(self) -> bool:
        """Whether it records now."""
        return _running.session is self

    def start(self) -> ProfileSession:
        """Start to record.

        Returns:
            The session.

        Raises:
            RuntimeError: a profile is being recorded.
        """
        with _lock:
            if _running.session is not None:
                raise RuntimeError(
                    "Profile has already been started. Only one profile may be run at a time: the "
                    "end of its block, or dovetail.profiler.stop_trace(), ends it"
                )
            _start_backends()
            options = self.profiler_options
            self._native = (
                _profiler.ProfilerSession()
                if options is None
                else _profiler.ProfilerSession(options)
            )
            _running.session = self
        return self

    def stop(self) -> ProfileData | None:
        """Stop, and write the profile to the folder if there is one.

        Returns:
            The profile.

        Raises:
            RuntimeError: it is not running.
            OSError: it cannot be written.
        """
        with _lock:
            if _running.session is not self:
                raise RuntimeError("No profile started: this session is not running")
            try:
                self._serialized = self._native.stop()
                self.profile_data = ProfileData.from_serialized_xspace(self._serialized)
            finally:
                _running.session = None
        if self.log_dir is not None:
            self.export_profile_data(
                self.log_dir, self.create_perfetto_link, self.create_perfetto_trace
            )
        return self.profile_data

    def export_profile_data(
        self,
        log_dir: os.PathLike[str] | str,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write the profile that was recorded.

        Args:
            log_dir: the folder, as for `trace`.
            create_perfetto_link: as for `trace`.
            create_perfetto_trace: as for `trace`.
            session_id: the name of the profile; the time by default.

        Raises:
            RuntimeError: nothing was recorded.
            OSError: the folder cannot be written to.
        """
        if self.profile_data is None:
            raise RuntimeError("there is no profile to write: start() and stop() record one")
        root = _folder(log_dir)
        _write(
            lambda folder: self._native.export(self._serialized, folder),
            root,
            session_id,
            create_perfetto_link,
            create_perfetto_trace,
        )

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()


#: The PJRT libraries that are asked for what their devices do.
_recording: Final[set[str]] = set()


def _start_backends() -> None:
    """Start what records what runs on devices."""
    clients.devices()
    for plugin in loaded_plugins():
        if plugin.records_profiles and plugin.name not in _recording:
            _profiler.register_plugin_profiler(plugin.capsule)
            _recording.add(plugin.name)


def _folder(log_dir: Any) -> str:
    if not isinstance(log_dir, str | os.PathLike):
        raise TypeError(f"log_dir is the path of a folder, got {log_dir!r:.80}")
    return os.fspath(log_dir)


def _checked_options(options: Any) -> ProfileOptions | None:
    if options is not None and not isinstance(options, ProfileOptions):
        raise TypeError(
            f"profiler_options is a dovetail.profiler.ProfileOptions or None, got {options!r:.80}"
        )
    return options


def _write(export: Any, log_dir: str, session_id: str | None, link: bool, perfetto: bool) -> None:
    """Write a profile below a folder; all of it, or nothing.

    Args:
        export: writes it below a folder that it is given, under a name of its own.
        log_dir: the folder.
        session_id: the name; its own by default.
        link: whether to print a link for Perfetto.
        perfetto: whether to write a file for Perfetto.
    """
    root = Path(log_dir) / _FOLDER
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=log_dir, prefix=".profile-") as temporary:
        export(temporary)
        (written,) = (Path(temporary) / _FOLDER).iterdir()
        if link or perfetto:
            write_perfetto_trace(written)
        target = root / (session_id or written.name)
        target.mkdir(exist_ok=True)
        for file in written.iterdir():
            shutil.move(file, target / file.name)
    if link:
        serve_to_perfetto(target)


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> ProfileSession:
    """Start to record a profile, which `stop_trace` ends.

    Args:
        log_dir: the folder, as for `trace`.
        create_perfetto_link: as for `trace`.
        create_perfetto_trace: as for `trace`.
        profiler_options: as for `trace`.

    Returns:
        The session.

    Raises:
        RuntimeError: a profile is being recorded.
    """
    return ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ).start()


def stop_trace() -> ProfileData | None:
    """End the profile that `start_trace` has begun, and write it.

    Returns:
        The profile.

    Raises:
        RuntimeError: no profile is being recorded.
        OSError: it cannot be written.
    """
    session = _running.session
    if session is None:
        raise RuntimeError("No profile started: dovetail.profiler.start_trace starts one")
    return session.stop()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[ProfileSession]:
    """Record a profile of what happens in a `with` block: calls of Python, programs, devices.

    It is written to ``log_dir/plugins/profile/TIME``, where TensorBoard and XProf look for it
    (``xprof --logdir log_dir``), together with a ``.trace.json.gz`` for Chrome's viewer.

    Args:
        log_dir: the folder; None to keep the profile in memory only.
        create_perfetto_link: whether to print a link that opens the profile in ui.perfetto.dev, and
            wait until it is opened.
        create_perfetto_trace: whether to write ``perfetto_trace.json.gz``, too, for that viewer.
        profiler_options: what is recorded, such as `python_tracer_level`.

    Yields:
        The session, whose `profile_data` is the profile after the block.

    Raises:
        RuntimeError: a profile is being recorded.
        OSError: it cannot be written.

    Events and lines belong to the `ProfileData` that they come from: keep that as long as them.

    Programs run while Python goes on: wait for their results in the block.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> with dt.profiler.trace() as session:
        ...     with dt.profiler.TraceAnnotation("sum"):
        ...         total = jnp.arange(3).sum().block_until_ready()
        >>> plane = session.profile_data.find_plane_with_name("/host:CPU")
        >>> "sum" in {event.name for line in plane.lines for event in line.events}
        True
    """
    session = ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    with session:
        yield session


def export_profile_data(
    profile_data: ProfileData | ProfileSession,
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write a profile that is in memory.

    Args:
        profile_data: the profile, or the session that recorded it; one that runs is stopped.
        log_dir: the folder, as for `trace`.
        create_perfetto_link: as for `trace`.
        create_perfetto_trace: as for `trace`.
        session_id: the name of the profile; the time by default.

    Raises:
        TypeError: it is no profile.
        RuntimeError: nothing was recorded.
        NotImplementedError: jaxlib before 0.12 only writes profiles of their sessions.
        OSError: the folder cannot be written to.
    """
    if isinstance(profile_data, ProfileSession):
        if profile_data.is_running:
            profile_data.stop()
        profile_data.export_profile_data(
            log_dir, create_perfetto_link, create_perfetto_trace, session_id
        )
        return
    if not isinstance(profile_data, ProfileData):
        raise TypeError(
            "export_profile_data takes a profile, as stop_trace returns, or a session, got "
            f"{profile_data!r:.80}"
        )
    _write(
        lambda folder: export_profile(profile_data, folder),
        _folder(log_dir),
        session_id,
        create_perfetto_link,
        create_perfetto_trace,
    )


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server that viewers, such as TensorBoard, ask for profiles of this process.

    Args:
        port: its port.
        requires_backend: whether to start the backends before, so that what runs on devices is
            recorded.

    Returns:
        The server, which runs until `stop_server`.

    Raises:
        ValueError: there is one, or no such port.
    """
    with _lock:
        if _running.server is not None:
            raise ValueError(
                "Only one profiler server can be active at a time: dovetail.profiler.stop_server() "
                "ends the one that runs"
            )
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise ValueError(f"port is a number from 1 to 65535, got {port!r:.80}")
        if requires_backend:
            _start_backends()
        _running.server = _profiler.start_server(port)
        return _running.server


def stop_server() -> None:
    """End the server that `start_server` has started.

    Raises:
        ValueError: there is none.
    """
    with _lock:
        if _running.server is None:
            raise ValueError("No active profiler server: dovetail.profiler.start_server starts one")
        _running.server = None


def register_subprocess(pid: int, port: int) -> Any:
    """Let profiles of this process hold those of another, which has a server of its own.

    Args:
        pid: the number of the other process.
        port: the port of its server.

    Returns:
        A function without arguments, which ends this.

    Raises:
        ValueError: it is this process.
        JaxRuntimeError: nothing answers on the port for half a minute.
    """
    if pid == os.getpid():
        raise ValueError("register_subprocess: pid is that of this process; give that of another")
    return _profiler.register_subprocess(pid, port)


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """How long each operation of the programs in a profile took, in the form that XLA reads.

    Args:
        tensorboard_dir: the folder of the profile, ``log_dir/plugins/profile/TIME``.

    Returns:
        A protocol buffer `ProfiledInstructionsProto`, for XLA's options that take one.

    Raises:
        JaxRuntimeError: there is no profile.
    """
    proto: bytes = _profiler.get_profiled_instructions_proto(os.fspath(tensorboard_dir))
    return proto
