import { randomUUID } from 'node:crypto'
import type { Bus, Clock, Page, Rows } from 'busbar/sdk'
import { greetingsChannel } from './channels.js'
import type { GreetingStore } from './greeting-store.js'
import type { Greeting } from './schemas.js'

export interface GreetingService {
  list(page: Page): Promise<Rows<Greeting>>
  greet(name: string): Promise<Greeting>
}

interface Parts {
  readonly store: GreetingStore
  readonly bus: Bus
  readonly clock: Clock
  readonly config: { readonly salutation: string }
}

export function greetingService({ store, bus, clock, config }: Parts): GreetingService {
  return {
    list: page => store.list(page),

    async greet(name) {
      const greeting = {
        id: randomUUID(),
        message: `${config.salutation}, ${name}!`,
        created_at: clock.now()
      }
      await store.insert(greeting)
      // Told after it is stored: who hears of it can read it.
      bus.publish(greetingsChannel, 'greeted', greeting)
      return greeting
    }
  }
}
