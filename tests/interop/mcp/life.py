"""A whole team life through `phalanx mcp`, with the protocol's official Python client (1.x or 2.x).

usage: life.py PHALANX

The config root has a profile `native` (tests/e2e/mcp_clients.rs). Prints each call and its result.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters, stdio_client


class Caller:
    def __init__(self, name, session):
        self.name, self.session = name, session

    async def call(self, tool, **arguments):
        result = await self.session.call_tool(tool, arguments)
        # 1.x has the names of the protocol, 2.x those of Python.
        is_error = getattr(result, "is_error", None) or getattr(result, "isError", None)
        content = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
        print(f"{self.name}> {tool} {json.dumps(arguments)}")
        print(f"  {json.dumps(content)}", flush=True)
        assert not is_error, content
        return content


async def connect(stack, phalanx, name, options):
    server = StdioServerParameters(command=phalanx, args=[*options, "mcp"], env=dict(os.environ))
    streams = await stack.enter_async_context(stdio_client(server))
    session = await stack.enter_async_context(ClientSession(*streams))
    await session.initialize()
    return Caller(name, session)


async def main(phalanx):
    async with AsyncExitStack() as stack:
        lead = await connect(stack, phalanx, "lead", [])
        tools = {tool.name for tool in (await lead.session.list_tools()).tools}
        assert {"TeamCreate", "Handoff"} <= tools, tools
        await lead.call("TeamCreate", team_name="life")
        for worker in ["ann", "ben"]:
            await lead.call("SpawnTeammate", name=worker)
        first = await lead.call("TaskCreate", subject="first", run=["true"])
        second = await lead.call("TaskCreate", subject="second", run=["true"], blockedBy=[first["task"]["id"]])
        came = await lead.call("WaitFor", until=f"task={second['task']['id']}", timeout=300)
        assert came["states"][0]["state"] == "completed", came

        await lead.call("SpawnTeammate", name="cleo", profile="native", command=["sleep", "600"])
        cleo = await connect(stack, phalanx, "cleo", ["--as", "cleo"])
        await lead.call("SendMessage", type="message", recipient="cleo", content="plan it", summary="a plan")
        await lead.call("SendMessage", type="broadcast", content="to all", summary="all")
        texts = set()
        while not {"plan it", "to all"} <= texts:
            texts |= {message["text"] for message in (await cleo.call("ReadInbox", wait=60))["messages"]}
        for approve in [False, True]:
            filed = await cleo.call("SubmitPlan", plan="1. write 2. test")
            open_requests = await lead.call("Requests")
            assert open_requests["requests"][0]["request_id"] == filed["request_id"]
            await lead.call(
                "SendMessage", type="plan_approval_response", request_id=filed["request_id"],
                approve=approve, content="go" if approve else "name the tests",
            )
            answers = []
            while not answers:
                mail = (await cleo.call("ReadInbox", wait=60))["messages"]
                answers = [m for m in mail if "plan_approval_response" in m["text"]]
            assert json.loads(answers[0]["text"])["approved"] is approve
        await lead.call("Shutdown", all=True, force=True)
        assert (await lead.call("TeamDelete"))["success"]


asyncio.run(main(sys.argv[1]))
