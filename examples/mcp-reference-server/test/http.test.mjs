import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import test from 'node:test'
import { connect, initialize, post, startServer } from './support.mjs'

test('every request needs the token, also inside a session', async (t) => {
  const { url } = await startServer(t)
  const opened = await post(url, initialize)
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') }
  await opened.text()
  for (const authorization of [null, 'Bearer wrong', 'Basic test-token', 'Bearer']) {
    for (const headers of [{ authorization }, { authorization, ...session }]) {
      const answer = await post(url, { jsonrpc: '2.0', id: 2, method: 'tools/list' }, headers)
      assert.equal(answer.status, 401)
      assert.match(answer.headers.get('www-authenticate'), /^Bearer realm="orders"/)
      assert.equal((await answer.json()).result, undefined)
    }
  }
  assert.equal((await fetch(new URL('/healthz', url))).status, 401)
})

test('a wrong token is told apart from a missing one', async (t) => {
  const { url } = await startServer(t)
  const challenge = async (authorization) => (await post(url, initialize, { authorization })).headers.get('www-authenticate')
  assert.doesNotMatch(await challenge(null), /error=/)
  assert.match(await challenge('Bearer wrong'), /error="invalid_token"/)
})

/** `fetch` does not let a caller choose the Host header. */
async function statusForHost(url, host) {
  const { hostname, port } = new URL(url)
  const asked = request({ host: hostname, port, path: '/healthz', headers: { host, authorization: 'Bearer test-token' } }).end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  return answer.statusCode
}

test('only its own host names are served', async (t) => {
  const { url } = await startServer(t, { hosts: ['orders.internal'] })
  assert.equal(await statusForHost(url, 'localhost:1234'), 200)
  assert.equal(await statusForHost(url, 'orders.internal'), 200)
  assert.equal(await statusForHost(url, 'attacker.example'), 403)
})

test('a page of another origin is refused', async (t) => {
  const { url } = await startServer(t)
  assert.equal((await post(url, initialize, { origin: 'http://attacker.example' })).status, 403)
  assert.equal((await post(url, initialize, { origin: 'null' })).status, 403)
  assert.equal((await post(url, initialize, { origin: 'http://localhost:5173' })).status, 200)
})

test('an unknown session is 404 so that the client initialises anew', async (t) => {
  const { url } = await startServer(t)
  const answer = await post(url, { jsonrpc: '2.0', id: 2, method: 'tools/list' }, { 'mcp-session-id': 'gone' })
  assert.equal(answer.status, 404)
})

test('a request before initialize, a body that is no JSON and a huge body are refused', async (t) => {
  const { url, sessions } = await startServer(t)
  assert.equal((await post(url, { jsonrpc: '2.0', id: 2, method: 'tools/list' })).status, 400)
  assert.equal((await post(url, '{')).status, 400)
  assert.equal((await post(url, 'x'.repeat(1024 * 1024 + 1))).status, 413)
  assert.equal((await fetch(new URL('/', url), { headers: { authorization: 'Bearer test-token' } })).status, 404)
  assert.equal(sessions.size, 0)
})

test('DELETE ends a session', async (t) => {
  const { url, sessions } = await startServer(t)
  const client = await connect(t, url)
  assert.equal(sessions.size, 1)
  await client.transport.terminateSession()
  assert.equal(sessions.size, 0)
})
