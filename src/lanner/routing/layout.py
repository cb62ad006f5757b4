"""Where the sites of a drawing stand: near in links, near on paper.

Classical scaling gives a first picture; then each site moves to where the distances to all others fit best
(stress majorization). Nothing is random: the same enterprise gives the same picture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

__all__ = ["place"]

_Points = NDArray[np.float64]

_ROUNDS = 300
_PUSHES = 200


def place(count: int, edges: list[tuple[int, int]], spacing: float, aspect: float = 1.5) -> _Points:
    """Give each site a point; no two come closer than ``spacing``, and the picture is wider than high."""
    if count == 1:
        return np.zeros((1, 2))
    points = _majorized(_scaled(wanted := _distances(count, edges)), wanted)
    points = _upright(points) * spacing * 1.15
    points[:, 0] *= aspect**0.5
    points[:, 1] /= aspect**0.5
    return _pushed_apart(points, spacing)


def _distances(count: int, edges: list[tuple[int, int]]) -> _Points:
    """How many links apart the sites are; groups without links between them stand beside each other."""
    matrix = np.zeros((count, count))
    for one, other in edges:
        matrix[one, other] = matrix[other, one] = 1
    found: _Points = shortest_path(matrix, directed=False, unweighted=True)
    finite = found[np.isfinite(found)]
    found[~np.isfinite(found)] = max(2.0, finite.max(initial=0.0) * 0.5 + 1)
    # Long chains bend when far sites need not stand as far apart as they are.
    compact: _Points = found**0.85
    return compact


def _scaled(wanted: _Points) -> _Points:
    count = len(wanted)
    center = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * center @ wanted**2 @ center)
    points: _Points = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 1e-9))
    if count == 2:
        points = np.array([[0.0, 0.0], [1.0, 0.0]])
    # Signs of eigenvectors are anybody's choice: ours is that the first site stands left and up.
    points *= np.where(points[0] > 0, -1.0, 1.0)
    # Sites that see the others alike would fall on one point.
    turn = np.arange(count) * 2.399963
    nudged: _Points = points + 0.05 * np.stack((np.cos(turn), np.sin(turn)), axis=1)
    return nudged


def _majorized(points: _Points, wanted: _Points) -> _Points:
    count = len(points)
    with np.errstate(divide="ignore"):
        weights = np.where(wanted > 0, wanted**-2.0, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        gaps = points[:, None, :] - points[None, :, :]
        now = np.sqrt((gaps**2).sum(axis=2))
        ratio = np.where(now > 1e-9, weights * wanted / np.maximum(now, 1e-9), 0.0)
        moved = np.diag(ratio.sum(axis=1)) - ratio
        after: _Points = inverse @ (moved @ points)
        if np.abs(after - points).max() < 1e-5:
            break
        points = after
    return points - points.mean(axis=0) if count else points


def _upright(points: _Points) -> _Points:
    """Turned so that the longest extent lies flat."""
    centered = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    turned: _Points = centered @ axes.T
    turned *= np.where(turned[0] > 0, -1.0, 1.0)
    return turned


def _pushed_apart(points: _Points, spacing: float) -> _Points:
    """Below a site stands its label, so sites need a little more room above each other than beside."""
    shape = np.array([1.0, 0.9])
    for _ in range(_PUSHES):
        gaps = (points[:, None, :] - points[None, :, :]) * shape
        now = np.sqrt((gaps**2).sum(axis=2))
        np.fill_diagonal(now, np.inf)
        if now.min() >= spacing:
            break
        short = np.maximum(spacing - now, 0.0) / np.maximum(now, 1e-6)
        points = points + (gaps / shape * (short * 0.35)[:, :, None]).sum(axis=1)
    return points
