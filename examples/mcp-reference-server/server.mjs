// Starts the reference server: reads its settings, listens, and stops when it is told to.
//
//   PORT=4700 REF_TOKEN=secret node server.mjs
//
// PORT=0 takes a free port. One line of JSON with the real URL says that it is ready.
import { readFileSync } from 'node:fs'
import { createHttpServer } from './src/http.mjs'
import { OrderStore } from './src/store.mjs'

const env = process.env

function fail(message) {
  console.error(`mcp-reference-server: ${message}`)
  process.exit(1)
}

function token() {
  const value = env.REF_TOKEN ?? (env.REF_TOKEN_FILE ? readFileSync(env.REF_TOKEN_FILE, 'utf8').trim() : '')
  // A server that starts without its secret would be open to everyone.
  return value || fail('set REF_TOKEN (or REF_TOKEN_FILE) to the bearer token that callers must send')
}

function port() {
  const value = Number(env.PORT ?? 4700)
  return Number.isInteger(value) && value >= 0 && value < 65536 ? value : fail('PORT takes a number from 0 to 65535')
}

function openStore() {
  try {
    return new OrderStore(env.REF_DATA)
  } catch (error) {
    return fail(`the file named by REF_DATA cannot be used: ${error.message}`)
  }
}

const server = createHttpServer({
  token: token(),
  store: openStore(),
  // Names under which callers reach it, beside the loopback ones.
  hosts: (env.REF_HOSTS ?? '').split(',').filter(Boolean),
})

server.http.on('error', (error) => fail(error.message))
server.http.listen(port(), env.REF_LISTEN ?? '127.0.0.1', () => {
  const { address, port, family } = server.http.address()
  const host = family === 'IPv6' ? `[${address}]` : address
  console.log(JSON.stringify({ url: `http://${host}:${port}/mcp`, pid: process.pid }))
})

for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => {
    await server.stop()
    process.exit(0)
  })
}
