import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { connect } from './support.mjs'

const MAIN = fileURLToPath(new URL('../server.mjs', import.meta.url))

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'orders-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

function start(t, env) {
  const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function ready(child) {
  const [line] = await once(createInterface(child.stdout), 'line')
  return JSON.parse(line)
}

async function ended(child) {
  let stderr = ''
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const [code] = await once(child, 'close')
  return { code, stderr }
}

test('it refuses to start without a token, with a bad port and with a broken data file', async (t) => {
  const broken = join(folder(t), 'orders.json')
  writeFileSync(broken, '{')
  for (const [env, words] of [
    [{ PORT: '0' }, /REF_TOKEN/],
    [{ PORT: '0', REF_TOKEN: '' }, /REF_TOKEN/],
    [{ PORT: 'http', REF_TOKEN: 'x' }, /PORT/],
    [{ PORT: '0', REF_TOKEN: 'x', REF_DATA: broken }, /REF_DATA/],
  ]) {
    const { code, stderr } = await ended(start(t, env))
    assert.equal(code, 1)
    assert.match(stderr, words)
  }
})

test('SIGTERM ends it cleanly although a client is listening', async (t) => {
  const child = start(t, { PORT: '0', REF_TOKEN: 'test-token' })
  const end = ended(child)
  const { url, pid } = await ready(child)
  assert.equal(pid, child.pid)
  await (await connect(t, url)).listTools()
  child.kill('SIGTERM')
  assert.deepEqual(await end, { code: 0, stderr: '' })
})

test('orders survive a kill when REF_DATA names a file', async (t) => {
  const data = join(folder(t), 'orders.json')
  const env = { PORT: '0', REF_TOKEN: 'test-token', REF_DATA: data }
  const first = start(t, env)
  const client = await connect(t, (await ready(first)).url)
  await client.callTool({ name: 'cancel_order', arguments: { orderId: 'A1001' } })
  const end = ended(first)
  first.kill('SIGKILL')
  await end
  assert.equal(JSON.parse(readFileSync(data, 'utf8'))[0].status, 'cancelled')
  const again = await connect(t, (await ready(start(t, env))).url)
  const { structuredContent } = await again.callTool({ name: 'get_order', arguments: { orderId: 'A1001' } })
  assert.equal(structuredContent.status, 'cancelled')
})

test('the token can come from a file', async (t) => {
  const file = join(folder(t), 'token')
  writeFileSync(file, 'test-token\n')
  const { url } = await ready(start(t, { PORT: '0', REF_TOKEN_FILE: file }))
  assert.equal((await (await connect(t, url)).listTools()).tools.length, 5)
})
