"""A server on FastMCP: structured results, an image, an embedded resource. Takes the port as its argument."""

import base64
import sys

from fastmcp import FastMCP
from fastmcp.utilities.types import Image
from mcp.types import BlobResourceContents, EmbeddedResource

server = FastMCP("warehouse")


@server.tool(annotations={"readOnlyHint": True})
def stock(item: str) -> dict[str, int]:
    """How much of an item there is."""
    return {item: {"bolts": 40, "nuts": 2}.get(item, 0)}


@server.tool(annotations={"readOnlyHint": True})
def label(item: str) -> Image:
    """A label as an image."""
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    return Image(data=base64.b64decode(pixel), format="png")


@server.tool(annotations={"readOnlyHint": True})
def report() -> EmbeddedResource:
    """All stock as a file."""
    blob = base64.b64encode(b"item,count\nbolts,40\n").decode()
    contents = BlobResourceContents(uri="warehouse://reports/stock.csv", mimeType="text/csv", blob=blob)
    return EmbeddedResource(type="resource", resource=contents)


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
