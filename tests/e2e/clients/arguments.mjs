// The command line that all clients share:  URL [CALLS] [--era ERA]
//
// CALLS is a JSON list of [tool, arguments] pairs. The bearer token comes from MCP_TOKEN, so that it shows in no process list.
// The answer is one JSON document on standard output:
//
//   {"client", "protocolVersion", "tools": [...], "calls": [{"name", "result"} or {"name", "error"}, ...]}
//
// The exit code is 0 when the client could connect and list; a failed call is part of the answer.
import { parseArgs } from 'node:util'

export function readArguments() {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { era: { type: 'string', default: 'legacy' } } })
  const [url, calls = '[]'] = positionals
  const token = process.env.MCP_TOKEN
  if (!url || !token) throw new Error('usage: MCP_TOKEN=… node CLIENT.mjs URL [\'[["tool",{}]]\'] [--era legacy|auto|modern]')
  return { url, token, era: values.era, calls: JSON.parse(calls) }
}
