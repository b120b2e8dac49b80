// MCP Inspector's command line as a client. See arguments.mjs for how it is called and what it prints.
// Each method is a process, and so an MCP session, of its own.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readArguments } from './arguments.mjs'

const run = promisify(execFile)
const inspector = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')
const main = join(inspector, '../clients/launcher/build/index.js')
const { url, token, era, calls } = readArguments()
// Inspector keeps a catalogue of servers in the home folder; a test leaves nothing there.
const home = await mkdtemp(join(tmpdir(), 'inspector-'))

async function inspect(...method) {
  const connection = ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${token}`, '--protocol-era', era]
  const options = { env: { ...process.env, HOME: home }, maxBuffer: 64 * 1024 * 1024, timeout: 60_000 }
  const { stdout } = await run(process.execPath, [main, ...connection, '--stored-auth-only', '--format', 'json', '--quiet', '--method', ...method], options)
  return JSON.parse(stdout).result
}

async function callTool([name, args]) {
  try {
    return { name, result: await inspect('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)) }
  } catch (error) {
    // A result with isError ends Inspector with an exit code of its own, and is an answer all the same.
    return error.stdout ? { name, result: JSON.parse(error.stdout).result } : { name, error: { message: error.stderr ?? error.message } }
  }
}

try {
  const { tools } = await inspect('tools/list')
  const answer = { client: 'inspector', tools, calls: [] }
  for (const call of calls) answer.calls.push(await callTool(call))
  console.log(JSON.stringify(answer))
} finally {
  await rm(home, { recursive: true, force: true })
}
