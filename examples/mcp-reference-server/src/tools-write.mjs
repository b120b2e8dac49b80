// Tools that change orders. From their hints a client knows whether to ask a person, and whether a lost answer may be tried again.
import { z } from 'zod'
import { answering, structured } from './results.mjs'
import { order, orderId } from './schemas.mjs'

export function registerWriteTools(server, store) {
  server.registerTool(
    'add_note',
    {
      title: 'Add a note',
      description: 'Adds an internal note to an order. Calling it twice adds two notes.',
      inputSchema: { orderId, text: z.string().trim().min(1).max(500).describe('The note; customers never see it') },
      outputSchema: { id: z.string().describe('Id of the new note'), orderId, notes: z.number().int().describe('Notes of the order now') },
      // Not idempotent: when an answer is lost, nobody may simply call it again.
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    },
    answering(({ orderId, text }) => structured(store.addNote(orderId, text))),
  )

  server.registerTool(
    'cancel_order',
    {
      title: 'Cancel an order',
      description:
        'Cancels an order that has not been shipped. This cannot be undone. ' +
        'Cancelling an order that is already cancelled changes nothing and succeeds.',
      inputSchema: { orderId },
      outputSchema: order,
      // Destructive: a person should confirm each call. Idempotent: it may be tried again after a network error.
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    answering(({ orderId }) => structured(store.cancel(orderId), `Order ${orderId} is cancelled.`)),
  )
}
