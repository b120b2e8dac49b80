// Schemas that several tools share. Descriptions are for the model: it reads nothing else.
import { z } from 'zod'

export const orderId = z
  .string()
  .regex(/^A\d{4}$/)
  .describe('Order number: A and four digits, such as A1001')

export const status = z.enum(['paid', 'shipped', 'cancelled']).describe('State of the order')

export const summary = z.object({
  id: orderId,
  customer: z.string().describe('Name of the customer'),
  amount: z.number().describe('Total in euros'),
  status,
})

export const order = {
  ...summary.shape,
  items: z.array(z.object({ product: z.string(), quantity: z.number().int() })).describe('What was ordered'),
  notes: z.array(z.object({ id: z.string(), text: z.string() })).describe('Internal notes, the oldest first'),
}
