// Who has the beta tools. That belongs to the caller, not to one MCP session: a client that reconnects keeps them, and every
// session of the caller hears of the change.
export class Beta {
  #enabled = false
  #listeners = new Set()

  get enabled() {
    return this.#enabled
  }

  /** Switches the beta tools on; false when they were on already. */
  enable() {
    if (this.#enabled) return false
    this.#enabled = true
    for (const listener of this.#listeners) listener()
    this.#listeners.clear()
    return true
  }

  /** Calls `listener` when they are switched on. Returns what takes the listener away again. */
  whenEnabled(listener) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
