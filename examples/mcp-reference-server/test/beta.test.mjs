import assert from 'node:assert/strict'
import test from 'node:test'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { connect, startServer } from './support.mjs'

const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name).sort()

/** Resolves with the number of announcements so far at the next one. */
function announcements(client) {
  const heard = { count: 0 }
  heard.next = new Promise((resolve) => {
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      heard.count += 1
      resolve()
    })
  })
  return heard
}

test('enable_beta switches a tool on in every session of the caller and announces it to each', async (t) => {
  const { url } = await startServer(t)
  const [one, two] = [await connect(t, url), await connect(t, url)]
  assert.ok(!(await names(one)).includes('summarize_orders'))
  const refused = await one.callTool({ name: 'summarize_orders', arguments: {} })
  assert.equal(refused.isError, true)
  const heard = [announcements(one), announcements(two)]
  const { structuredContent } = await one.callTool({ name: 'enable_beta', arguments: {} })
  assert.deepEqual(structuredContent, { enabled: ['summarize_orders'] })
  await Promise.all(heard.map(({ next }) => next))
  for (const client of [one, two, await connect(t, url)]) {
    assert.ok((await names(client)).includes('summarize_orders'))
  }
  const summary = await two.callTool({ name: 'summarize_orders', arguments: {} })
  const { states } = summary.structuredContent
  assert.equal(states.reduce((sum, { orders }) => sum + orders, 0), 57)
})

test('enable_beta a second time changes nothing and announces nothing', async (t) => {
  const { url } = await startServer(t)
  const client = await connect(t, url)
  const heard = announcements(client)
  await client.callTool({ name: 'enable_beta', arguments: {} })
  await heard.next
  const again = await client.callTool({ name: 'enable_beta', arguments: {} })
  assert.deepEqual(again.structuredContent, { enabled: [] })
  // An answer that came later than an announcement would have: both travel in the order they were sent.
  await client.listTools()
  assert.equal(heard.count, 1)
})
