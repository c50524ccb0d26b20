"""An MCP server that asks in the middle of its calls, as the SDK makes one. Each first and last leg of a call
leaves a line in the file that it is given."""

import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

# A key of its own, so that its next process knows what this one has asked.
desk = MCPServer("desk", request_state_security=RequestStateSecurity(keys=[b"k" * 32]))
FORM = {
    "type": "object", "properties": {"region": {"type": "string", "enum": ["north", "south"]}},
    "required": ["region"],
}  # fmt: skip


def note(text: str) -> None:
    if len(sys.argv) > 1:
        with open(sys.argv[1], "a") as file:
            file.write(f"{text}\n")


@desk.tool()
async def order(item: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Order something, in a region that a person chooses at a price that a model names."""
    answers = ctx.input_responses
    if not answers:
        note(f"asks about {item}")
        form = ElicitRequestFormParams(message="Which region?", requested_schema=FORM)
        said = SamplingMessage(role="user", content=TextContent(type="text", text="What does it cost?"))
        asked = {
            "region": ElicitRequest(params=form),
            "price": CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=10)),
            "roots": ListRootsRequest(),
        }
        return InputRequiredResult(input_requests=asked, request_state=f"state of {item}")
    region = answers["region"]
    if region.action != "accept":
        return f"not ordered: {region.action}"
    note(f"orders {item} with {ctx.request_state}")
    return f"{item} {region.content['region']} {answers['price'].content.text} {len(answers['roots'].roots)}"


if __name__ == "__main__":
    desk.run()
