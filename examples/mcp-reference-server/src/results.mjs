// The two kinds of answer that a tool gives.
import { OrderError } from './store.mjs'

/**
 * Structured content for programs, and the same as text for clients that read only text.
 * A sentence may stand before it: what the model should say first.
 */
export function structured(value, sentence) {
  const blocks = sentence ? [{ type: 'text', text: sentence }] : []
  return { content: [...blocks, { type: 'text', text: JSON.stringify(value) }], structuredContent: value }
}

/**
 * Turns a refusal of the order system into an answer for the model: what happened, and what to do next.
 * Anything else is a defect and stays an error of the server.
 */
export function answering(handler) {
  return async (args) => {
    try {
      return await handler(args)
    } catch (error) {
      if (!(error instanceof OrderError)) throw error
      return { isError: true, content: [{ type: 'text', text: error.message }] }
    }
  }
}
