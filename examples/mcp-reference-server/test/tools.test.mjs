import assert from 'node:assert/strict'
import test from 'node:test'
import { connect, startServer } from './support.mjs'

async function client(t) {
  const { url } = await startServer(t)
  return connect(t, url)
}

const call = (client, name, args) => client.callTool({ name, arguments: args })

test('each tool declares its hints, a title and both schemas', async (t) => {
  const { tools } = await (await client(t)).listTools()
  const hints = Object.fromEntries(tools.map((tool) => [tool.name, tool.annotations]))
  assert.deepEqual(hints, {
    get_order: { readOnlyHint: true, openWorldHint: false },
    list_orders: { readOnlyHint: true, openWorldHint: false },
    add_note: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    cancel_order: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    enable_beta: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  })
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, 'object')
    assert.equal(tool.outputSchema.type, 'object')
    assert.ok(tool.title && tool.description.length < 2000)
    for (const [name, property] of Object.entries(tool.inputSchema.properties ?? {})) {
      assert.ok(property.description, `${tool.name}.${name} has a description`)
    }
  }
})

test('get_order returns the same JSON as structured content and as text', async (t) => {
  const result = await call(await client(t), 'get_order', { orderId: 'A1001' })
  assert.equal(result.structuredContent.customer, 'Ada Byron')
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent)
})

test('a refusal is an answer for the model that names the next step', async (t) => {
  const orders = await client(t)
  const missing = await call(orders, 'get_order', { orderId: 'A9999' })
  assert.equal(missing.isError, true)
  assert.match(missing.content[0].text, /A9999 does not exist.*list_orders/)
  const shipped = await call(orders, 'cancel_order', { orderId: 'A1002' })
  assert.equal(shipped.isError, true)
  assert.match(shipped.content[0].text, /shipped.*return/)
})

test('arguments outside the schema are refused before the tool runs', async (t) => {
  const orders = await client(t)
  for (const [name, args] of [['get_order', { orderId: '1001' }], ['list_orders', { limit: 51 }], ['add_note', { orderId: 'A1001', text: ' ' }]]) {
    const result = await call(orders, name, args)
    assert.equal(result.isError, true, name)
    assert.match(result.content[0].text, /validation error/i)
  }
})

test('following the cursors visits each order once', async (t) => {
  const orders = await client(t)
  const seen = []
  let cursor
  do {
    const { structuredContent } = await call(orders, 'list_orders', { limit: 25, ...(cursor && { cursor }) })
    assert.equal(structuredContent.total, 57)
    seen.push(...structuredContent.orders.map((order) => order.id))
    cursor = structuredContent.nextCursor
  } while (cursor)
  assert.equal(seen.length, 57)
  assert.equal(new Set(seen).size, 57)
})

test('a filter counts only what matches and a page of exactly the rest has no cursor', async (t) => {
  const { structuredContent } = await call(await client(t), 'list_orders', { status: 'cancelled', limit: 11 })
  assert.equal(structuredContent.total, 11)
  assert.equal(structuredContent.nextCursor, undefined)
  assert.ok(structuredContent.orders.every((order) => order.status === 'cancelled'))
})

test('a made-up cursor is refused in words', async (t) => {
  const result = await call(await client(t), 'list_orders', { cursor: 'page2' })
  assert.equal(result.isError, true)
  assert.match(result.content[0].text, /cursor is not one that list_orders gave/)
})

test('add_note adds one note a call and sessions share the orders', async (t) => {
  const { url } = await startServer(t)
  const [one, two] = [await connect(t, url), await connect(t, url)]
  await call(one, 'add_note', { orderId: 'A1001', text: 'call back' })
  const second = await call(two, 'add_note', { orderId: 'A1001', text: 'call back' })
  assert.deepEqual(second.structuredContent, { id: 'N2', orderId: 'A1001', notes: 2 })
})

test('cancelling twice gives the same answer', async (t) => {
  const orders = await client(t)
  const first = await call(orders, 'cancel_order', { orderId: 'A1001' })
  const second = await call(orders, 'cancel_order', { orderId: 'A1001' })
  assert.equal(first.structuredContent.status, 'cancelled')
  assert.deepEqual(second.structuredContent, first.structuredContent)
})
