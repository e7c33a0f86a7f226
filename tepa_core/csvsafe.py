"""The one CSV writer for downloads: what it writes cannot run as a formula in a spreadsheet."""

from __future__ import annotations

import pandas as pd

__all__ = ["to_safe_csv"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def _guarded(cell: object) -> object:
    if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS):
        return "'" + cell
    return cell


def to_safe_csv(frame: pd.DataFrame) -> str:
    r"""Write a table as CSV text whose cells a spreadsheet shows instead of running.

    Parameters
    ----------
    frame : DataFrame
        Any table. The index is not written; call ``reset_index`` first when it matters.

    Returns
    -------
    str
        CSV with a header and CRLF line ends. Text cells and column names that start with ``=``, ``+``, ``-``, ``@``,
        tab or a line end get a leading apostrophe. Numbers stay numbers: -0.5 is written as it is.

    Examples
    --------
    >>> to_safe_csv(pd.DataFrame({"reason": ["=1+1"], "mpi": [-0.5]}))
    "reason,mpi\r\n'=1+1,-0.5\r\n"
    """
    safe = frame.copy()
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)):
            safe.isetitem(position, column.astype(object).map(_guarded).to_numpy())
    safe.columns = pd.Index([_guarded(str(name)) for name in frame.columns])
    # With CRLF line ends the csv module also quotes a lone carriage return, which would otherwise start a new row.
    return safe.to_csv(index=False, lineterminator="\r\n")
