"""Self-contained HTML pages: every page extends ``templates/base.html``, and fetches nothing from anywhere."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

PERCENT = "\N{NO-BREAK SPACE}%"


def render_page(template: str, **facts: Any) -> str:
    """Lay facts out by a template of this package; text is escaped, and a fact that is missing is an error."""
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"thousands": thousands, "percent": percent, "short": short}
    return environment.get_template(template).render(**facts)


def thousands(number: float) -> str:
    """Write a whole number with thin spaces between thousands, which no reader takes for a decimal point."""
    return f"{round(number):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(share: float) -> str:
    """Write a share as a percentage of about three figures."""
    points = 100 * share
    return f"{points:.0f}" + PERCENT if abs(points) >= 99.95 else f"{points:.3g}" + PERCENT


def short(number: float) -> str:
    """Write a number with four figures at most."""
    return f"{number:.4g}".replace("e-0", "e-")
