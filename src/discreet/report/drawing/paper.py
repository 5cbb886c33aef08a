"""What every SVG text of ours begins with, and its lines."""

from __future__ import annotations

from html import escape


def paper(width: float, height: float, title: str) -> list[str]:
    """White paper of a size, with its title."""
    return [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
            f'width="{width}" height="{height:.0f}" role="img" font-family="sans-serif" '
            'font-size="12">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="4" y="18" font-size="13" font-weight="bold">{escape(cut(title, 100))}</text>',
    ]


def line(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = "#000", width: str = "1"
) -> str:
    """A straight line."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{stroke}" stroke-width="{width}"/>'
    )


def cut(text: str, most: int) -> str:
    """A text that has room."""
    return text if len(text) <= most else text[: most - 1] + "…"
