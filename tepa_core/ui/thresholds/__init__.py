"""The thresholds page: sliders that answer while they are dragged, and what another setting would change."""

from tepa_core.ui.thresholds.sections import CLOSER, answers_soon, compare, draw_board, keep, memories, methods_of

__all__ = ["CLOSER", "answers_soon", "compare", "draw_board", "keep", "memories", "methods_of"]
