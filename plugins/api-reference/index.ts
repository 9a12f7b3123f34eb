import { definePlugin } from 'busbar/sdk'
import { startApiReference } from './api-reference.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'api-reference',
  start: startApiReference,
  routes
})
