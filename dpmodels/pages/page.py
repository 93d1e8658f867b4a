"""Self-contained HTML pages: every page extends ``templates/base.html``, and fetches nothing from anywhere.

Pages hold names that somebody else chose. They are escaped; and each page carries a policy by which browsers run no
script, fetch nothing, and apply no style but the page's own, whose hash is in the policy.
"""

import base64
import hashlib
import math
import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from dpmodels.escapes import escaped
from dpmodels.pages.advice import meaning_of, meanings_of

LAYOUT = 26
"""Raise this whenever a template or a renderer makes other bytes of the same facts: ``nacre verify`` compares pages of
this layout with what it makes itself, and leaves others alone (tests/hand_off/test_pages.py)."""
ROUNDED = 1e-9
"""Part of a figure that is no reason to round it up."""
PERCENT = "\N{NO-BREAK SPACE}%"
LINK_BESIDE = re.compile(r'<a href="(?!#)[^"]*">(.*?)</a>', re.DOTALL)
"""A link to another file of a hand-off."""
BEHIND, WORDS, LONG_WORD = re.compile(r"(?<=[_./-])(?=[^_./-])"), re.compile(r"[\s_./-]"), 11
"""Where a name may be broken, what parts its words, and letters of a word for which a small picture has room."""
ONE_DAY = re.compile(r"((?:to )?\d{4}-\d\d-\d\d)")
STYLE_HASH = "STYLE-HASH"
"""Stands in the policy of a page until its styles are laid out."""


def render_page(template: str, **facts: Any) -> str:
    """Lay facts out by a template of this package; text is escaped, and a fact that is missing is an error."""
    page = escaped(_environment().get_template(template).render(**facts))
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return page.replace(STYLE_HASH, f"sha256-{digest}", 1)


def unlinked(page: str) -> str:
    """Return a page that is shown apart from the files beside it: what links led to stays as words."""
    return LINK_BESIDE.sub(r"\1", page)


@cache
def _environment() -> Environment:
    """Return the templates, each of which is compiled once: that takes longer than to lay a page out by it."""
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "thousands": thousands,
        "percent": percent,
        "short": short,
        "ticked": ticked,
        "in_two": in_two,
        "sentence": sentence,
    }
    environment.filters |= {"parted": parted, "is_long": is_long, "whole_days": whole_days, "sentence": sentence}
    environment.filters |= {"capital": capital, "coded": coded, "meaning": meaning_of, "meanings": meanings_of}
    return environment


def ticked(text: str) -> Markup:
    """Write a sentence that begins with a capital, and what stands between backticks as code."""
    return coded(capital(text))


def sentence(text: str) -> Markup:
    """Write the same with a period behind it, where it has no end yet."""
    return ticked(text if text.endswith((".", "!", "?", ":")) else f"{text}.")


def capital(text: str) -> str:
    """Begin a text with a capital, and leave the rest as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def coded(text: str) -> Markup:
    """Write what stands between backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def parted(name: str) -> Markup:
    """Write a name that a narrow screen may break behind what parts its words, and only else within one."""
    return Markup("<wbr>").join(BEHIND.split(name))


def whole_days(text: str) -> Markup:
    """Write a text in which no day is broken."""
    return Markup("").join(
        Markup('<span class="day">{}</span>').format(part) if n % 2 else escape(part)
        for n, part in enumerate(ONE_DAY.split(text))
    )


def is_long(name: str) -> bool:
    """Tell whether a name has a word for which a small picture has no room."""
    return max(map(len, WORDS.split(name))) > LONG_WORD


def thousands(number: float) -> str:
    """Write a whole number with commas between thousands, as ticks and terminals have it."""
    return f"{round(number):,}"


def percent(share: float) -> str:
    """Write a share as a percentage of about three figures."""
    points = 100 * share + 0.0  # and no -0
    return f"{points:.0f}" + PERCENT if abs(points) >= 99.95 else f"{points:.3g}" + PERCENT


def in_two(text: str) -> tuple[str, str]:
    """Part what a sentence on uses is about from the names, or the reason, behind its first colon, if it has one."""
    what, _, which = text.partition(": ")
    return what, which


def percent_up(share: float, most: float = 1.0) -> str:
    """Write a share as a percentage of two figures, rounded up; a share that is one of two figures stays as it is."""
    unit = 10.0 ** (math.floor(math.log10(max(share, 1e-6))) - 1)
    return percent(min(most, math.ceil(share / unit * (1 - ROUNDED)) * unit))


SMALLEST, LARGEST = 1e-300, 1e300
"""Errors so small, or so large, that their second figure is none of float64's."""


def short_up(error: float) -> str:
    """Write an error with two figures, rounded up; one that is of two figures stays as it is."""
    if not SMALLEST < error < LARGEST:
        return short(error)
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    return short(float(f"{math.ceil(error / unit * (1 - ROUNDED)) * unit:.3g}"))


def ends(low: float, high: float, *, of_years: bool = False) -> tuple[str, str]:
    """Write two numbers with four figures, or with six where four do not tell them apart, as of years."""
    first, last = short(low, of_years), short(high, of_years)
    if first != last or low == high:
        return first, last
    return (f"{low:.6g}", f"{high:.6g}") if of_years else (f"{low:,.6g}", f"{high:,.6g}")


def beside(number: float, within: float | None, of_years: bool = False) -> str:
    """Write a number as ``short`` does, or to two figures of what it is within where that is finer."""
    text = short(number, of_years)
    if not within or not math.isfinite(within) or not number:
        return text
    last = 0 if 10_000 <= abs(number) < LARGEST else math.floor(math.log10(abs(number))) - 3
    if within >= 2 * 10.0**last or within < 1e-12 * abs(number):
        return text
    exact = f"{number:,.{max(1 - math.floor(math.log10(within)), 0)}f}"
    return exact.replace(",", "") if of_years else exact


def short(number: float, of_years: bool = False) -> str:
    """Write a number with four figures at most, or those before the point; a year without a mark of thousands."""
    text = f"{number:,.0f}" if 10_000 <= abs(number) < 1e15 else f"{number:,.4g}".replace("e-0", "e-")
    return text.replace(",", "") if of_years else text
