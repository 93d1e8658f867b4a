"""What a notebook shows of a refusal: the lines of whoever called, and what is wrong."""

import traceback

HIDDEN = "__tracebackhide__"
"""Name of a local variable by which a frame says that it is left out, as for pytest."""


def lines_of(error: BaseException) -> list[str]:
    """Return the lines that IPython shows of an error whose class has ``_render_traceback_``.

    A frame is left out if it says so, as the one in which every refusal is raised, or is IPython's own. All others are
    shown, so that no frame of a fault of the product is hidden. What an error was raised from is left out: the
    sentence says it.
    """
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if HIDDEN not in frame.f_locals and not str(frame.f_globals.get("__name__", "")).startswith("IPython.")
    ]
    parts = ["Traceback (most recent call last):\n", *traceback.StackSummary.extract(iter(frames)).format()]
    return "".join([*parts, *traceback.format_exception_only(error)]).splitlines()
