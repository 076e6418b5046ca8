"""The page: three files that come with the program, and nothing from anywhere else."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from opsleuth.console.html.style import STYLE

router = APIRouter(include_in_schema=False)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may do in a browser: run its one program, and ask the server that it came from."""
_WEB = files("opsleuth.service") / "web"


@router.get("/")
async def serve_page() -> Response:
    return _web_file_response("page.html", "text/html", {"Content-Security-Policy": POLICY})


@router.get("/page.js")
async def serve_script() -> Response:
    return _web_file_response("page.js", "text/javascript")


@router.get("/page.css")
async def serve_style() -> Response:
    own = (_WEB / "page.css").read_text("utf-8")
    return Response(STYLE + own, media_type="text/css; charset=utf-8")


def _web_file_response(name: str, kind: str, headers: dict[str, str] | None = None) -> Response:
    text = (_WEB / name).read_text("utf-8")
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)
