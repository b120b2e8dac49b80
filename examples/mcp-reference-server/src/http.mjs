// The HTTP side: who may call, which MCP session a request belongs to, and how everything ends.
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js'
import { Beta } from './beta.mjs'
import { createMcpServer } from './mcp.mjs'

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']
const MAX_BODY = 1024 * 1024
const MAX_SESSIONS = 1000
const IDLE_MS = 30 * 60 * 1000
// How long calls in flight may go on after the server was told to stop.
const DRAIN_MS = 5000

class Refusal extends Error {
  constructor(status, message, headers = {}) {
    super(message)
    Object.assign(this, { status, headers })
  }
}

/** A comparison whose time says nothing about where two secrets differ. */
function sameSecret(given, expected) {
  const digest = (text) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** The host of a `Host` or `Origin` header, without its port. */
function hostOf(url) {
  try {
    return new URL(url).hostname
  } catch {
    return ''
  }
}

async function readJson(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY) throw new Refusal(413, `The body is larger than ${MAX_BODY} bytes.`, { connection: 'close' })
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new Refusal(400, 'The body is not JSON.')
  }
}

/** MCP sessions by id. An engine may never say goodbye, so that idle ones end by themselves. */
class Sessions {
  #byId = new Map()
  // There is one token, so that all sessions are one caller's.
  #beta = new Beta()

  constructor(store) {
    this.store = store
    this.timer = setInterval(() => this.#endIdle(), IDLE_MS / 10)
    this.timer.unref()
  }

  get size() {
    return this.#byId.size
  }

  find(id) {
    const session = this.#byId.get(id)
    // 404 tells the client to initialise anew (MCP 2025-11-25, transports, session management).
    if (!session) throw new Refusal(404, 'This session does not exist or has ended. Initialise a new one.')
    session.usedAt = performance.now()
    return session.transport
  }

  async open() {
    if (this.#byId.size >= MAX_SESSIONS) throw new Refusal(503, 'Too many sessions are open. Try again later.')
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => this.#byId.set(id, { transport, usedAt: performance.now() }),
    })
    transport.onclose = () => this.#byId.delete(transport.sessionId)
    // An McpServer serves one transport, so each session gets one of its own; the orders are shared.
    await createMcpServer(this.store, this.#beta).connect(transport)
    return transport
  }

  #endIdle() {
    for (const { transport, usedAt } of this.#byId.values()) {
      if (performance.now() - usedAt > IDLE_MS) void transport.close()
    }
  }

  async endAll() {
    clearInterval(this.timer)
    await Promise.all([...this.#byId.values()].map(({ transport }) => transport.close()))
  }
}

/**
 * Makes the server without listening yet.
 *
 * @param {{token: string, store: import('./store.mjs').OrderStore, hosts?: string[]}} options
 */
export function createHttpServer({ token, store, hosts = [] }) {
  const allowed = new Set([...LOOPBACK, ...hosts])
  const sessions = new Sessions(store)
  const inFlight = new Set()

  function authorize(request) {
    // Host and Origin: a web page must not reach a local server through a name that resolves to it (DNS rebinding).
    if (!allowed.has(hostOf(`http://${request.headers.host}`))) throw new Refusal(403, 'This Host is not served here.')
    const { origin } = request.headers
    if (origin !== undefined && !allowed.has(hostOf(origin))) throw new Refusal(403, 'This Origin is not allowed.')
    // The token is checked on each request: a session id alone proves nothing.
    const [, given] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    if (given === undefined || !sameSecret(given, token)) {
      const detail = given === undefined ? '' : ', error="invalid_token", error_description="The token is wrong"'
      throw new Refusal(401, 'Send the bearer token of this server.', { 'www-authenticate': `Bearer realm="orders"${detail}` })
    }
  }

  async function serve(request, response) {
    authorize(request)
    const { pathname } = new URL(request.url, 'http://localhost')
    if (pathname === '/healthz') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
      return
    }
    if (pathname !== '/mcp') throw new Refusal(404, 'The MCP endpoint is /mcp.')
    const body = request.method === 'POST' ? await readJson(request) : undefined
    const id = request.headers['mcp-session-id']
    if (id === undefined && !isInitializeRequest(body)) {
      throw new Refusal(400, 'Initialise first, then send the Mcp-Session-Id header.')
    }
    const transport = id === undefined ? await sessions.open() : sessions.find(id)
    await transport.handleRequest(request, response, body)
  }

  const http = createServer((request, response) => {
    inFlight.add(response)
    response.on('close', () => inFlight.delete(response))
    serve(request, response).catch((error) => refuse(response, error))
  })

  async function stop() {
    const closed = new Promise((resolve) => http.close(resolve))
    http.closeIdleConnections()
    // Listening streams (GET) end with their sessions; a call in flight ends with its answer.
    const answered = [...inFlight].filter((response) => response.req.method === 'POST')
    const late = new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref())
    await Promise.race([late, Promise.all(answered.map((response) => new Promise((done) => response.on('close', done))))])
    await sessions.endAll()
    http.closeAllConnections()
    await closed
  }

  return { http, sessions, stop }
}

function refuse(response, error) {
  const known = error instanceof Refusal
  if (!known) console.error('request failed', error)
  if (response.headersSent) {
    response.destroy()
    return
  }
  // Callers read what to do next, never the inside of the server.
  const message = known ? error.message : 'Something went wrong inside the server.'
  response.writeHead(known ? error.status : 500, { 'content-type': 'application/json', ...(error.headers ?? {}) })
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }))
}
