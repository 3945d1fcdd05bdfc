"""Report on a fit as one self-contained HTML page.

It contains the table of parameters with intervals, warnings, measured and predicted signals with
their residuals, correlations, and the cost history of each start. The figures are SVG by
matplotlib, from the extra `identify`.
"""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.escape import MAX_LABEL, MAX_MESSAGE, html, mathtext
from jaxsim.identify.estimation import Fit
from jaxsim.identify.residual import Problem
from jaxsim.identify.validation import Validation
from jaxsim.optional import require

_CURVE_COLORS = {"measured": "#999999", "predicted": "#0b5fa5", "left": "#b03a2e"}
_MAX_SIGNAL_POINTS = 400  # points of a signal in a figure
# Margins of figures as parts of their size. To compute them takes half of the time of a figure.
_SIGNAL_MARGINS = {"left": 0.13, "right": 0.98, "bottom": 0.14, "top": 0.92, "hspace": 0.15}
_START_MARGINS = {"left": 0.13, "right": 0.98, "bottom": 0.16, "top": 0.96}
_PAGE_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2em auto;
padding:0 1em;color:#222}table{border-collapse:collapse;margin:1em 0}
td,th{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left;font-family:monospace}
.warning{background:#fdf3e1;border-left:4px solid #d9902f;padding:.5em 1em;margin:.4em 0}
svg{max-width:100%;height:auto}h2{margin-top:2em}"""


def report(
    found: Fit,
    path: str | Path | None = None,
    *,
    held: Validation | None = None,
    title: str = "System identification",
    level: float = 0.95,
    signals: int = 24,
) -> str:
    """Return the report of a fit as HTML.

    Args:
      found: the fit.
      path: the file to write; None: none.
      held: prediction of recordings that were held back, which is shown too.
      title: title of the page.
      level: level of the intervals.
      signals: largest number of signals that are drawn.

    Returns:
      The HTML. A figure that cannot be drawn is replaced by a sentence, with a warning.

    Raises:
      ImportError: matplotlib is missing; the message names the extra.
    """
    _matplotlib("figure")  # figures that fail are left out, but a missing package is an error
    parts = [
        f"<h1>{html(title)}</h1>",
        _summary_text(found, held),
        *(f'<p class="warning">{html(w, MAX_MESSAGE)}</p>' for w in found.warnings),
        "<h2>Parameters</h2>",
        _parameter_table(found, level),
        "<h2>Measured and predicted</h2>",
        _signals(found.problem, found.problem.predictions(found.x), signals),
    ]
    if held is not None:
        parts += [
            "<h2>Held back</h2>",
            _signals(held.problem, held.predictions, signals),
        ]
    if found.parameters.size > 1:
        parts += ["<h2>Correlations</h2>", _draw_or_explain(_correlations, found)]
    parts += ["<h2>Starts</h2>", _draw_or_explain(_starts, found)]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html(title)}</title>'
        f"<style>{_PAGE_STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
    if path is not None:
        write_whole(path, page)
    return page


def _summary_text(found: Fit, held: Validation | None) -> str:
    u = found.uncertainty
    noise = (
        f"chi2 per degree of freedom {u.noise**2:.4g}"
        if u.known_sigma
        else f"noise found {u.noise:.4g} of each signal"
    )
    said = [
        f"{found.problem.rows} rows, {found.problem.size} unknowns",
        f"rank {u.rank}, condition {u.condition:.3g}",
        noise,
        f"{int((found.costs < found.cost * (1 + 1e-3) + 1e-12).sum())} of {len(found.costs)} "
        "starts end at the best cost",
    ]
    if held is not None:
        said.append(f"chi2 of what was held back {held.chi2:.4g}")
    return f"<p>{'; '.join(said)}.</p>"


def _parameter_table(found: Fit, level: float) -> str:
    nominal = found.parameters.host_numbers(found.parameters.nominal())
    head = f"<tr><th>name<th>first guess<th>value<th>sd<th>{level:.0%} interval<th>sd / value</tr>"
    columns = zip(found.names, nominal, found.values, found.sd, found.intervals(level), strict=True)
    rows = [
        f"<tr><td>{html(n)}<td>{first:.5g}<td>{v:.5g}<td>{sd:.3g}<td>{low:.5g} to {high:.5g}"
        f"<td>{f'{sd / abs(v):.2%}' if v else ''}</tr>"
        for n, first, v, sd, (low, high) in columns
    ]
    return f"<table>{head}{''.join(rows)}</table>"


def _signals(problem: Problem, predictions: list[np.ndarray], most: int) -> str:
    """Return a figure for each signal: measurement and prediction, and residual in sigmas."""
    pictures: list[str] = []
    left = sum(len(s.names) for s in problem.samples) - most
    for number, (s, p) in enumerate(zip(problem.samples, predictions, strict=True)):
        label = problem.sequences[number].name or f"recording {number + 1}"
        for k, name in enumerate(s.names):
            if len(pictures) == most:
                return "".join(pictures) + f"<p>{left} more are not shown.</p>"
            mine = np.flatnonzero((s.signal == k) & np.isfinite(p))
            mine = mine[np.argsort(s.time[mine])]
            thin = mine[:: max(len(mine) // _MAX_SIGNAL_POINTS, 1)]
            pictures.append(_draw_or_explain(_signal, f"{label}: {name}", s, p, thin))
    return "".join(pictures)


def _signal(title: str, s: Any, p: np.ndarray, ids: np.ndarray) -> str:
    figure, (above, below) = _make_figure(2, 1, (5.2, 3.0), _SIGNAL_MARGINS, heights=[2.2, 1])
    t = s.time[ids]
    above.plot(t, s.value[ids], ".", color=_CURVE_COLORS["measured"], ms=3, label="measured")
    above.plot(t, p[ids], color=_CURVE_COLORS["predicted"], lw=1.2, label="predicted")
    above.set_title(mathtext(title, 2 * MAX_LABEL), fontsize=9, loc="left")
    above.legend(fontsize=7, frameon=False)
    below.plot(t, (p[ids] - s.value[ids]) * s.weight[ids], ".", color=_CURVE_COLORS["left"], ms=2)
    below.axhline(0, color="#444444", lw=0.6)
    below.set_ylabel("/ sigma", fontsize=7)
    below.set_xlabel("time [s]", fontsize=8)
    return _svg(figure)


def _correlations(found: Fit) -> str:
    n = found.parameters.size
    names = [mathtext(name) for name in found.parameters.coordinates]
    side = 2.5 + 0.28 * n
    figure, (axes,) = _make_figure(1, 1, (side + 1, side))
    shown = axes.imshow(found.correlation, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_xticks(range(n), names, rotation=90, fontsize=7)
    axes.set_yticks(range(n), names, fontsize=7)
    if n <= 12:
        for i in range(n):
            for j in range(n):
                c = found.correlation[i, j]
                color = "white" if abs(c) > 0.6 else "#222222"
                axes.text(j, i, f"{c:.2f}", ha="center", va="center", fontsize=6, color=color)
    figure.colorbar(shown, shrink=0.7)
    return _svg(figure)


def _starts(found: Fit) -> str:
    figure, (axes,) = _make_figure(1, 1, (5.2, 2.8), _START_MARGINS)
    histories = np.asarray(found.solutions.history, np.float64)
    for history, cost in zip(histories, found.costs, strict=True):
        way = np.append(history[np.isfinite(history)], cost)
        best = cost <= found.costs.min()
        color = _CURVE_COLORS["predicted"] if best else _CURVE_COLORS["measured"]
        axes.semilogy(way, color=color, lw=1.6 if best else 0.8, zorder=2 if best else 1)
    axes.set_xlabel("iteration", fontsize=8)
    axes.set_ylabel("cost", fontsize=8)
    return _svg(figure)


def _draw_or_explain(draw: Callable[..., str], *what: Any) -> str:
    """Return a figure, or the reason why it cannot be drawn, so the report is still written."""
    try:
        return draw(*what)
    except Exception as error:  # noqa: BLE001  (matplotlib raises errors of many types)
        message = f"a picture of the report could not be drawn: {error}"
        warnings.warn(message, stacklevel=2)
        return f'<p class="warning">{html(message, MAX_MESSAGE)}</p>'


def _make_figure(
    rows: int,
    columns: int,
    size: tuple[float, float],
    margins: dict[str, float] | None = None,
    heights: list[float] | None = None,
) -> tuple:
    """Return a figure without a window, and its axes; without margins they are computed."""
    home = _matplotlib("figure")
    figure = home.Figure(figsize=size, layout=None if margins else "constrained")
    if margins:
        figure.subplots_adjust(**margins)
    axes = figure.subplots(
        rows,
        columns,
        sharex=rows > 1,
        squeeze=False,
        gridspec_kw={"height_ratios": heights} if heights else None,
    ).ravel()
    for a in axes:
        a.tick_params(labelsize=7)
        a.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure: Any) -> str:
    """Return a figure as an SVG element."""
    text = io.StringIO()
    with _matplotlib("").rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxsim"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _matplotlib(part: str) -> Any:
    return require(f"matplotlib.{part}" if part else "matplotlib", "identify")
