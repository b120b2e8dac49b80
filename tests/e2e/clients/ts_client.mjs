// The official TypeScript SDK as a client. See arguments.mjs for how it is called and what it prints.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { readArguments } from './arguments.mjs'

const { url, token, calls } = readArguments()
const requestInit = { headers: { authorization: `Bearer ${token}` } }
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit })
const client = new Client({ name: 'e2e-typescript', version: '1' })

async function listTools() {
  const tools = []
  let cursor
  do {
    const page = await client.listTools({ cursor })
    tools.push(...page.tools)
    cursor = page.nextCursor
  } while (cursor)
  return tools
}

async function callTool([name, args]) {
  try {
    return { name, result: await client.callTool({ name, arguments: args }) }
  } catch (error) {
    return { name, error: { code: error.code, message: error.message } }
  }
}

await client.connect(transport)
const answer = { client: 'typescript', protocolVersion: transport.protocolVersion, tools: await listTools(), calls: [] }
// One after the other: the order of side effects is the order that was asked for.
for (const call of calls) answer.calls.push(await callTool(call))
await transport.terminateSession()
await client.close()
console.log(JSON.stringify(answer))
