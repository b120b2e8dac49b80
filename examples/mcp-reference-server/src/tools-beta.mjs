// A list of tools that changes while clients are connected: one tool switches another one on for its caller.
import { z } from 'zod'
import { answering, structured } from './results.mjs'
import { status } from './schemas.mjs'

export function registerBetaTools(server, store, beta) {
  const summarize = server.registerTool(
    'summarize_orders',
    {
      title: 'Summarize orders (beta)',
      description: 'Returns how many orders there are in each state, and their total amount.',
      outputSchema: {
        states: z.array(z.object({ status, orders: z.number().int(), amount: z.number().describe('Total in euros') })),
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    answering(() => structured({ states: store.totals() })),
  )
  if (!beta.enabled) {
    summarize.disable()
    // Sends notifications/tools/list_changed to this session.
    server.server.onclose = beta.whenEnabled(() => summarize.enable())
  }

  server.registerTool(
    'enable_beta',
    {
      title: 'Enable beta tools',
      description: 'Switches the beta tools on. They are in the list of tools from then on.',
      outputSchema: { enabled: z.array(z.string()).describe('Tools that this call switched on') },
      // Not read-only: it changes what the caller may call. Doing it twice is the same as once.
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    },
    // A call that changes nothing announces nothing.
    answering(() => structured({ enabled: beta.enable() ? ['summarize_orders'] : [] })),
  )
}
