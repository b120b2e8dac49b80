"""The official Python SDK as a client. Called and answering like the other clients: see arguments.mjs."""

import argparse
import json
import os
import sys

import anyio
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def plain(model):
    """A result as it stood on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def list_tools(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += [plain(tool) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            return tools


async def call_tool(client, name, arguments):
    try:
        return {"name": name, "result": plain(await client.call_tool(name, arguments))}
    except MCPError as error:
        return {"name": name, "error": {"code": error.error.code, "message": error.error.message}}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("calls", nargs="?", default="[]", type=json.loads)
    parser.add_argument("--era", default="legacy", help="legacy, auto, or a revision such as 2026-07-28")
    args = parser.parse_args()
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOKEN']}"}
    era = "2026-07-28" if args.era == "modern" else args.era
    async with create_mcp_http_client(headers=headers) as http:
        async with Client(streamable_http_client(args.url, http_client=http), mode=era, read_timeout_seconds=60) as client:
            answer = {"client": "python", "protocolVersion": client.session.protocol_version}
            answer["tools"] = await list_tools(client)
            answer["calls"] = [await call_tool(client, name, arguments) for name, arguments in args.calls]
    json.dump(answer, sys.stdout)
    print()


anyio.run(main)
