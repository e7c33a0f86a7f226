"""Text of people and logs on a page: every such text passes through `plain_text` before Markdown sees it.

Streamlit obeys Markdown in nearly everything: headings, captions, messages, toasts, labels of widgets and links, help,
progress, metrics, cells of ``st.table``, options of radios and segmented controls. It does not in options of select
boxes and multiselects, ``st.text``, ``st.code`` and cells of ``st.dataframe``: there `tepa_core.inert.one_line` is
enough.
"""

from __future__ import annotations

import re

from tepa_core.inert import one_line

#: Characters that mean something in Markdown. After some of them a word joiner, which nobody sees, keeps Streamlit from
#: making links, arrows and emoji out of them.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~$:^=/@&\"'])")
_JOINED = re.compile(
    r"(?<=:)(?=[A-Za-z/+\-]|\d+[A-Za-z_]|100:|1234:)|(?<=[@<])(?=\S)|(?<=www)(?=\.)|(?<=-)(?=[->])|(?<=[>~])(?==)",
    re.IGNORECASE,
)


def plain_text(text: object, limit: int = 80) -> str:
    """Return somebody's text so that Markdown shows it as it is: one line, shortened, nothing in it obeyed.

    A text written from right to left is isolated, so that the words around it keep their order. Whole sentences of a
    log are better shown with ``st.text``, which knows no Markdown at all.
    """
    return _MARKDOWN.sub(r"\\\1", _JOINED.sub("\u2060", one_line(text, limit)))
