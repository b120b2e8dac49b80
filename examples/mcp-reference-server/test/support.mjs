// A server on a free port of its own for each test, with a client of the official SDK.
import { once } from 'node:events'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createHttpServer } from '../src/http.mjs'
import { OrderStore } from '../src/store.mjs'

export const TOKEN = 'test-token'

/** Starts a server that ends with the test `t`. */
export async function startServer(t, { store = new OrderStore(), hosts } = {}) {
  const server = createHttpServer({ token: TOKEN, store, hosts })
  server.http.listen(0, '127.0.0.1')
  await once(server.http, 'listening')
  t.after(() => server.stop())
  return { ...server, url: `http://127.0.0.1:${server.http.address().port}/mcp` }
}

export async function connect(t, url, token = TOKEN) {
  const client = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  t.after(() => client.close())
  return client
}

export const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}

/** A plain POST, for what a well-behaved client never sends. `authorization: null` leaves the header out. */
export function post(url, body, headers = {}) {
  const all = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${TOKEN}`,
    ...headers,
  }
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
  return fetch(url, { method: 'POST', headers: given, body: typeof body === 'string' ? body : JSON.stringify(body) })
}
