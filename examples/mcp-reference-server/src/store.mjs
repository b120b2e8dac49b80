// The order system itself. It knows nothing of MCP.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const CUSTOMERS = ['Ada Byron', 'Grace Murray', 'Kurt Friedrich', 'Emmy Amalie', 'Alan Mathison', 'Rózsa Péter', '王小云']
const PRODUCTS = ['lamp', 'desk', 'chair', 'shelf', 'clock']
const STATES = ['paid', 'shipped', 'paid', 'cancelled', 'shipped']
const ORDERS = 57

/** A request that the order system refuses. The message is written for the model. */
export class OrderError extends Error {}

/** The same orders at every first start, so that examples and tests can name them. */
function sampleOrders() {
  return Array.from({ length: ORDERS }, (_, n) => ({
    id: `A${1001 + n}`,
    customer: CUSTOMERS[n % CUSTOMERS.length],
    amount: 20 + ((n * 37) % 400) + 0.5,
    status: STATES[n % STATES.length],
    items: [{ product: PRODUCTS[n % PRODUCTS.length], quantity: 1 + (n % 3) }],
    notes: [],
  }))
}

export class OrderStore {
  #file
  #orders

  /** @param {string} [file] keeps the orders across restarts; in memory only without it */
  constructor(file) {
    this.#file = file
    const orders = file && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : sampleOrders()
    this.#orders = new Map(orders.map((order) => [order.id, order]))
  }

  get(id) {
    const order = this.#orders.get(id)
    if (!order) throw new OrderError(`Order ${id} does not exist. Use list_orders to see the order numbers.`)
    return structuredClone(order)
  }

  list({ status, cursor, limit = 20 }) {
    const after = cursor === undefined ? '' : decodeCursor(cursor)
    const matching = [...this.#orders.values()].filter((order) => status === undefined || order.status === status)
    const rest = matching.filter((order) => order.id > after)
    const orders = rest.slice(0, limit).map(({ id, customer, amount, status }) => ({ id, customer, amount, status }))
    const page = { orders, total: matching.length }
    return rest.length > limit ? { ...page, nextCursor: encodeCursor(orders.at(-1).id) } : page
  }

  /** How many orders there are in each state, and what they come to. */
  totals() {
    const totals = new Map()
    for (const { status, amount } of this.#orders.values()) {
      const { orders, amount: sum } = totals.get(status) ?? { orders: 0, amount: 0 }
      // In cents: sums of fractions drift.
      totals.set(status, { orders: orders + 1, amount: (Math.round(sum * 100) + Math.round(amount * 100)) / 100 })
    }
    return [...totals].map(([status, total]) => ({ status, ...total }))
  }

  addNote(id, text) {
    const order = this.get(id)
    const note = { id: `N${order.notes.length + 1}`, text }
    order.notes.push(note)
    this.#save(order)
    return { id: note.id, orderId: id, notes: order.notes.length }
  }

  cancel(id) {
    const order = this.get(id)
    if (order.status === 'shipped') {
      throw new OrderError(`Order ${id} was already shipped and can no longer be cancelled. Offer the customer a return instead.`)
    }
    if (order.status === 'paid') {
      order.status = 'cancelled'
      this.#save(order)
    }
    return order
  }

  /** Written beside the file and renamed over it, so that a crash leaves the old orders or the new ones. */
  #save(order) {
    const orders = new Map(this.#orders).set(order.id, structuredClone(order))
    if (this.#file) {
      const draft = `${this.#file}.new`
      writeFileSync(draft, JSON.stringify([...orders.values()], null, 1), { mode: 0o600 })
      renameSync(draft, this.#file)
    }
    this.#orders = orders
  }
}

// A cursor means nothing to its reader. It holds the last order shown, so that a page stays right while orders change.
function encodeCursor(id) {
  return Buffer.from(`after:${id}`).toString('base64url')
}

function decodeCursor(cursor) {
  const [, id] = /^after:(A\d{4})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (!id) throw new OrderError('This cursor is not one that list_orders gave. Leave it out to begin with the first page.')
  return id
}
