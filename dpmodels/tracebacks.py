"""What a notebook shows of a refusal: the lines of whoever called, and what is wrong."""

import traceback

HIDDEN = "__tracebackhide__"
"""Name of a local variable by which a frame says that it is left out, as for pytest."""
BENEATH = "\nThe above exception was the direct cause of the following exception:\n\n"
"""What Python writes between an error and the one that was raised from it."""


def fault_beneath(error: BaseException) -> BaseException | None:
    """Return the error of a library, or of a fault of the product, that a refusal was raised from by name.

    None where there is no such, where it is a refusal too, or where the system refused: of these the sentence says all.
    What was raised while another error was handled is none: only what an author names is held to be safe to show.
    """
    cause = error.__cause__
    while cause is not None and hasattr(cause, "_render_traceback_"):
        cause = cause.__cause__
    return None if isinstance(cause, OSError) else cause


def lines_of(error: BaseException) -> list[str]:
    """Return the lines that IPython shows of an error whose class has ``_render_traceback_``.

    A frame is left out if it says so, as the one in which every refusal is raised, or is IPython's own. All others are
    shown, so that no frame of a fault of the product is hidden. What an error was raised from is left out where the
    sentence says it, and shown above the error where it is a fault beneath (``fault_beneath``).
    """
    fault = fault_beneath(error)
    beneath = [] if fault is None else [*traceback.format_exception(fault, chain=False), BENEATH]
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if HIDDEN not in frame.f_locals and not str(frame.f_globals.get("__name__", "")).startswith("IPython.")
    ]
    parts = ["Traceback (most recent call last):\n", *traceback.StackSummary.extract(iter(frames)).format()]
    return "".join([*beneath, *parts, *traceback.format_exception_only(error)]).splitlines()
