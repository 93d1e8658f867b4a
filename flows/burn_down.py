"""The picture of an account: what was left of its cap after each entry that changed it."""

from decimal import Decimal
from html import escape

from dpmodels import amounts
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Account

POINTS = 300
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 290, 56, 16, 34, 40


def draw_burn_down(ledger: Ledger, account: Account) -> str:
    """Draw how much of a cap was left after each entry that changed it, as a staircase in SVG.

    The epsilons of releases do not add up, so beside it stands what the largest further release could take.
    """
    steps, balance = ledger.history(account.name, POINTS), ledger.balance(account.name)
    top = max([cap for _, _, cap in steps] + [account.epsilon_cap])
    left_over = _staircase([cap - used for _, used, cap in steps], top)
    caps = _staircase([cap for _, _, cap in steps], top)
    first, last = steps[0][0][:10], steps[-1][0][:10]
    title = f"{account.name}: cap less what was spent, at delta={amounts.written(account.delta_cap)}"
    further = f"one more release of up to epsilon={amounts.remaining(balance.remaining_epsilon)} would fit"
    if why := amounts.composes(balance.cap, balance.spent_epsilon, balance.remaining_epsilon):
        further += f" ({why})"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{LEFT}" y="14">{escape(title)}</text>'
        f'<text x="{LEFT}" y="28" font-size="9" fill="#555">{escape(further)}</text>'
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>'
        f'<polyline points="{caps}" fill="none" stroke="#b00" stroke-dasharray="4 3"/>'
        f'<polyline points="{left_over}" fill="none" stroke="#06c" stroke-width="2"/>'
        f'<text x="4" y="{TOP + 6}">{amounts.written(top)}</text><text x="4" y="{HEIGHT - BOTTOM}">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 22}">{first}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 22}" text-anchor="end">{last}</text></svg>\n'
    )


def _staircase(amounts_left: list[Decimal], top: Decimal) -> str:
    """Lay amounts out from left to right, each lasting until the next; none is drawn below zero."""
    width = (WIDTH - LEFT - RIGHT) / len(amounts_left)
    heights = [TOP + (HEIGHT - TOP - BOTTOM) * float(1 - max(amount, Decimal(0)) / top) for amount in amounts_left]
    corners = [(LEFT + width * (index + end), y) for index, y in enumerate(heights) for end in (0, 1)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
