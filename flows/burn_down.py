"""The picture of an account: what remained of its cap after each entry that changed it."""

from decimal import Decimal

from dpmodels import amounts
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Account

POINTS = 300


def draw_burn_down(ledger: Ledger, account: Account) -> str:
    """Draw what remained of a cap after each entry that changed it, as an SVG."""
    steps = ledger.history(account.name, POINTS)
    top = max([cap for _, _, cap in steps] + [account.epsilon_cap])
    width, height, left = 640, 280, 56

    def place(index: int, value: Decimal) -> str:
        x = left + (width - left - 16) * index / max(1, len(steps) - 1)
        return f"{x:.1f},{24 + (height - 64) * float(1 - max(value, Decimal(0)) / top):.1f}"

    spent = " ".join(place(index, cap - used) for index, (_, used, cap) in enumerate(steps))
    caps = " ".join(place(index, cap) for index, (_, _, cap) in enumerate(steps))
    first, last = steps[0][0][:10], steps[-1][0][:10]
    label = f"{account.name}: epsilon not yet spent, at delta={amounts.written(account.delta_cap)}"
    escaped = label.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#fff"/><text x="{left}" y="14">{escaped}</text>'
        f'<path d="M{left} 24V{height - 40}H{width - 16}" fill="none" stroke="#888"/>'
        f'<polyline points="{caps}" fill="none" stroke="#b00" stroke-dasharray="4 3"/>'
        f'<polyline points="{spent}" fill="none" stroke="#06c" stroke-width="2"/>'
        f'<text x="4" y="30">{amounts.written(top)}</text><text x="4" y="{height - 40}">0</text>'
        f'<text x="{left}" y="{height - 22}">{first}</text>'
        f'<text x="{width - 16}" y="{height - 22}" text-anchor="end">{last}</text></svg>\n'
    )
