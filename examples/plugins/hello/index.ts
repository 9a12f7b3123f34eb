import { definePlugin, kernel, object, Type } from 'busbar/sdk'
import { channels } from './channels.js'
import { greetingService } from './greeting-service.js'
import { greetingStore } from './greeting-store.js'
import { createGreeting } from './migrations/001-create-greeting.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'hello',
  needs: { db: kernel.database, bus: kernel.bus, clock: kernel.clock },
  config: object({ salutation: Type.String({ minLength: 1, maxLength: 40, default: 'Hello' }) }),
  migrations: [createGreeting],
  start: ({ use, config }) =>
    greetingService({ store: greetingStore(use.db), bus: use.bus, clock: use.clock, config }),
  routes,
  channels
})
