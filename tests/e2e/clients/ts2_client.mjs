// The official TypeScript client of the revision 2026-07-28. See arguments.mjs for how it is called and what it prints.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { readArguments } from './arguments.mjs'

const { url, token, era, calls } = readArguments()
const requestInit = { headers: { authorization: `Bearer ${token}` } }
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit })
// `modern` takes no other revision; `auto` asks for it first and falls back.
const mode = { modern: { pin: '2026-07-28' }, auto: 'auto', legacy: 'legacy' }[era]
const client = new Client({ name: 'e2e-typescript-2', version: '1' }, { versionNegotiation: { mode } })

async function callTool([name, args]) {
  try {
    return { name, result: await client.callTool({ name, arguments: args }) }
  } catch (error) {
    return { name, error: { code: error.code, message: error.message } }
  }
}

await client.connect(transport)
const { tools } = await client.listTools()
const answer = { client: 'typescript-2', protocolVersion: client.getNegotiatedProtocolVersion(), tools, calls: [] }
for (const call of calls) answer.calls.push(await callTool(call))
await client.close()
console.log(JSON.stringify(answer))
