// Tools that change nothing: they are called without asking a person and offered in read-only sessions.
import { z } from 'zod'
import { answering, structured } from './results.mjs'
import { order, orderId, status, summary } from './schemas.mjs'

const READ_ONLY = { readOnlyHint: true, openWorldHint: false }

export function registerReadTools(server, store) {
  server.registerTool(
    'get_order',
    {
      title: 'Get an order',
      description:
        'Returns one order with its customer, amount, status, items and notes. ' +
        'If you do not know the order number, find it with list_orders first.',
      inputSchema: { orderId },
      outputSchema: order,
      annotations: READ_ONLY,
    },
    answering(({ orderId }) => structured(store.get(orderId))),
  )

  server.registerTool(
    'list_orders',
    {
      title: 'List orders',
      description:
        'Lists orders by number, with customer, amount and status; get_order has the details. ' +
        'Returns one page. If the answer has nextCursor there are more: call again with it as cursor.',
      inputSchema: {
        status: status.optional().describe('Only orders in this state; leave out for all'),
        cursor: z.string().max(64).optional().describe('nextCursor of the page before; leave out for the first page'),
        limit: z.number().int().min(1).max(50).default(20).describe('Orders on a page'),
      },
      outputSchema: {
        orders: z.array(summary),
        total: z.number().int().describe('How many orders match in all'),
        nextCursor: z.string().optional().describe('Cursor of the next page; absent on the last one'),
      },
      annotations: READ_ONLY,
    },
    answering((filter) => {
      const page = store.list(filter)
      const more = page.nextCursor ? ' There are more pages.' : ''
      return structured(page, `${page.orders.length} of ${page.total} orders.${more}`)
    }),
  )
}
