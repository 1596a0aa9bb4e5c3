"""``eutely curate``: correct names in the browser, and the rest follows."""

import logging
import signal
import socket
import sys
import threading
import webbrowser
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eutely.cli.common import (
    Adapt,
    Handedness,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    Workers,
    check_folder,
    counted,
    expect_input,
    parse_voxel_size,
    read_inputs,
    say,
    start_log,
)
from eutely.cli.images import given as given_images
from eutely.cli.progress import Stop
from eutely.errors import EutelyError, ReadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from eutely.curate.server import Desk
    from eutely.curate.session import Session

log = logging.getLogger("eutely")

LOCAL = "127.0.0.1"
"""The address of this machine for itself."""


def curate(
    given: Annotated[
        list[Path],
        typer.Argument(
            metavar="ATLAS INPUT... | DIR",
            help="Atlas and specimens; or a folder of eutely annotate, curate or build.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for tables and pins.csv."),
    ] = None,
    until: Annotated[
        float,
        typer.Option("--until", min=0.0, max=1.0, help="Share of names that is to be right."),
    ] = 0.99,
    author: Annotated[
        str, typer.Option("--author", metavar="NAME", help="Written beside each correction.")
    ] = "",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, change nothing.")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address only.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: any free one.")
    ] = 0,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = LOCAL,
    handedness: Annotated[
        Handedness,
        typer.Option("--handedness", help="Whether the specimens are mirror images."),
    ] = Handedness.AUTO,
    adapt: Adapt = None,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Correct the names of nuclei in the browser; the rest follows.

    Annotates the specimens into DIR as eutely annotate does (or opens a folder that has been),
    starts a server on this machine, prints its address and opens the browser. A correction is
    written to DIR/pins.csv first, then the specimen is matched again around all its corrections.
    The page asks about the nucleus whose answer is expected to set most names right, and stops
    when --until is expected to be reached. Ctrl-C ends it and brings all tables up to date;
    eutely curate DIR goes on.

    Example: eutely curate celegans-l1 worm.tif -o curated
    """
    start_log(verbose, quiet)
    new = len(given) > 1
    folder = output if new else given[0]
    if folder is None:
        raise EutelyError("-o DIR is missing: the folder for tables and corrections")
    if not new and output is not None:
        raise ReadError(
            f"{given[0]}: one argument is a folder to go on with, and -o is for a new one; give "
            "an atlas and specimens, or leave -o out"
        )
    if not new and not folder.is_dir():
        raise ReadError(f"{folder}: not a folder; give an atlas and specimens with -o DIR")
    check_folder(folder)
    expect_input(*given[1:])
    try:
        import uvicorn  # noqa: F401

        from eutely.curate.server import Desk, application
    except ImportError as error:
        raise EutelyError(
            f"{error.name} is missing; install the extra: pip install 'eutely[curate]' (in a "
            "checkout: pip install '.[curate]')"
        ) from None
    from eutely.curate.folder import annotate_into, open_material, specimen_names
    from eutely.curate.session import Session
    from eutely.io.atlas import open_atlas
    from eutely.io.read import sources, voxel_triple
    from eutely.io.sources import Files, read_files, remembered, write_files
    from eutely.io.whole import make_folders
    from eutely.io.written import refuse_folder, refuse_run
    from eutely.store.folder import CURATED, locked
    from eutely.tasks.first_look import look
    from eutely.tasks.outputs import read_report_atlas

    files: Files | None = None
    images = given_images.get()
    if new:
        refuse_folder(folder, given[1:])
        refuse_run(folder)
        atlas = open_atlas(str(given[0]))
        readings = read_inputs(given[1:], voxel_size, quiet, skip_bad=skip_bad)
        specimens = [reading.specimen.without_names() for reading in readings]
        look(specimens, [reading.voxel_size for reading in readings], atlas)
        files = remembered(sources(given[1:]), readings)
        files = replace(files, voxel_size=voxel_triple(parse_voxel_size(voxel_size)))
        if images is not None:
            files = images.remembered(files, [specimen.name for specimen in specimens])
    else:
        atlas = read_report_atlas(folder)
        if images is not None:
            files = images.remembered(read_files(folder), specimen_names(folder))
    make_folders(folder)
    with nullcontext() if read_only and not new else locked(folder / CURATED):
        desk = Desk(atlas, until)
        sock, hosts = _socket(host, port)
        address = f"http://{min(hosts, key=lambda name: not name.startswith(host))}/{desk.token}/"

        def begin() -> "Session":
            if new:

                def show(what: str, done: int, total: int, note: str) -> None:  # noqa: ARG001
                    desk.working = f"{done} of {total} steps of annotating are done"

                desk.working = f"annotating {counted(len(specimens), 'specimen')}"
                annotate_into(
                    folder, atlas, specimens, handedness=handedness.value, adapt=adapt,
                    workers=workers, progress=show,
                )  # fmt: skip
            material = open_material(folder)
            if files is not None:
                material = replace(material, files=files)
                if new or not read_only:
                    write_files(folder, files)
            return Session(material, author=author, read_only=read_only)

        _serve(desk, application(desk, hosts), sock, begin, address, browser=not no_browser)


def _socket(host: str, port: int) -> tuple[socket.socket, frozenset[str]]:
    """Listen; return the socket and the names under which the server may be asked."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen()  # whoever has the address is answered as soon as the server runs
    except (OSError, OverflowError) as error:
        sock.close()
        raise EutelyError(
            f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', '') or error}; "
            "choose another --port, or 0 for any free one"
        ) from None
    bound = sock.getsockname()[1]
    names = {f"[{host}]:{bound}" if ":" in host else f"{host}:{bound}"}
    if host in (LOCAL, "localhost", "::1"):
        names |= {f"{LOCAL}:{bound}", f"localhost:{bound}"}
    if host in ("0.0.0.0", "::"):
        names = {f"{socket.gethostname()}:{bound}", f"{LOCAL}:{bound}", f"localhost:{bound}"}
        names |= {f"{each[4][0]}:{bound}" for each in _own_addresses()}
    return sock, frozenset(names)


def _own_addresses() -> list[Any]:
    """Return the addresses of this machine in networks."""
    try:
        return socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        return []


def _serve(
    desk: "Desk",
    app: Any,
    sock: socket.socket,
    begin: "Callable[[], Session]",
    address: str,
    *,
    browser: bool,
) -> None:
    """Answer requests until Ctrl-C; the session begins meanwhile."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="error", access_log=False, timeout_graceful_shutdown=1, lifespan="off"
    )
    server = uvicorn.Server(config)
    stop = threading.Event()
    failed: list[Exception] = []

    def start() -> None:
        try:
            desk.session = begin()
        except Exception as error:  # noqa: BLE001, raised again below in the main thread
            desk.problem = str(error)
            failed.append(error)
            stop.set()

    def end(*_: Any) -> None:
        stop.set()

    before = [signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)]
    thread = threading.Thread(target=lambda: server.run(sockets=[sock]), daemon=True)
    thread.start()
    typer.echo(address)
    sys.stdout.flush()
    if browser:
        webbrowser.open(address)
    threading.Thread(target=start, daemon=True).start()
    while not stop.wait(0.2) and thread.is_alive():
        pass
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
        signal.signal(number, handler)
    server.should_exit = True
    Stop.kept = "all corrections are in pins.csv"
    thread.join(timeout=5)
    if failed:
        raise failed[0]
    if desk.session is None:
        say("stopped before all specimens were annotated; nothing was changed")
    else:
        say(f"stopped; {desk.session.close()}")
    raise typer.Exit(130)
