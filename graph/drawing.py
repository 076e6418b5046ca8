"""The loop as a picture: Mermaid from the framework's own drawing, plain characters from the table of edges."""

from opsleuth.graph.build import EDGES, NODES, build_graph
from opsleuth.state.errors import UsageError

FORMS = ("ascii", "mermaid")
END = "__end__"


def draw_graph(form: str = "ascii") -> str:
    """The graph in this form. Raises UsageError for another one."""
    if form == "mermaid":
        return build_graph(None).get_graph().draw_mermaid()
    if form == "ascii":
        return _draw_as_text()
    raise UsageError(f"there is no drawing {form!r}: the choices are {', '.join(FORMS)}")


def _draw_as_text() -> str:
    """One line for each node and its ways out, in the order in which a turn passes them."""
    width = max(map(len, NODES))
    lines = [f"{'start':>{width}} ─→ plan"]
    for node, ways in EDGES.items():
        for i, way in enumerate(ways):
            stem = f"{node:>{width}} ─" if i == 0 else f"{'':>{width}}  "
            branch = "─→" if len(ways) == 1 else "┬→" if i == 0 else "└→" if i == len(ways) - 1 else "├→"
            lines.append(f"{stem}{branch} {'end' if way == END else way}")
    return "\n".join(lines) + "\n"
