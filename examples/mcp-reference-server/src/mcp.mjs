// What one MCP session offers: its tools.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { registerBetaTools } from './tools-beta.mjs'
import { registerReadTools } from './tools-read.mjs'
import { registerWriteTools } from './tools-write.mjs'

/**
 * @param {import('./store.mjs').OrderStore} store
 * @param {import('./beta.mjs').Beta} beta
 */
export function createMcpServer(store, beta) {
  const server = new McpServer({ name: 'orders', title: 'Order system', version: '0.1.0' })
  registerReadTools(server, store)
  registerWriteTools(server, store)
  registerBetaTools(server, store, beta)
  return server
}
