"""The options of all commands that read specimens: images, and names of features."""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.errors import ReadError
from eutely.meaning import as_called

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
FeaturesMapOption = Annotated[
    str | None,
    typer.Option(
        "--features-map",
        metavar="OLD=NEW,...",
        help="Other names of features, such as red=R,ch2=G; OLD=- leaves one out.",
        show_default="by meaning",
    ),
]

OPTIONS = {
    "image": (ImageOption, None),
    "channels": (ChannelsOption, None),
    "background": (BackgroundOption, False),
    "features_map": (FeaturesMapOption, None),
}

given: "ContextVar[Images | None]" = ContextVar("images", default=None)
"""The images of the command that runs."""

names_given: "ContextVar[Mapping[str, str] | None]" = ContextVar("features_map", default=None)
"""Other names of features, of the command that runs."""


def with_images(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with these options, which apply to all specimens it reads."""

    @wraps(command)
    def measured(
        image: Path | None = None,
        channels: str | None = None,
        background: bool = False,
        features_map: str | None = None,
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
        mapped = parse_map(features_map)
        tokens = given.set(images), names_given.set(mapped), as_called.set(bool(mapped))
        try:
            command(**options)
        finally:
            given.reset(tokens[0])
            names_given.reset(tokens[1])
            as_called.reset(tokens[2])

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


def parse_map(text: str | None) -> dict[str, str] | None:
    """Return old -> new names of features from ``red=R,ch2=G``; None where there is no text."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    names = {old.strip(): new.strip() for old, _, new in pairs}
    if len(names) < len(pairs) or not all(old and new for old, new in names.items()):
        raise ReadError(
            f"--features-map {text}: expected OLD=NEW pairs with commas between them, each OLD "
            "once, such as red=R,green=G"
        )
    return names
