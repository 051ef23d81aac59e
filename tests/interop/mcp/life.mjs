// A whole team life through `phalanx mcp`, with the protocol's official TypeScript client: 1.x
// (@modelcontextprotocol/sdk) or 2.x (@modelcontextprotocol/client).
//
// usage: node life.mjs PHALANX 1|2
//
// The config root has a profile `native` (tests/e2e/mcp_clients.rs). Prints each call and its result.

const [phalanx, line] = process.argv.slice(2)
const { Client, StdioClientTransport } = line === '1'
  ? {
      ...(await import('@modelcontextprotocol/sdk/client/index.js')),
      ...(await import('@modelcontextprotocol/sdk/client/stdio.js')),
    }
  : {
      ...(await import('@modelcontextprotocol/client')),
      ...(await import('@modelcontextprotocol/client/stdio')),
    }

function assert (holds, what) {
  if (!holds) throw new Error(JSON.stringify(what))
}

async function connect (name, options) {
  const client = new Client({ name: 'life', version: '1' })
  await client.connect(new StdioClientTransport({ command: phalanx, args: [...options, 'mcp'], env: { ...process.env } }))
  const call = async (tool, args = {}) => {
    const result = await client.callTool({ name: tool, arguments: args })
    console.log(`${name}> ${tool} ${JSON.stringify(args)}\n  ${JSON.stringify(result.structuredContent)}`)
    assert(!result.isError, result)
    return result.structuredContent
  }
  return { client, call }
}

const lead = await connect('lead', [])
const { tools } = await lead.client.listTools()
assert(tools.some(tool => tool.name === 'Handoff'), tools)
await lead.call('TeamCreate', { team_name: 'life' })
for (const name of ['ann', 'ben']) await lead.call('SpawnTeammate', { name })
const first = await lead.call('TaskCreate', { subject: 'first', run: ['true'] })
const second = await lead.call('TaskCreate', { subject: 'second', run: ['true'], blockedBy: [first.task.id] })
const came = await lead.call('WaitFor', { until: `task=${second.task.id}`, timeout: 50 })
assert(came.states[0].state === 'completed', came)

await lead.call('SpawnTeammate', { name: 'cleo', profile: 'native', command: ['sleep', '600'] })
const cleo = await connect('cleo', ['--as', 'cleo'])
await lead.call('SendMessage', { type: 'message', recipient: 'cleo', content: 'plan it', summary: 'a plan' })
await lead.call('SendMessage', { type: 'broadcast', content: 'to all', summary: 'all' })
const texts = new Set()
while (!texts.has('plan it') || !texts.has('to all')) {
  for (const message of (await cleo.call('ReadInbox', { wait: 50 })).messages) texts.add(message.text)
}
for (const approve of [false, true]) {
  const filed = await cleo.call('SubmitPlan', { plan: '1. write 2. test' })
  const { requests } = await lead.call('Requests')
  assert(requests[0].request_id === filed.request_id, requests)
  await lead.call('SendMessage', {
    type: 'plan_approval_response', request_id: filed.request_id, approve, content: approve ? 'go' : 'name the tests'
  })
  let answer
  while (!answer) {
    const { messages } = await cleo.call('ReadInbox', { wait: 50 })
    answer = messages.find(message => message.text.includes('plan_approval_response'))
  }
  assert(JSON.parse(answer.text).approved === approve, answer)
}
await lead.call('Shutdown', { all: true, force: true })
assert((await lead.call('TeamDelete')).success, 'TeamDelete')
await cleo.client.close()
await lead.client.close()
