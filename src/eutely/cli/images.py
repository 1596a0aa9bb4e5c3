"""The options --image, --channels and --background of all commands that read specimens."""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.errors import ReadError

if TYPE_CHECKING:
    from eutely.io.images import Images

ImageOption = Annotated[
    Path | None,
    typer.Option(
        "--image",
        metavar="F",
        help="Image that was segmented, or folder of images named as the specimens: intensities.",
    ),
]
ChannelsOption = Annotated[
    str | None,
    typer.Option(
        "--channels",
        metavar="NAMES",
        help="Names of the image's channels, such as red,green,-,blue (-: leave it out).",
        show_default="as in the file",
    ),
]
BackgroundOption = Annotated[
    bool,
    typer.Option("--background", help="Take off the background around each nucleus."),
]

OPTIONS = {
    "image": (ImageOption, None),
    "channels": (ChannelsOption, None),
    "background": (BackgroundOption, False),
}

given: "ContextVar[Images | None]" = ContextVar("images", default=None)
"""The images of the command that runs."""


def with_images(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of images, which apply to all specimens it reads."""

    @wraps(command)
    def measured(
        image: Path | None = None,
        channels: str | None = None,
        background: bool = False,
        **options: object,
    ) -> None:
        if image is None and (channels is not None or background):
            word = "--background" if channels is None else "--channels"
            raise ReadError(f"{word} needs --image; give the image, or leave it out")
        images = None
        if image is not None:
            from eutely.io.images import Images

            names = tuple(name.strip() for name in channels.split(",")) if channels else ()
            images = Images(image, names, background)
        token = given.set(images)
        try:
            command(**options)
        finally:
            given.reset(token)

    signature = inspect.signature(command)
    added = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for key, (option, default) in OPTIONS.items()
    ]
    parameters = [*signature.parameters.values(), *added]
    measured.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    kinds = {key: option for key, (option, _) in OPTIONS.items()}
    measured.__annotations__ = {**command.__annotations__, **kinds}
    return measured
